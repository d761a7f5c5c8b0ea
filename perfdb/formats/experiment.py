"""Reads what the name of an experiment says: the dialects of Megatron-Bridge and NVIDIA's recipes.

`pretrain_llama31_405b_fp8_cs_gpus128_tp2_pp1_cp1_vpNone_ep1_mbs1_gbs64_658572`. GPUs are `gpus128`,
`32nodes` or a bare number; batches `mbs1` or `1mbs`; a precision may hold an underscore; `_v2` is
another workload of the same model; a job's number may end it. A name of no dialect may say sizes,
too, `llama3_70b_bf16_gbs128_tp4_pp2`, and that of golden values the machine of them.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from perfdb import catalog
from perfdb.formats import settings
from perfdb.formats.numbers import count
from perfdb.record import PartialCase

_TASKS: Final = {
    "pretrain": "pretrain", "sft": "sft", "finetune": "sft", "lora": "lora", "peft": "lora",
}  # fmt: skip
_NAME: Final = re.compile(
    r"(?P<task>pretrain|sft|finetune|lora|peft)_(?P<model>[A-Za-z][\w.\-]*?)_"
    r"(?P<precision>bf16|fp16|nvfp4|fp8(?:_(?:cs|mx|sc|ds))?)_"
    r"(?:gpus(?P<gpus>\d+)|(?P<nodes>\d+)nodes|(?P<bare>\d+))(?=_|$)(?P<rest>\w*)$"
)
_LOG: Final = re.compile(
    r"(?:(?:log-|sbatch_)(?:[\w.\-]*?\.)?)?(?P<name>(?:pretrain|sft|finetune|lora|peft)_.*?)"
    r"\.(?:log|out|err|txt)(?:\.\w+)?"
)
"""NeMo-Run's `log-ACCOUNT.EXPERIMENT_JOB_RETRY.out` or `sbatch_…`, or an experiment's name."""
_VARIANT: Final = re.compile(r"_(v\d+)(?=_|$)")
_SIZES: Final = {
    "tp": "tensor_parallel",
    "pp": "pipeline_parallel",
    "cp": "context_parallel",
    "vp": "virtual_pipeline",
    "ep": "expert_parallel",
    "etp": "expert_tensor_parallel",
    "mbs": "micro_batch_size",
    "gbs": "global_batch_size",
}
_SIZE: Final = re.compile(
    r"(?<![A-Za-z])(etp|[tpcve]p|[mg]bs)[-_=]?(\d+)"
    r"(?=$|[^A-Za-z0-9]|(?:etp|[tpcve]p|[mg]bs)[-_=]?\d)"
)
_UNMISTAKABLE: Final = {
    "tensor_parallel", "pipeline_parallel", "micro_batch_size", "global_batch_size",
}  # fmt: skip
"""What a name says by one word; `ep3` alone may be an epoch."""
_PRECISION: Final = re.compile(
    r"(?<![a-z0-9])(bf16|fp16|nvfp4|fp8(?:_(?:cs|mx|sc|ds))?)(?![a-z0-9])"
)
_GOLDEN: Final = re.compile(r"golden_values_(.+)\.json(?:\.\w+)?")


def configuration(name: str) -> PartialCase | None:
    """What an experiment's name says; None for a name that is none of these dialects.

    A number of nodes says no number of GPUs; only a system can tell how many a node has.
    """
    found = _NAME.match(name)
    return _stated(found) if found else None


def of_path(path: str) -> PartialCase | None:
    """What the innermost folder or file says that has an experiment's name."""
    return next(map(_stated, _experiments(path)), None)


def nodes_of_path(path: str) -> int | None:
    """The number of nodes by the same name, if it says no number of GPUs."""
    found = next(_experiments(path), None)
    return count(found["nodes"]) if found else None


def _experiments(path: str) -> Iterator[re.Match[str]]:
    """The names of experiments, the innermost first. A bare number in a log's may be its job's."""
    log = _LOG.fullmatch(_parts(path)[0])
    if log and (found := _NAME.match(log["name"])) and not found["bare"]:
        yield found
    yield from filter(None, map(_NAME.match, _parts(path)))


def _parts(path: str) -> list[str]:
    return re.split(r"[/\\]", path)[::-1]


def _stated(found: re.Match[str]) -> PartialCase:
    rest = found["rest"]
    variant, first = _VARIANT.search(rest), rest.strip("_").partition("_")[0]
    stated: dict[str, object] = {
        "task": _TASKS[found["task"]],
        "model": settings.model(found["model"]),
        "precision": catalog.precision_of(found["precision"]),
        "num_gpus": count(found["gpus"] or found["bare"]),
        "variant": variant[1] if variant else None,
        "system": settings.system(first),
    }
    for key, field in _SIZES.items():
        if size := re.search(rf"_{key}(None|\d+)(?=_|$)|_(\d+){key}(?=_|$)", rest):
            stated[field] = count(size[1] or size[2])
    kept = {name: one for name, one in stated.items() if one or name == "virtual_pipeline"}
    return PartialCase.model_validate(kept)


def sizes_of_path(path: str) -> PartialCase | None:
    """The sizes, and the precision with them, in names of other kinds of folders and the file.

    The innermost name counts. None if none says a size. What a name says twice is left out.
    """
    stated: dict[str, object] = {}
    for part in reversed(_parts(path.lower())):
        found = _SIZE.findall(part)
        several = Counter(key for key, _ in found)
        for key, number in found:
            if several[key] == 1 and (size := count(number)):
                stated[_SIZES[key]] = size
        if len(precisions := set(_PRECISION.findall(part))) == 1:
            stated["precision"] = catalog.precision_of(precisions.pop())
    return PartialCase.model_validate(stated) if stated.keys() & _UNMISTAKABLE else None


def golden_values(path: str) -> PartialCase | None:
    """What the file of Megatron-LM's golden values says by its name, `golden_values_lts_dgx_h100`.

    It is the environment and the platform; a system that the catalog lacks is unknown. Source of
    the names: Megatron-LM, tests/functional_tests/test_cases.
    """
    found = _GOLDEN.fullmatch(_parts(path)[0])
    if not found:
        return None
    stated: dict[str, object] = {"framework": "megatron-lm", "variant": found[1]}
    system = settings.system(re.sub("dgx", "", found[1], flags=re.IGNORECASE))
    if system or "dgx" in found[1].lower():
        stated["system"] = system
    return PartialCase.model_validate(stated)
