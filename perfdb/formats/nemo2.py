"""NeMo 2 logs: `Training epoch E, iteration I/LAST | key: value | …`, counted from 0.

Source of the format: nemo/lightning/pytorch/callbacks/progress_printer.py.
"""

import re
from collections.abc import Iterator
from itertools import chain

from perfdb.formats import settings
from perfdb.formats.base import Content, ParsedLog, Reading
from perfdb.formats.ending import Account, training_log
from perfdb.formats.numbers import count
from perfdb.formats.piped import Columns, StepLines, Syntax
from perfdb.formats.scan import Scan, plain
from perfdb.formats.steps import numbered, settle, sizes, together

NAME = "nemo2"
WINDOW = "skip_warmup(10)"

_TIME, _STEP, _LAST, _GBS = (
    "train_step_timing in s", "global_step", "last iteration", "global_batch_size",
)  # fmt: skip
_SYNTAX = Syntax(
    marker=b"Training epoch ",
    start=r"Training epoch (\d+), iteration (\d+)/(\d+)",
    counters=("epoch", "iteration", _LAST),
    fields=(_STEP, _GBS, "peak_memory_usage", "reduced_train_loss", _TIME, "TFLOPS_per_GPU"),
    required=("iteration", _TIME),
    facts=("epoch", _LAST, _GBS),
)
_STEP_LINE = re.compile(rb"Training epoch \d+, iteration \d+/\d+ *\|")
_DONE = re.compile(r"Trainer\.fit` stopped: `max_(?:steps|epochs)=\d+` reached")


def recognises(head: bytes, name: str) -> bool:
    """Whether a step line of NeMo 2 is among the first bytes."""
    return bool(_STEP_LINE.search(plain(head)))


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The run that a log tells of."""
    scan, lines = Scan(content, _SYNTAX.marker), StepLines(where, _SYNTAX)
    readings = chain.from_iterable(_readings(lines.read(block)) for block in scan)
    steps = settle(where, readings, lines.problems)
    said = settings.mentioned(scan.preamble)
    known = settings.batch(lines.only(_GBS)) | settings.gpus(said)
    configuration = settings.configuration(said, framework="nemo", **known)
    done = bool(_DONE.search(scan.epilogue))
    account = Account(_planned(lines), scan.epilogue, done)
    return (training_log(configuration, steps, account, WINDOW),)


def _readings(columns: Columns) -> Iterator[Reading]:
    return together(
        columns.lines,
        _steps(columns),
        columns.of(_TIME),
        loss=columns.of("reduced_train_loss"),
        peak_memory_bytes=sizes(columns.of("peak_memory_usage")),
        model_tflops_per_sec_per_gpu=columns.of("TFLOPS_per_GPU"),
    )


def _steps(columns: Columns) -> list[int]:
    """Steps from 1. The iteration starts again with each epoch; the global step does not."""
    printed = columns.of(_STEP)
    if None in printed:
        counted = zip(
            columns.of("epoch"), columns.of(_LAST), columns.of("iteration"), printed, strict=True
        )
        printed = [
            step if step is not None else (epoch or 0) * ((last or 0) + 1) + (iteration or 0)
            for epoch, last, iteration, step in counted
        ]
    return numbered(printed, base=0)


def _planned(lines: StepLines) -> int | None:
    """The steps up to the end of the epoch that the log ends in."""
    epoch, last = lines.last.get("epoch"), lines.last.get(_LAST)
    return count((epoch + 1) * (last + 1)) if epoch is not None and last is not None else None
