"""Tells of a log without a step which program began there, and whether it ends in an error.

A run that dies before its first step prints its arguments or its configuration, and why it died.
"""

from collections.abc import Mapping
from typing import Final

from perfdb.formats import (
    automodel_console,
    iterations,
    megatron_bridge,
    megatron_lm,
    nemo1,
    nemo2,
    torchtitan,
)
from perfdb.formats.ending import Ending, broken_start
from perfdb.log_text import decoded, plain

STARTS: Final[Mapping[str, tuple[bytes, ...]]] = {
    megatron_bridge.NAME: (b"ConfigContainer",),
    megatron_lm.NAME: (b"-------- arguments --------",),
    automodel_console.NAME: (b"Experiment_details:", b"- nemo_automodel: "),
    torchtitan.NAME: (b"[titan] ", b" device mesh with parallelism: "),
    nemo1.NAME: (b" exp_manager:", b" nlp_overrides:"),
    nemo2.NAME: (b"[NeMo I 20", b"[NeMo W 20", b"MegatronStrategy("),
}
"""What a program prints when it begins, by its format; one that prints another's, too, is first."""

_DONE: Final = (iterations.DONE, nemo1.DONE, torchtitan.DONE)


def started(text: bytes) -> str | None:
    """The format whose program begins in a part of a log."""
    shown = plain(text)
    return next((name for name, said in STARTS.items() if any(map(shown.__contains__, said))), None)


def died(tail: bytes, start: str | None) -> Ending | None:
    """How a log without a step ends by its last bytes, if in an error. `start`: what began."""
    text = decoded(plain(tail))
    is_done = any(one.search(text) for one in _DONE)
    return None if is_done else broken_start(text, is_training=start is not None)
