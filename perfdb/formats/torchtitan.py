"""torchtitan logs: `step: 10  loss: 7.1  grad_norm: 1.2  memory: 40.1GiB(42%)  tps: 7,123  …`.

`tps` is tokens per second of one GPU, the mean since the line before. A step's time is not printed:
it follows from tps where the log says the batch, the sequence length and the mesh of GPUs. `memory`
is the most that was reserved. Behind `tps` stand `tflops` and `mfu`, of early versions `mfu` alone;
it is `N/A` where it is not known.
Source of the format: torchtitan/components/metrics.py, trainer.py (train.py up to 0.1.0) and
distributed/parallel_dims.py, 0.1.0 to 0.3.0.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from perfdb.errors import Diagnostic
from perfdb.formats import precisions, settings
from perfdb.formats.base import Content, ParsedLog, Reading
from perfdb.formats.begun import FIRST_STEP
from perfdb.formats.ending import Account, training_log
from perfdb.formats.marked import marked
from perfdb.formats.numbers import count, finite, percent, positive, real, size_bytes
from perfdb.formats.piecewise import first
from perfdb.formats.precisions import Pair, Stated
from perfdb.formats.printed import first_line
from perfdb.formats.readings import Flags, Ints, Readings
from perfdb.formats.scan import Piece, Scan
from perfdb.formats.shelf import each
from perfdb.formats.spans import interval_note
from perfdb.formats.steps import Settled, settle, timed
from perfdb.log_text import decoded, plain
from perfdb.record import PartialCase

NAME = "torchtitan"

_MARKER = b"tps:"
_STEP = re.compile(r"\bstep: *(\d{1,15}) +loss:")
_FIELD = re.compile(
    r"\b(loss|grad_norm|memory|tps|tflops(?=[^\n]*mfu:)|mfu(?=[^\n]*%)): *"
    r"(-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?|nan|inf)(?=[^\d.,e])"
)
_CUT = re.compile(r"\btps: *[\d,.]+\s*\Z")
"""Something stands behind `tps` in every version: a line that ends in it is folded, or cut off."""
_STEP_LINE = re.compile(rb"\bstep: *\d+ +loss: *\S+ [^\n]*?\btps: *[\d,]+")
_START = re.compile(
    r"local batch size (\d{1,15}),(?: global batch size (\d{1,15}),)?"
    r"(?: gradient accumulation steps (\d{1,15}),)? sequence length (\d{1,15}),"
    r" total steps (\d{1,15})"
)
_STARTS = (b" device mesh with ", b"local batch size ", FIRST_STEP)
_VALIDATION = re.compile(r"\bvalidate step: ")
_GPU = re.compile(r"CUDA capacity: ([^\n]{1,100}?) with ([\d.]+)GiB memory")
_MODEL = re.compile(r"\bModel (\S{1,50} \S{1,50}) size: [\d,]+ total parameters")
_LOW = re.compile(
    r"\b(?:(Float8|MXFP8) (?:(tensorwise) scaled )?training active(?: with recipe (\w{1,50}))?"
    r"|Swapped to (Float8|MX)Linear layers)"
)
"""Up to 0.1.0 Float8 is said of MXFP8 too, before its recipe."""
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
DONE = re.compile(r"Training completed")


def recognises(head: bytes, name: str) -> int:
    """How many lines of its metrics are among the first bytes."""
    return len(_STEP_LINE.findall(plain(head)))


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The run that a log tells of."""
    scan = Scan(content, _MARKER, starts=_STARTS)
    readings, problems = marked(where, scan, _MARKER, _reading)
    attempts = _attempts(scan, int(readings.line[0]) if readings else scan.line)
    steps = _timed(where, settle(where, readings, problems), attempts)
    done = bool(DONE.search(scan.epilogue))
    account = Account(_planned(scan), scan.epilogue, done, scan.before, scan.starts)
    log = training_log(PartialCase(), steps, account)
    judged = _of_line(attempts, first_line(log)) if log.readings else attempts[-1].said
    gpu, doubt = _GPU.search(scan.preamble), _precision(_above(scan)).doubt
    return (
        replace(
            log,
            configuration=judged,
            doubts={"precision": doubt} if doubt else {},
            timed_by=("num_gpus", "global_batch_size", "sequence_length"),
            gpu_memory_bytes=size_bytes(gpu[2], 2**30) if gpu else None,
        ),
    )


def _reading(piece: Piece) -> Reading | str | None:
    """A step whose time is that of one token on one GPU, until the batch is known."""
    if _VALIDATION.search(piece.text):
        return None
    if _CUT.search(piece.text):
        return "a step that ends in its 'tps', which may go on on the next line"
    step = _STEP.search(piece.text)
    said = {name: value.replace(",", "") for name, value in _FIELD.findall(piece.text)}
    rate = positive(said.get("tps"))
    if not step or not rate:
        return "a step without its number or 'tps'"
    return Reading(
        line=piece.line,
        step=int(step[1]),
        step_time_s=1 / rate,
        loss=real(said.get("loss")),
        grad_norm=real(said.get("grad_norm")),
        peak_memory_bytes=size_bytes(said.get("memory"), 2**30),
        model_tflops_per_sec_per_gpu=finite(said.get("tflops")),
        tokens_per_sec_per_gpu=rate,
        mfu=percent(said.get("mfu")),
    )


class _Attempt(NamedTuple):
    """What the steps behind a line are of."""

    line: int
    said: PartialCase


def _attempts(scan: Scan, first_step: int) -> Sequence[_Attempt]:
    """What each attempt is of, with what it does not say as it was; `first_step`: its line."""
    own = _of_first(scan, first_step)
    above = own.partition(_MARKER.decode())[0]
    said = {**_batch(above), **_layout(above), **_subject(own), **_computed(own)}
    attempts = [_Attempt(0, _configuration(said))]
    for line, text in scan.starts.said:
        if text.startswith(FIRST_STEP):
            continue
        read, fields = (_batch, _BATCH) if text.startswith(_STARTS[1]) else (_layout, _LAYOUT)
        found = read(decoded(text))
        if found or line > first_step:
            said |= {**dict.fromkeys(fields), **found}
            attempts.append(_Attempt(line, _configuration(said)))
    return attempts


def _above(scan: Scan) -> str:
    """What stands above the first step."""
    return scan.preamble.partition(_MARKER.decode())[0]


def _of_first(scan: Scan, first_step: int) -> str:
    """What the first attempt says of itself; `perfdb.formats.attempts` reads the later ones."""
    again = scan.starts.again(first_step)
    return "\n".join(scan.preamble.split("\n")[: again[0] - 1]) if again else scan.preamble


def _of_line(attempts: Sequence[_Attempt], line: int) -> PartialCase:
    return attempts[bisect_left(attempts, line, key=attrgetter("line")) - 1].said


def _planned(scan: Scan) -> int | None:
    """How many steps there were to be, by the last attempt that says it."""
    texts = (scan.preamble, *(decoded(text) for _, text in scan.starts.said))
    found = [start for text in texts if (start := _START.search(text))]
    return count(found[-1][5]) if found else None


def _configuration(said: Mapping[str, object]) -> PartialCase:
    known = {name: value for name, value in said.items() if value}
    return PartialCase.model_validate(known | {"framework": "torchtitan"})


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


def _precision(text: str) -> Stated:
    """The low precision that a log tells of; BF16 has no line of its own."""
    pairs: list[Pair] = []
    for kind, scaling, recipe, layers in _LOW.findall(text):
        said = recipe or scaling or ("mxfp8" if "MX" in kind + layers else "")
        pairs += [("fp8", "true"), ("fp8_recipe", "mxfp8" if "mxfp8" in said else said)]
    return precisions.of(pairs)


def _computed(text: str) -> dict[str, object]:
    checkpointing = _CHECKPOINTING.search(text)
    used = {
        "enable_profiling": "Profiling active." in text,
        "activation_checkpointing": checkpointing[1] if checkpointing else False,
        "compile": bool(_COMPILED.search(text)),
    }
    options = {name: value for name, value in used.items() if value}
    return {"precision": _precision(text).name, "options": options}


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


def _timed(where: str, steps: Settled, attempts: Sequence[_Attempt]) -> Settled:
    """The steps with their times; without those of which the log does not say how large one is."""
    kept, starts = Readings.of(steps.readings), np.array([one.line for one in attempts])
    is_known = np.array([_has_size(one.said) for one in attempts])

    def has_time(lines: Ints) -> Flags:
        return np.asarray(is_known[starts.searchsorted(lines) - 1])

    lost = first(lambda lines: ~has_time(lines), kept.line)
    if lost is not None:
        message = (
            "no step time follows from tps: the log does not say global batch size, sequence "
            "length and device mesh"
        )
        problem = Diagnostic(where, message, line=int(kept.line[lost]), remedy="keep its beginning")
        kept = each(kept, lambda some: some.at(has_time(some.line)))
        steps = replace(steps, readings=kept, problems=(*steps.problems, problem))
    found = timed(where, steps, lambda one: _size(_of_line(attempts, one.line)))
    return replace(found, notes=(*found.notes, *interval_note(where, found.readings)))


def _has_size(said: PartialCase) -> bool:
    return bool(said.global_batch_size and said.sequence_length and said.num_gpus)


def _size(said: PartialCase) -> tuple[int, int]:
    return (said.global_batch_size or 0) * (said.sequence_length or 0), said.num_gpus or 0
