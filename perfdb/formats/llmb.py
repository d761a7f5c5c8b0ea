"""llmb-config_JOB.yaml: what NVIDIA's benchmark launcher notes of a job, next to the job's log.

It is no account of a run: it completes what the log says. The folders that the file lies in have
the experiment's name, which says more. Source: NVIDIA/dgxc-benchmarking, cli/llmb-run.
"""

import re
from collections.abc import Mapping
from typing import Final

from perfdb import catalog
from perfdb.errors import Diagnostic
from perfdb.formats import experiment, settings
from perfdb.formats.base import Content, LogFormat, ParsedLog, nothing, showing
from perfdb.formats.documents import ForeignDocument, texts, yaml_document
from perfdb.formats.numbers import count
from perfdb.record import PartialCase

_FRAMEWORKS: Final = {"megatron_bridge": "megatron-bridge", "nemo2": "nemo"}
_TASKS: Final = {"pretrain": "pretrain", "finetune": "sft", "sft": "sft", "lora": "lora"}
_VERSION: Final = re.compile(rb"\b(fw_version[ \t]*:[ \t]+)(\d+(?:\.\d+)*)(?=[\s,}]|$)")
_GROUPS: Final = (rb"(?m)^job_info:", rb"(?m)^workload_info:", rb"(?m)^model_info:")


class _Workload(ForeignDocument):
    framework: str
    fw_version: str | float | None = None
    workload_type: str | None = None


class _Model(ForeignDocument):
    model_name: str
    model_size: str | int | float | None = None
    dtype: str | None = None
    scale: int | None = None
    gpu_type: str | None = None


class _Container(ForeignDocument):
    images: tuple[str, ...] = ()


class _Job(ForeignDocument):
    profile_enabled: bool | None = None
    proxy: bool | None = None
    model_overrides: Mapping[str, object] | None = None
    env_overrides: Mapping[str, object] | None = None


class _Config(ForeignDocument):
    workload_info: _Workload
    model_info: _Model
    container_info: _Container = _Container()
    job_config: _Job = _Job()


def _parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """What the file says of the run next to it, with what the names of its folders add."""
    # As it is written: YAML has 25.10 for a number, which is 25.1.
    text = _VERSION.sub(rb"\1'\2'", b"".join(content))
    found = yaml_document(where, [text], _Config)
    if isinstance(found, Diagnostic):
        return nothing(found)
    _, config = found
    case, name = _configuration(config), experiment.of_path(where)
    if name and name.task == "lora" and config.workload_info.workload_type == "finetune":
        # The launcher has no other word for it.
        case = case.model_copy(update={"task": "lora"})
    images, version = config.container_info.images, config.workload_info.fw_version
    message, remedy = (
        "steps under the profiler take longer",
        "say which steps count with --window, such as 'window(35,44)'",
    )
    profiled = Diagnostic(where, message, "job_config.profile_enabled", remedy=remedy)
    log = ParsedLog(
        configuration=case.completed_by(name) if name else case,
        framework_version=str(version) if version is not None else None,
        # pyxis writes # between the registry and the image, where Docker has a slash
        container=images[0].replace("#", "/", 1) if len(images) == 1 else None,
        environment=texts(config.job_config.env_overrides or {}),
        notes=(profiled,) if config.job_config.profile_enabled else (),
    )
    return (log,)


def _configuration(config: _Config) -> PartialCase:
    """The case of a job. A proxy is smaller than its model, and an override may change it."""
    workload, model, job = config.workload_info, config.model_info, config.job_config
    size = str(model.model_size) if model.model_size is not None else ""
    stated: dict[str, object] = {
        "framework": _FRAMEWORKS.get(workload.framework, workload.framework),
        "model": settings.model(f"{model.model_name} {size}".strip()),
        "task": _TASKS.get(workload.workload_type or ""),
        "system": settings.system(model.gpu_type),
        "num_gpus": count(model.scale),
        "precision": catalog.precision_of(model.dtype) if model.dtype else None,
    }
    known = {name: value for name, value in stated.items() if value}
    options = texts(job.model_overrides or {}) | ({"proxy": True} if job.proxy else {})
    return PartialCase.model_validate(
        known | ({"model": None, "options": options} if options else {})
    )


FORMAT: Final = LogFormat("llmb_config", showing(*_GROUPS), _parse)
