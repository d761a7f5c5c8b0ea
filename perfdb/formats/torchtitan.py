"""torchtitan logs: `step: 10  loss: 7.1  grad_norm: 1.2  memory: 40.1GiB(42%)  tps: 7,123  …`.

`tps` is tokens per second of one GPU, the mean since the line before. A step's time is not printed:
it follows from tps where the log says the batch, the sequence length and the mesh of GPUs. `memory`
is the most that was reserved. Behind `tps` are `tflops` and `mfu`, of early versions `mfu` alone;
it is `N/A` where it is not known.
Source of the format: torchtitan/components/metrics.py, trainer.py (train.py up to 0.1.0) and
distributed/parallel_dims.py, 0.1.0 to 0.3.0.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from perfdb.errors import Diagnostic
from perfdb.formats import precision, settings
from perfdb.formats.attempts import FIRST_STEP, settings_of, training_log, with_settings
from perfdb.formats.base import Content, LogFormat, ParsedLog, RunSettings
from perfdb.formats.columns import Reading
from perfdb.formats.numbers import count, finite, percent, positive, real, size_bytes
from perfdb.formats.outcome import DONE, Account
from perfdb.formats.precision import Pair, StatedPrecision
from perfdb.formats.scan import LogSection, Piece, Scan
from perfdb.formats.settle import Settled, interval_note, marked, with_times
from perfdb.log_text import plain
from perfdb.record import PartialCase

_MARKER = b"tps:"
_STEP = re.compile(r"\bstep: *(\d{1,15}) +loss:")
_FIELD = re.compile(
    r"\b(loss|grad_norm|memory|tps|tflops(?=[^\n]*mfu:)|mfu(?=[^\n]*%)): *"
    r"(-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?|nan|inf)(?=[^\d.,e])"
)
_CUT = re.compile(r"\btps: *[\d,.]+\s*\Z")
"""Something is behind `tps` in every version: a line that ends in it is folded, or cut off."""
_STEP_LINE = re.compile(rb"\bstep: *\d+ +loss: *\S+ [^\n]*?\btps: *[\d,]+")
_START = re.compile(
    r"local batch size (\d{1,15}),(?: global batch size (\d{1,15}),)?"
    r"(?: gradient accumulation steps (\d{1,15}),)? sequence length (\d{1,15}),"
    r" total steps (\d{1,15})"
)
_MESH_START, _BATCH_START = b" device mesh with ", b"local batch size "
_VALIDATION = re.compile(r"\bvalidate step: ")
_GPU = re.compile(r"CUDA capacity: ([^\n]{1,100}?) with ([\d.]+)GiB memory")
_MODEL = re.compile(r"\bModel (\S{1,50} \S{1,50}) size: [\d,]+ total parameters")
_LOW = re.compile(
    r"\b(?:(Float8|MXFP8) (?:(tensorwise) scaled )?training active(?: with recipe (\w{1,50}))?"
    r"|Swapped to (Float8|MX)Linear layers)"
)
"""Up to 0.1.0 Float8 is found of MXFP8 too, before its recipe."""
_CHECKPOINTING = re.compile(r"Applied (\w{1,50}) activation checkpointing to the model")
_COMPILED = re.compile(r"Compiling each \w{1,50} with torch\.compile")
_MESH = re.compile(r"device mesh with \[([^\]\n]{0,200})\], \[([\d, ]{0,100})\]")
_DEGREES = re.compile(
    r"device mesh with parallelism: pp=(?P<pp>\d{1,9}), dp_replicate=(?P<dp_replicate>\d{1,9}), "
    r"dp_shard=(?P<dp_shard>\d{1,9}), cp=(?P<cp>\d{1,9}), tp=(?P<tp>\d{1,9}), "
    r"ep=(?P<ep>\d{1,9})"
)
"""Since 0.3.0; before, the mesh had a list of its dimensions above 1."""
_WITH_EXPERTS = "dp_shard_mod_ep"
"""With expert parallelism the shards are split into those within it and those over it."""
_DIMENSIONS = frozenset(
    {"pp", "dp", "dp_replicate", "dp_shard", _WITH_EXPERTS, "dp_shard_in_ep", "cp", "tp"}
)
_BATCH = ("local_batch_size", "global_batch_size", "gradient_accumulation", "sequence_length")
_LAYOUT = (
    "num_gpus", "pipeline_parallel", "data_parallel", "context_parallel", "tensor_parallel",
    "expert_parallel",
)  # fmt: skip


def _recognizes(head: bytes, name: str) -> int:
    return len(_STEP_LINE.findall(plain(head)))


def _parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    scan = Scan(content, _MARKER, starts=(_MESH_START, _BATCH_START, FIRST_STEP))
    settled = marked(where, scan, _MARKER, _reading)
    found = [(line, _readable(one)) for line, one in settings_of(scan.sections, _described)]
    settled = _timed(where, settled, found)
    done = bool(DONE["torchtitan"].search(scan.epilogue))
    account = Account(_planned(scan.sections), scan.epilogue, done, scan.last_words, scan.sections)
    log = with_settings(training_log(settled, account), found)
    return (replace(log, timed_by=("num_gpus", "global_batch_size", "sequence_length")),)


def _described(text: str) -> RunSettings:
    """What a start prints; what of its batch and mesh cannot be read is not as it was before."""
    layout, batch = _layout(text), _batch(text)
    unread: tuple[str, ...] = _LAYOUT if not layout and _MESH_START.decode() in text else ()
    unread += _BATCH if not batch and _BATCH_START.decode() in text else ()
    low, gpu = _precision(text), _GPU.search(text)
    found = {
        **layout, **batch, **_subject(text), "precision": low.name, "options": _options(text),
        "framework": "torchtitan",
    }  # fmt: skip
    known = {name: value for name, value in found.items() if value}
    return RunSettings(
        PartialCase.model_validate({**dict.fromkeys(unread), **known}),
        doubts={"precision": low.doubt} if low.doubt else {},
        gpu_memory_bytes=size_bytes(gpu[2], 2**30) if gpu else None,
    )


def _readable(found: RunSettings) -> RunSettings:
    known = found.configuration.model_dump(exclude_none=True)
    return replace(found, configuration=PartialCase.model_validate(known))


def _reading(piece: Piece) -> Reading | str | None:
    """A step whose time is that of one token on one GPU, until the batch is known."""
    if _VALIDATION.search(piece.text):
        return None
    if _CUT.search(piece.text):
        return "a step that ends in its 'tps', which may go on on the next line"
    step = _STEP.search(piece.text)
    found = {name: value.replace(",", "") for name, value in _FIELD.findall(piece.text)}
    rate = positive(found.get("tps"))
    if not step or not rate:
        return "a step without its number or 'tps'"
    return Reading(
        line=piece.line,
        step=int(step[1]),
        step_time_s=1 / rate,
        loss=real(found.get("loss")),
        grad_norm=real(found.get("grad_norm")),
        peak_memory_bytes=size_bytes(found.get("memory"), 2**30),
        model_tflops_per_sec_per_gpu=finite(found.get("tflops")),
        tokens_per_sec_per_gpu=rate,
        mfu=percent(found.get("mfu")),
    )


def _planned(sections: Sequence[LogSection]) -> int | None:
    """How many steps there were to be, by the last attempt that prints it."""
    found = [start for one in sections if (start := _START.search(one.text))]
    return count(found[-1][5]) if found else None


def _batch(text: str) -> dict[str, int | None]:
    start = _START.search(text)
    return dict(zip(_BATCH, map(count, start.groups()[:4]), strict=True)) if start else {}


def _subject(preamble: str) -> dict[str, str | None]:
    """The model and the system; by the names that are printed, where the catalogue has neither."""
    model, gpu = _MODEL.search(preamble), _GPU.search(preamble)
    return {
        "model": settings.model(model[1]) if model else None,
        "system": (settings.system(gpu[1]) or gpu[1]) if gpu else None,
    }


def _precision(text: str) -> StatedPrecision:
    """The low precision that a log reports; BF16 has no line of its own."""
    pairs: list[Pair] = []
    for kind, scaling, recipe, layers in _LOW.findall(text):
        found = recipe or scaling or ("mxfp8" if "MX" in kind + layers else "")
        pairs += [("fp8", "true"), ("fp8_recipe", "mxfp8" if "mxfp8" in found else found)]
    return precision.of(pairs)


def _options(text: str) -> dict[str, object]:
    checkpointing = _CHECKPOINTING.search(text)
    used = {
        "enable_profiling": "Profiling active." in text,
        "activation_checkpointing": checkpointing[1] if checkpointing else False,
        "compile": bool(_COMPILED.search(text)),
    }
    return {name: value for name, value in used.items() if value}


def _layout(preamble: str) -> dict[str, int | None]:
    """How many GPUs there are, and how they share the work where the log says each degree."""
    degrees, mesh = _DEGREES.search(preamble), _MESH.search(preamble)
    if degrees:
        return _of_degrees({name: int(size) for name, size in degrees.groupdict().items()})
    if not mesh:
        return {}
    names, sizes = re.findall(r"\w+", mesh[1]), [*map(int, re.findall(r"\d+", mesh[2]))]
    if len(names) != len(sizes) or not _DIMENSIONS.issuperset(names):
        return {"num_gpus": count(math.prod(sizes))}
    listed = dict(zip(names, sizes, strict=True))
    return _of_degrees({**dict.fromkeys(_DIMENSIONS, 1), **listed, "ep": _experts(listed)})


def _experts(listed: Mapping[str, int]) -> int:
    """The degree of expert parallelism of a mesh; 0 where tensors may be a part of it or not."""
    if _WITH_EXPERTS not in listed:
        return 1
    return 0 if "tp" in listed else listed.get("dp_shard_in_ep", 1) * listed.get("cp", 1)


def _of_degrees(degree: Mapping[str, int]) -> dict[str, int | None]:
    ranks = math.prod(size for name, size in degree.items() if name.startswith("dp"))
    layout = {
        # Expert parallelism regroups the same GPUs.
        "num_gpus": degree["pp"] * ranks * degree["cp"] * degree["tp"],
        "pipeline_parallel": degree["pp"],
        "data_parallel": ranks,
        "context_parallel": degree["cp"],
        "tensor_parallel": degree["tp"],
        "expert_parallel": degree["ep"],
    }
    return {name: count(size) for name, size in layout.items()}


def _timed(where: str, settled: Settled, found: Sequence[tuple[int, RunSettings]]) -> Settled:
    """The steps with their times; without those of which the log does not state the size."""
    steps, cases = settled.steps, [one.configuration for _, one in found]
    number = np.array([line for line, _ in found]).searchsorted(steps.line) - 1
    tokens = np.array(
        [float((one.global_batch_size or 0) * (one.sequence_length or 0)) for one in cases]
    )[number]
    num_gpus = np.array([float(one.num_gpus or 0) for one in cases])[number]
    is_known = (tokens > 0) & (num_gpus > 0)
    if not is_known.all():
        message = (
            "no step time follows from tps: the log does not say global batch size, sequence "
            "length and device mesh"
        )
        line = int(steps.line[np.flatnonzero(~is_known)[0]])
        problem = Diagnostic(where, message, line=line, remedy="keep its beginning")
        problems = (*settled.problems, problem)
        settled = replace(settled, steps=steps.at(is_known), problems=problems)
    timed = with_times(where, settled, tokens[is_known], num_gpus[is_known])
    return replace(timed, notes=(*timed.notes, *interval_note(where, timed.steps.step)))


FORMAT: Final = LogFormat("torchtitan", _recognizes, _parse, prints_means=True)
