"""The global batch size by the step lines: a log whose lines disagree never has a wrong rate."""

import pytest

from perfdb import aggregation
from perfdb.formats import FORMATS, ParsedLog, batch
from perfdb.formats.columns import Steps as Readings

ARGUMENTS = "  seq_length ............ 4096\n  global_batch_size ............ 128\n"
CONFIGURATION = "ConfigContainer:\n  seq_length: 4096\n  global_batch_size: 128\n"
MEGATRON = (
    " iteration %8d/      40 | consumed samples: 12 | elapsed time per iteration (ms): 500.0 | "
    "global batch size: %5d | lm loss: 1.5 | number of nan iterations:   0 |\n"
)
NEMO = (
    "Training epoch 0, iteration %d/39 | global_batch_size: %d | reduced_train_loss: 1.5 | "
    "train_step_timing in s: 0.5\n"
)
START = {
    "megatron_lm": ARGUMENTS,
    "megatron_bridge": CONFIGURATION,
    "nemo2": "seq_length=4096, global_batch_size=128\n",
}
Batches = dict[int, int]


def log(name: str, batches: Batches, start: str | None = None, **given: str | int) -> ParsedLog:
    """A log with a line for each step that has a batch."""
    lines = (
        NEMO % (step - 1, size) if name == "nemo2" else MEGATRON % (step, size)
        for step, size in batches.items()
    )
    text = (START[name] if start is None else start) + "".join(lines)
    return parsed(name, text, **given)


def parsed(name: str, text: str, window: str | None = None, asked: int | None = None) -> ParsedLog:
    (found,) = FORMATS[name].parse("a.log", [text.encode()])
    return batch.of_window("a.log", found, aggregation.named(window or found.window or ""), asked)


def ramp(*sizes: tuple[int, int], every: int = 1) -> Batches:
    """So many steps of each size, one behind the other."""
    each = [size for count, size in sizes for _ in range(count)]
    return dict(list(enumerate(each, start=1))[every - 1 :: every])


def said(found: ParsedLog) -> tuple[int | None, set[int | None]]:
    return found.configuration.global_batch_size, {one.tokens for one in found.steps}


@pytest.mark.parametrize("name", START)
def test_the_steps_of_the_window_have_the_batch_that_is_stated(name: str) -> None:
    found = log(name, ramp((8, 32), (32, 64)))
    assert (64, {32 * 4096, 64 * 4096}) == said(found)
    expected = (
        "the global batch size changes between 32 and 64: all steps of skip_warmup(10) have 64"
    )
    assert expected in [note.message for note in found.notes]


@pytest.mark.parametrize("name", START)
def test_no_batch_is_stated_where_the_steps_of_the_window_have_several(name: str) -> None:
    """Not even by a file beside the log: it is said to be none."""
    found = log(name, ramp((30, 64), (10, 128)))
    assert (None, {64 * 4096, 128 * 4096}) == said(found)
    assert "global_batch_size" in found.configuration.model_fields_set
    assert "none is stated; pass --window" in str(found.notes[-1])


@pytest.mark.parametrize("name", START)
def test_the_window_that_was_asked_for_settles_the_batch(name: str) -> None:
    """All steps of the window of the format have 64 and then 128, those from step 31 on 128."""
    batches = ramp((30, 64), (10, 128))
    found = log(name, batches, window="window(31,40)")
    assert (128, {64 * 4096, 128 * 4096}) == said(found)
    expected = (
        "the global batch size changes between 64 and 128: all steps of window(31,40) have 128"
    )
    assert [expected] == [note.message for note in found.notes if "batch" in note.message]

    found = log(name, ramp((8, 32), (32, 64)), window="window(5,40)")
    assert found.configuration.global_batch_size is None


@pytest.mark.parametrize("name", START)
def test_no_more_is_asked_for_where_the_batch_is_stated(name: str) -> None:
    found = log(name, ramp((30, 64), (10, 128)), asked=128)
    assert (
        "a.log: the global batch size changes between 64 and 128, and not all steps of "
        "skip_warmup(10) have the same"
    ) == str(found.notes[-1])


@pytest.mark.parametrize("name", START)
def test_the_tokens_of_steps_are_known_once_the_sequence_length_is(name: str) -> None:
    """As of --set: with another window the rate would else be of the wrong batch."""
    found = log(name, ramp((8, 32), (32, 64)), start="ConfigContainer:\n")
    assert (64, {None}) == said(found)
    told = Readings.of(batch.with_tokens(found, 4096).steps)
    assert {32 * 4096, 64 * 4096} == {one.tokens for one in told}
    assert batch.PRINTED not in told.columns


@pytest.mark.parametrize("name", START)
def test_the_lines_win_over_the_settings_and_a_note_says_so(name: str) -> None:
    found = log(name, ramp((40, 64)))
    assert (64, {None}) == said(found)
    expected = "its settings say global batch size 128, its step lines 64: that is taken"
    # NeMo's lines use the name of the setting: what is said in two ways counts as not said.
    is_setting = name != "nemo2"
    assert [expected] * is_setting == [note.message for note in found.notes]


@pytest.mark.parametrize("name", START)
def test_a_batch_that_all_agree_on_is_stated_without_a_note(name: str) -> None:
    found = log(name, ramp((40, 128)))
    assert ((128, {None}), ()) == (said(found), found.notes)


def test_a_mean_over_a_change_of_the_batch_is_of_several() -> None:
    """Line 20 says 64 and is the mean of steps 11 to 20, of which some had 32."""
    found = log("megatron_lm", ramp((15, 32), (25, 64), every=10))
    assert found.configuration.global_batch_size is None
    # The line of steps 9 to 12 is in no window behind step 10, nor is the one before it.
    found = log("megatron_lm", ramp((8, 32), (32, 64), every=4))
    assert 64 == found.configuration.global_batch_size
