"""The words of notes: what there is to know of a result, and why it has no figures."""

from collections.abc import Callable, Mapping
from typing import Annotated, Final

from pydantic import BeforeValidator

from perfdb.record import Note, NoteCode, Outcome, Scalar

Params = Mapping[str, Scalar | None]

ENDED: Final[Mapping[Outcome, str]] = {
    Outcome.FAILED: "the run failed",
    Outcome.OUT_OF_MEMORY: "the run ran out of memory",
    Outcome.NAN_LOSS: "the loss became NaN",
    Outcome.NAN_GRAD_NORM: "the gradient norm became NaN",
    Outcome.TIMED_OUT: "the run reached its time limit",
    Outcome.INTERRUPTED: "the run was interrupted",
    Outcome.INCOMPLETE: "the run is incomplete",
    Outcome.NO_DATA: "the source has no figures",
}
"""How a run ended, where nothing more exact is known."""

_TEMPLATES: Final[Mapping[NoteCode, str]] = {
    NoteCode.FOOTNOTE: "{text}",
    NoteCode.REPORTED: "{text}",
    NoteCode.VARIABLE_LENGTH_STEPS: (
        "steps vary in length: tokens/s/GPU counts the tokens of each step; TFLOP/s and MFU are "
        "unknown"
    ),
    NoteCode.MODEL_SHAPE: (
        "the model's shape differs from the catalog: {differences}; TFLOP/s and MFU are unknown"
    ),
    NoteCode.CUT_OFF: "the run was cut off: its runner stopped and recorded no outcome",
    NoteCode.LOSS_NOT_FINITE: "the loss is {value} at step {step}",
    NoteCode.GRAD_NORM_NOT_FINITE: "the gradient norm is {value} at step {step}",
    NoteCode.MISSING_STEP: "step {step} is missing",
    NoteCode.REPEATED_STEP: "step {step} is repeated or out of order",
    NoteCode.TOO_FEW_STEPS: "{num_steps} of {planned} steps",
    NoteCode.TOO_FEW_STEPS_FOR_WINDOW: (
        "only {num_steps} of {least} steps; {window} would include the warm-up"
    ),
    NoteCode.OTHER_DEVICE: "the worker used {device}, which is not {system}",
    NoteCode.OTHER_VERSION: "the worker ran {framework} {ran}, not {version}",
    NoteCode.OTHER_WORLD_SIZE: "the worker had {world_size} ranks, not {num_gpus}",
    NoteCode.OTHER_ARGUMENT: "the worker got {name} {value}, not {expected}",
    NoteCode.OTHER_TOKENS: (
        "step {step} has {tokens} tokens, not {global_batch_size} × {sequence_length}"
    ),
    NoteCode.NO_BENCHMARK: "a {kind} run is not a benchmark",
    NoteCode.UNLIKE_NODES: "the nodes of the run differ: {differences}",
    NoteCode.UNPLANNED_STEP: "step {step} exceeds the {planned} planned steps",
}


def note_text(note: Note) -> str:
    """A note in words, without a capital or a full stop."""
    made = _MADE.get(note.code)
    return made(note.params) if made else _TEMPLATES[note.code].format(**note.params)


def _run_ended(params: Params) -> str:
    return ENDED[Outcome(str(params["outcome"]))]


def _skipped(params: Params) -> str:
    first, last = params["first"], params["last"]
    counts = f"{params['num_steps']:,} of {params['of']:,}"
    amount = (
        f"{counts}, the first is step {last}"
        if first == last
        else f"the means of {counts}, the first of steps {first} to {last}"
    )
    return f"excludes steps that the optimizer skipped: {amount}"


def _no_step(params: Params) -> str:
    span, window = params["span"], params["window"]
    if isinstance(span, int) and span > 1:
        return f"each log line averages {span} steps, and none is entirely in {window}"
    return f"no step in {window}"


_MADE: Final[Mapping[NoteCode, Callable[[Params], str]]] = {
    NoteCode.RUN_ENDED: _run_ended,
    NoteCode.SKIPPED_STEPS: _skipped,
    NoteCode.NO_STEP_IN_WINDOW: _no_step,
}


def _in_words(value: object) -> object:
    return note_text(value) if isinstance(value, Note) else value


NoteText = Annotated[str, BeforeValidator(_in_words)]
"""A note in words, in a model that is read from the store for people."""
