"""Megatron-Bridge's verification cards: YAML with a result for each way and machine that was tried.

A result is a `metrics` group with the mean step time of the last ten steps. What was run is in
its `command`. A card seldom says the global batch size; it follows from the printed figures, which
have seven digits and more. Source: examples/model_verification_cards.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from perfdb import catalog
from perfdb.errors import Diagnostic
from perfdb.formats import settings
from perfdb.formats.base import Content, LogFormat, ParsedLog, nothing
from perfdb.formats.documents import (
    ForeignDocument,
    checked_yaml,
    identity,
    texts,
    yaml_document,
)
from perfdb.formats.numbers import count, finite, positive, real, size_bytes
from perfdb.record import Figures, Outcome, PartialCase
from perfdb.stated import LAST_VERIFIED
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
"""The item whose recipe is tuned; what other items run is a variant of it."""
_WHOLE: Final = 1e-6
"""By how much a global batch size may miss a whole number: each printed figure has seven digits."""
_HEAD = (rb"(?m)^verification_environment:", rb"(?m)^items:")
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


@dataclass(frozen=True)
class _Leaf:
    """A group that has metrics: its place, and the values of it and of the groups around it."""

    place: Place
    values: Mapping[str, object]

    def text(self, name: str) -> str | None:
        """A field that is a text."""
        value = self.values.get(name)
        return value if isinstance(value, str) else None


def _recognizes(head: bytes, name: str) -> int:
    return all(re.search(group, head) for group in _HEAD)


def _parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """A result for each group of metrics with a step time."""
    document = yaml_document(where, content)
    if isinstance(document, Diagnostic):
        return nothing(document)
    card = checked_yaml(document, _Card)
    if isinstance(card, Diagnostic):
        return nothing(card)
    leaves = [leaf for leaf in _leaves((), document.content, {}) if _TIME in _metrics(leaf)]
    if not leaves:
        problem = Diagnostic(where, f"no item has metrics with {_TIME!r}", line=1)
        return nothing(problem, PartialCase(framework="megatron-bridge"))
    content_hash = identity(document.content)
    return tuple(replace(_result(document, card, leaf), identity=content_hash) for leaf in leaves)


def _leaves(place: Place, value: object, around: Mapping[str, object]) -> Iterator[_Leaf]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves((*place, index), item, around)
    elif isinstance(value, dict):
        own = {**around, **{str(name): one for name, one in value.items()}}
        if "metrics" in value:
            yield _Leaf(place, own)
            return
        scalars = {name: one for name, one in own.items() if not isinstance(one, dict | list)}
        for name, one in value.items():
            yield from _leaves((*place, str(name)), one, scalars)


def _metrics(leaf: _Leaf) -> Mapping[str, object]:
    metrics = leaf.values.get("metrics")
    return metrics if isinstance(metrics, dict) else {}


def _result(document: Document, card: _Card, leaf: _Leaf) -> ParsedLog:
    metrics, setting = _metrics(leaf), card.verification_environment
    time = positive(metrics.get(_TIME))
    place = (*leaf.place, "metrics", _TIME)
    unread = document.problem(place, f"{metrics.get(_TIME)!r} is no time", "give milliseconds")
    figures = Figures(
        step_time_s=positive(time * 0.001) if time else None,
        model_tflops_per_sec_per_gpu=positive(metrics.get(_TFLOPS)),
        tokens_per_sec_per_gpu=positive(metrics.get(_TOKENS)),
    )
    own = _configuration(card, leaf)
    batch = PartialCase(global_batch_size=_global_batch_size(own, figures))
    return ParsedLog(
        configuration=own.completed_by(batch) if batch.global_batch_size else own,
        framework_version=leaf.text("bridge_commit") or setting.bridge_commit,
        container=setting.base_container,
        emitted=figures,
        emitted_line=document.line(place),
        peak_memory_bytes=size_bytes(metrics.get(_ALLOCATED), 2**30),
        extras=_extras(leaf),
        window=WINDOW,
        outcome=Outcome.FINISHED if time else Outcome.NO_DATA,
        error=None if time else unread.message,
        problems=() if time else (unread,),
        notes=_unverified(document, leaf),
    )


def _extras(leaf: _Leaf) -> Mapping[str, str]:
    """The other metrics, such as losses, when it was verified, and the status of what is not."""
    metrics, status = _metrics(leaf).items(), leaf.text("status")
    others = {str(name): str(value) for name, value in metrics if real(value) is not None}
    kept = {name: value for name, value in others.items() if name not in _READ}
    verified = leaf.values.get(LAST_VERIFIED)
    if verified and not isinstance(verified, dict | list):
        kept[LAST_VERIFIED] = str(verified)
    return kept | ({"status": status} if status and status != _VERIFIED else {})


def _unverified(document: Document, leaf: _Leaf) -> tuple[Diagnostic, ...]:
    status = leaf.text("status")
    if status is None or status == _VERIFIED:
        return ()
    message = f"its status is {status!r}: nobody vouches for its figures"
    return (document.problem((*leaf.place, "metrics", _TIME), message),)


def _global_batch_size(own: PartialCase, figures: Figures) -> int | None:
    """tokens/s/GPU × GPUs × step time ÷ sequence length, where that is a whole number."""
    tokens, time = figures.tokens_per_sec_per_gpu, figures.step_time_s
    if not (tokens and time and own.num_gpus and own.sequence_length):
        return None
    size = finite(tokens * own.num_gpus * time / own.sequence_length)
    is_whole = size is not None and abs(size - round(size)) <= _WHOLE * size
    return count(round(size)) if size is not None and is_whole else None


def _configuration(card: _Card, leaf: _Leaf) -> PartialCase:
    """What the leaf, its command and its place say; the recipe's own values are not in the card."""
    item = next((part for part in leaf.place[1:] if isinstance(part, str)), "")
    features = leaf.values.get("enabled_features")
    own = texts(features) if isinstance(features, dict) else {}
    own |= _of_command(leaf.text("command") or "")
    nodes, per_node = count(own.get("nodes")), count(own.get("gpus_per_node"))
    size = count(nodes * per_node) if nodes and per_node else None
    fields: dict[str, object] = {
        "model": settings.model((card.model.hf_id or card.title or "").rpartition("/")[2]),
        "task": _task(leaf, item),
        "variant": item if item != _PERFORMANCE else None,
        "system": _system(leaf.place),
        "precision": catalog.precision_of(leaf.text("precision") or ""),
        "num_gpus": count(leaf.values.get("num_gpus")) or size,
    }
    known = {name: value for name, value in fields.items() if value}
    return settings.configuration(own, framework="megatron-bridge", **known)


def _task(leaf: _Leaf, item: str) -> str | None:
    """The task that the command names, else the item."""
    mode = re.search(r"--mode[ =]+(\w+)", leaf.text("command") or "")
    words = (mode[1] if mode else "", item.partition("_")[0])
    return next((_TASKS[word] for word in words if word in _TASKS), None)


def _system(place: Place) -> str | None:
    found = (settings.system(part) for part in place if isinstance(part, str))
    return next((name for name in found if name), None)


def _of_command(command: str) -> dict[str, str]:
    """The settings of a command, `--seq_length 4096` and Hydra's `model.seq_length=4096`, by their
    names; of one with several values nobody says which it had. A switch without a value is on.
    """
    try:
        words = shlex.split(command.replace("\\\n", " "))
    except ValueError:  # a quote that nothing closes
        words = command.split()
    found: dict[str, set[str]] = {}
    for word, behind in pairwise([*words, ""]):
        path, is_given, value = word.partition("=")
        is_option = path.startswith("-")
        if is_option or is_given:
            name = path.lstrip("-+").replace("-", "_").rpartition(".")[2]
            own = value if is_given else "true" if _NO_VALUE.match(behind) else behind
            found.setdefault(_SHORT.get(name, name), set()).add(own)
    return {name: values.pop() for name, values in found.items() if len(values) == 1}


FORMAT: Final = LogFormat("verification_card", _recognizes, _parse)
