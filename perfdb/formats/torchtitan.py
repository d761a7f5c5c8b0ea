"""torchtitan logs: `step: 10  loss: 7.1  grad_norm: 1.2  memory: 40.1GiB(42%)  tps: 7,123  …`.

`tps` is tokens per second of one GPU, the mean since the line before.
A step's time is not printed: it follows from tps, the batch, the sequence length and the number of
GPUs, which the log states, or else the user. `memory` is the most that was reserved. Behind `tps`
are `tflops` and `mfu`, of early versions `mfu` alone; it is `N/A` where it is not known.
Source of the format: torchtitan/components/metrics.py, trainer.py (train.py up to 0.1.0) and
distributed/parallel_dims.py, 0.1.0 to 0.3.0.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from perfdb.formats import precision, settings
from perfdb.formats.base import Content, LogFormat, ParsedLog, showing
from perfdb.formats.columns import Reading
from perfdb.formats.numbers import count, finite, percent, positive, real, size_bytes
from perfdb.formats.outcome import DONE
from perfdb.formats.precision import Pair
from perfdb.formats.scan import Piece, Scan
from perfdb.formats.settle import interval_note, marked, timed, training_log
from perfdb.record import PartialCase

_MARKER: Final = b"memory:"
_STARTS: Final = (b" device mesh with ", b"local batch size ", b"Training starts at step ")
_STEP: Final = re.compile(r"\bstep: *(\d{1,15}) +loss:")
_FIELD: Final = re.compile(
    r"\b(loss|grad_norm|memory|tps|tflops(?=[^\n]*mfu:)|mfu(?=[^\n]*%)): *"
    r"(-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?|nan|inf)(?=[^\d.,e])"
)
_RATE: Final = re.compile(r"\btps:")
_CUT: Final = re.compile(r"\btps: *[\d,.]+\s*\Z")
"""Something is behind `tps` in every version: a line that ends in it is folded, or cut off."""
_STEP_LINE: Final = rb"\bstep: *\d+ +loss: *\S+ [^\n]*?\btps: *[\d,]+"
_BATCH: Final = re.compile(
    r"local batch size (\d{1,15}),(?: global batch size (\d{1,15}),)?"
    r"(?: gradient accumulation steps (\d{1,15}),)? sequence length (\d{1,15}),"
    r" total steps (\d{1,15})"
)
_VALIDATION: Final = re.compile(r"\bvalidate step: ")
_GPU: Final = re.compile(r"CUDA capacity: ([^\n]{1,100}?) with ([\d.]+)GiB memory")
_MODEL: Final = re.compile(r"\bModel (\S{1,50} \S{1,50}) size: [\d,]+ total parameters")
_LOW: Final = re.compile(
    r"\b(?:(Float8|MXFP8) (?:(tensorwise) scaled )?training active(?: with recipe (\w{1,50}))?"
    r"|Swapped to (Float8|MX)Linear layers)"
)
"""Up to 0.1.0 Float8 is printed of MXFP8 too, before its recipe."""
_CHECKPOINTING: Final = re.compile(r"Applied (\w{1,50}) activation checkpointing to the model")
_COMPILED: Final = re.compile(r"Compiling each \w{1,50} with torch\.compile")
_MESH: Final = re.compile(
    r"device mesh with (?:\[([^\]\n]{0,200})\], \[([\d, ]{0,100})\]"
    r"|parallelism: pp=(?P<pp>\d{1,9}), dp_replicate=(?P<dp_replicate>\d{1,9}), "
    r"dp_shard=(?P<dp_shard>\d{1,9}), cp=(?P<cp>\d{1,9}), tp=(?P<tp>\d{1,9}), "
    r"ep=(?P<ep>\d{1,9}))"
)
"""All degrees since 0.3.0; before, the mesh had a list of its dimensions above 1."""
_WITH_EXPERTS: Final = "dp_shard_mod_ep"
"""With expert parallelism the shards are split into those within it and those over it."""
_DIMENSIONS: Final = frozenset(
    {"pp", "dp", "dp_replicate", "dp_shard", _WITH_EXPERTS, "dp_shard_in_ep", "cp", "tp"}
)
_TIMED_BY: Final = ("num_gpus", "global_batch_size", "sequence_length")


def _parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    scan = Scan(content, _MARKER, starts=_STARTS)
    settled = marked(where, scan, _MARKER, _reading)
    text = "".join(scan.sections(settled.first_line))
    log, batch = _described(text), _last(_BATCH, text)
    notes = (*settled.notes, *interval_note(where, settled.steps.step)) if settled.steps else ()
    planned, done = count(batch[5]) if batch else None, DONE["torchtitan"]
    settled, case = replace(settled, notes=notes), log.configuration
    log = training_log(settled, log, scan, planned=planned, done=done)
    return (timed(where, replace(log, timed_by=_TIMED_BY, is_untimed=True), case),)


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The last place where a start prints something: each attempt does."""
    return next(reversed([*pattern.finditer(text)]), None)


def _described(text: str) -> ParsedLog:
    """What the starts of a program print of its run."""
    gpu, model, low = _last(_GPU, text), _last(_MODEL, text), _precision(text)
    batch, mesh = _last(_BATCH, text), _last(_MESH, text)
    names = ("local_batch_size", "global_batch_size", "gradient_accumulation", "sequence_length")
    fields: dict[str, object] = {
        "framework": "torchtitan",
        **(_layout(mesh) if mesh else {}),
        **(dict(zip(names, map(count, batch.groups()), strict=False)) if batch else {}),
        "model": settings.model(model[1]) if model else None,
        "system": (settings.system(gpu[1]) or gpu[1]) if gpu else None,
        "precision": low.name,
        "options": _options(text),
    }
    return ParsedLog(
        PartialCase.model_validate({name: value for name, value in fields.items() if value}),
        doubts={"precision": low.doubt} if low.doubt else {},
        gpu_memory_bytes=size_bytes(gpu[2], 2**30) if gpu else None,
    )


def _reading(piece: Piece) -> Reading | str | None:
    """A step; its time is that of one token on one GPU, until the batch is known."""
    step = _STEP.search(piece.text)
    if _VALIDATION.search(piece.text) or not (step or _RATE.search(piece.text)):
        return None
    if _CUT.search(piece.text):
        return "a step that ends in its 'tps', which may go on on the next line"
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


def _precision(text: str) -> precision.StatedPrecision:
    """The low precision that a log reports; BF16 has no line of its own."""
    pairs: list[Pair] = []
    for kind, scaling, recipe, layers in _LOW.findall(text):
        found = recipe or scaling or ("mxfp8" if "MX" in kind + layers else "")
        pairs += [("fp8", "true"), ("fp8_recipe", "mxfp8" if "mxfp8" in found else found)]
    return precision.of(pairs)


def _options(text: str) -> dict[str, object]:
    checkpointing = _last(_CHECKPOINTING, text)
    used = {
        "enable_profiling": "Profiling active." in text,
        "activation_checkpointing": checkpointing[1] if checkpointing else False,
        "compile": bool(_COMPILED.search(text)),
    }
    return {name: value for name, value in used.items() if value}


def _layout(mesh: re.Match[str]) -> Mapping[str, int | None]:
    """How many GPUs there are, and how they share the work, if the log states each degree."""
    if mesh["pp"]:
        degree = {name: int(size) for name, size in mesh.groupdict().items()}
    else:
        names, sizes = re.findall(r"\w+", mesh[1]), [*map(int, re.findall(r"\d+", mesh[2]))]
        if len(names) != len(sizes) or not _DIMENSIONS.issuperset(names):
            return {"num_gpus": count(math.prod(sizes))}
        listed = dict(zip(names, sizes, strict=True))
        degree = {**dict.fromkeys(_DIMENSIONS, 1), **listed, "ep": _experts(listed)}
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


def _experts(listed: Mapping[str, int]) -> int:
    """The degree of expert parallelism of a mesh; 0 if tensors may be a part of it or not."""
    if _WITH_EXPERTS not in listed:
        return 1
    return 0 if "tp" in listed else listed.get("dp_shard_in_ep", 1) * listed.get("cp", 1)


FORMAT: Final = LogFormat("torchtitan", showing(_STEP_LINE), _parse, prints_means=True)
