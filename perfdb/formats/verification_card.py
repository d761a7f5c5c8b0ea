"""Megatron-Bridge's verification cards: YAML with a result for each way and machine that was tried.

A result is a `metrics` group with the mean step time of the last ten steps. What was run is in
its `command`. A card seldom states the global batch size; it follows from the printed figures,
which have seven digits and more. Source: examples/model_verification_cards.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from perfdb import catalog
from perfdb.errors import Diagnostic
from perfdb.formats import settings
from perfdb.formats.base import Content, LogFormat, ParsedLog, nothing, showing
from perfdb.formats.documents import ForeignDocument, identity, texts, yaml_document
from perfdb.formats.numbers import count, finite, positive, real, size_bytes
from perfdb.record import LAST_VERIFIED, Figures, Outcome, PartialCase
from perfdb.yamlfile import Document, Place

WINDOW = "last_n(10)"

_TIME: Final = "last_10_steps_step_time_ms_avg"
_TFLOPS: Final = "last_10_steps_model_tflops_per_gpu_avg"
_TOKENS: Final = "last_10_steps_tokens_per_second_per_gpu_avg"
_ALLOCATED: Final = "peak_allocated_memory_gib"
_READ: Final = (_TIME, _TFLOPS, _TOKENS, _ALLOCATED)
_VERIFIED: Final = "verified"
_TASKS: Final = {"peft": "lora", "lora": "lora", "sft": "sft", "pretrain": "pretrain"}
_PERFORMANCE: Final = "pretrain_performance"
"""The item with the tuned recipe; what other items run is a variant of it."""
_WHOLE: Final = 1e-6
"""By how much a global batch size may miss a whole number: each printed figure has seven digits."""
_HEAD: Final = (rb"(?m)^verification_environment:", rb"(?m)^items:")
_SHORT: Final = {
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "cp": "context_parallel_size",
    "ep": "expert_model_parallel_size",
    "etp": "expert_tensor_parallel_size",
}
"""Options of a command, by the settings that they are of."""
_NO_VALUE: Final = re.compile(r"-(?!\.?[0-9])|\+*[\w.]+=|[0-9]?[|&;<>]|\Z")
"""The word behind a switch: an option (no negative number), an override, the shell's, or none."""


class _Source(ForeignDocument):
    hf_id: str | None = None


class _Setting(ForeignDocument):
    base_container: str | None = None
    bridge_commit: str | None = None


class _Card(ForeignDocument):
    title: str | None = None
    model: _Source = _Source()
    verification_environment: _Setting = _Setting()


class _Leaf(NamedTuple):
    """A group that has metrics: its place, its metrics, and all values of it and around it."""

    place: Place
    metrics: Mapping[str, object]
    values: Mapping[str, object]

    def text(self, name: str) -> str | None:
        """A field that is a text."""
        value = self.values.get(name)
        return value if isinstance(value, str) else None


def _parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """A result for each group of metrics with a step time; one of nulls alone is skipped."""
    found = yaml_document(where, content, _Card)
    if isinstance(found, Diagnostic):
        return nothing(found)
    document, card = found
    leaves = [
        leaf
        for leaf in _leaves((), document.content, {})
        if _TIME in leaf.metrics and any(leaf.metrics.get(name) is not None for name in _READ)
    ]
    if not leaves:
        problem = Diagnostic(where, f"no item has a measured {_TIME!r}", line=1)
        return nothing(problem, PartialCase(framework="megatron-bridge"))
    content_hash = identity(document.content)
    return tuple(_result(document, card, leaf, content_hash) for leaf in leaves)


def _leaves(place: Place, value: object, around: Mapping[str, object]) -> Iterator[_Leaf]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves((*place, index), item, around)
    elif isinstance(value, dict):
        own = {**around, **{str(name): one for name, one in value.items()}}
        if "metrics" in value:
            metrics = value["metrics"]
            yield _Leaf(place, metrics if isinstance(metrics, dict) else {}, own)
            return
        scalars = {name: one for name, one in own.items() if not isinstance(one, dict | list)}
        for name, one in value.items():
            yield from _leaves((*place, str(name)), one, scalars)


def _result(document: Document, card: _Card, leaf: _Leaf, identity: str | None) -> ParsedLog:
    metrics, setting = leaf.metrics, card.verification_environment
    time, status = positive(metrics.get(_TIME)), leaf.text("status")
    place = (*leaf.place, "metrics", _TIME)
    unread = document.problem(place, f"{metrics.get(_TIME)!r} is no time", "give milliseconds")
    doubted = f"its status is {status!r}: nobody vouches for its figures"
    is_verified = status in (None, _VERIFIED)
    figures = Figures(
        step_time_s=positive(time * 0.001) if time else None,
        model_tflops_per_sec_per_gpu=positive(metrics.get(_TFLOPS)),
        tokens_per_sec_per_gpu=positive(metrics.get(_TOKENS)),
    )
    return ParsedLog(
        configuration=_configuration(card, leaf, figures),
        identity=identity,
        framework_version=leaf.text("bridge_commit") or setting.bridge_commit,
        container=setting.base_container,
        emitted=figures,
        emitted_line=document.line(place),
        item=".".join(map(str, leaf.place[1:])),
        peak_memory_bytes=size_bytes(metrics.get(_ALLOCATED), 2**30),
        extras=_extras(leaf, None if is_verified else status),
        window=WINDOW,
        outcome=Outcome.FINISHED if time else Outcome.NO_DATA,
        error=None if time else unread.message,
        problems=() if time else (unread,),
        notes=() if is_verified else (document.problem(place, doubted),),
    )


def _extras(leaf: _Leaf, status: str | None) -> Mapping[str, str]:
    """The other metrics, such as losses, when it was verified, and the status of what is not."""
    others = {str(name): str(one) for name, one in leaf.metrics.items() if real(one) is not None}
    kept = {name: value for name, value in others.items() if name not in _READ}
    verified = leaf.values.get(LAST_VERIFIED)
    if verified and not isinstance(verified, dict | list):
        kept[LAST_VERIFIED] = str(verified)
    return kept | ({"status": status} if status else {})


def _configuration(card: _Card, leaf: _Leaf, figures: Figures) -> PartialCase:
    """What the leaf, its command and its place state; the card lacks the recipe's own values."""
    item = next((part for part in leaf.place[1:] if isinstance(part, str)), "")
    features, command = leaf.values.get("enabled_features"), leaf.text("command") or ""
    own = (texts(features) if isinstance(features, dict) else {}) | _of_command(command)
    nodes, per_node = count(own.get("nodes")), count(own.get("gpus_per_node"))
    size = count(nodes * per_node) if nodes and per_node else None
    mode = re.search(r"--mode[ =]+(\w+)", command)
    words = (mode[1] if mode else "", item.partition("_")[0])
    systems = (settings.system(part) for part in leaf.place if isinstance(part, str))
    stated: dict[str, object] = {
        "model": settings.model((card.model.hf_id or card.title or "").rpartition("/")[2]),
        "task": next((_TASKS[word] for word in words if word in _TASKS), None),
        "variant": item if item != _PERFORMANCE else None,
        "system": next((name for name in systems if name), None),
        "precision": catalog.precision_of(leaf.text("precision") or ""),
        "num_gpus": count(leaf.values.get("num_gpus")) or size,
    }
    known = {name: value for name, value in stated.items() if value}
    case = settings.configuration(own, framework="megatron-bridge", **known)
    batch = _global_batch_size(case, figures)
    return case.completed_by(PartialCase(global_batch_size=batch)) if batch else case


def _global_batch_size(own: PartialCase, figures: Figures) -> int | None:
    """tokens/s/GPU × GPUs × step time ÷ sequence length, if that is a whole number."""
    tokens, time = figures.tokens_per_sec_per_gpu, figures.step_time_s
    if not (tokens and time and own.num_gpus and own.sequence_length):
        return None
    size = finite(tokens * own.num_gpus * time / own.sequence_length)
    is_whole = size is not None and abs(size - round(size)) <= _WHOLE * size
    return count(round(size)) if size is not None and is_whole else None


def _of_command(command: str) -> dict[str, str]:
    """The settings of a command, `--seq_length 4096` and Hydra's `model.seq_length=4096`.

    One with several values is left out. A switch without a value is on.
    """
    try:
        words = shlex.split(command.replace("\\\n", " "))
    except ValueError:  # a quote that nothing closes
        words = command.split()
    found: dict[str, set[str]] = {}
    for word, behind in pairwise([*words, ""]):
        path, has_value, value = word.partition("=")
        if path.startswith("-") or has_value:
            name = path.lstrip("-+").replace("-", "_").rpartition(".")[2]
            own = value if has_value else "true" if _NO_VALUE.match(behind) else behind
            found.setdefault(_SHORT.get(name, name), set()).add(own)
    return {name: values.pop() for name, values in found.items() if len(values) == 1}


FORMAT: Final = LogFormat("verification_card", showing(*_HEAD), _parse)
