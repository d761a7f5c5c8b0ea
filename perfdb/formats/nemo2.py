"""NeMo 2 logs: `Training epoch E, iteration I/LAST | key: value | …`, counted from 0.

Source of the format: nemo/lightning/pytorch/callbacks/progress_printer.py.
"""

import re
from collections.abc import Iterator

from perfdb.formats import settings
from perfdb.formats.base import Content, ParsedLog, Reading
from perfdb.formats.ending import Account, ending
from perfdb.formats.numbers import count, size_bytes
from perfdb.formats.piped import Columns, StepLines, Syntax
from perfdb.formats.scan import Scan
from perfdb.formats.steps import settle

NAME = "nemo2"
WINDOW = "skip_warmup(10)"

_TIME, _STEP, _LAST = "train_step_timing in s", "global_step", "last iteration"
_SYNTAX = Syntax(
    marker=b"Training epoch ",
    start=r"Training epoch (\d+), iteration (\d+)/(\d+)",
    counters=("epoch", "iteration", _LAST),
    fields=(
        _STEP, "global_batch_size", "peak_memory_usage", "reduced_train_loss", _TIME,
        "TFLOPS_per_GPU",
    ),
    required=("iteration", _TIME),
)  # fmt: skip
_STEP_LINE = re.compile(rb"Training epoch \d+, iteration \d+/\d+ *\|")
_DONE = re.compile(r"Trainer\.fit` stopped: `max_(?:steps|epochs)=\d+` reached")


def recognises(head: bytes, name: str) -> bool:
    """Whether a step line of NeMo 2 is among the first bytes."""
    return bool(_STEP_LINE.search(head))


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The run that a log tells of."""
    scan = Scan(content, _SYNTAX.marker)
    lines = StepLines(where, _SYNTAX)
    blocks = [lines.read(block) for block in scan]
    readings = (reading for block in blocks for reading in _readings(block))
    steps = settle(where, readings, (problem for block in blocks for problem in block.problems))
    planned = _planned(blocks)
    last_words = scan.epilogue
    end = ending(Account(steps.readings, planned, last_words, bool(_DONE.search(last_words))))
    log = ParsedLog(
        configuration=settings.configuration(_settings(scan.preamble, blocks), framework="nemo"),
        readings=steps.readings,
        planned_steps=planned,
        window=WINDOW,
        outcome=end.outcome,
        error=end.error,
        problems=steps.problems,
        notes=steps.notes,
    )
    return (log,)


def _readings(columns: Columns) -> Iterator[Reading]:
    cells = zip(
        columns.lines,
        columns.of("epoch"),
        columns.of("iteration"),
        columns.of(_LAST),
        columns.of(_STEP),
        columns.of(_TIME),
        columns.of("reduced_train_loss"),
        columns.of("peak_memory_usage"),
        columns.of("TFLOPS_per_GPU"),
        strict=True,
    )
    for line, epoch, iteration, last, step, seconds, loss, memory, tflops in cells:
        ...
