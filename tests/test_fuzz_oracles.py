"""The fuzzer's oracles see what they are there to see: each is shown a reader that errs."""

from dataclasses import replace

import pytest

from perfdb.db.rows import StepRow
from perfdb.errors import Diagnostic
from perfdb.formats import FORMATS, ParsedLog, Reading
from perfdb.formats.base import Content, LogFormat
from perfdb.formats.columns import Steps
from perfdb.record import Figures, PartialCase
from tests.fuzz import trees
from tests.fuzz.minimise import minimised
from tests.fuzz.oracles import check_cut, check_log, check_step
from tests.fuzz.targets import Target, checked, of_log

TEXT = b"iteration 1: 2500 ms\niteration 2: 3500 ms\n"
GOOD = ParsedLog(PartialCase(), steps=Steps.of((Reading(1, 1, 2.5), Reading(2, 2, 3.5))))
PRINTED = ("step", "step_time_s")


def test_what_is_right_passes() -> None:
    check_log(GOOD, TEXT, PRINTED)
    check_cut([replace(GOOD, steps=GOOD.steps[:1])], [GOOD])


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": (Reading(2, 2, 3.5), Reading(1, 1, 2.5))},
        {"steps": (Reading(1, 1, 2.5), Reading(1, 1, 2.5))},
        {"steps": (Reading(1, 1, 25.0),)},
        {"steps": (Reading(2, 1, 2.5),)},
        {"steps": (Reading(9, 1, 2.5),)},
        {"steps": (Reading(1, 1, float("nan")),)},
        {"steps": (Reading(1, 1, 2.5, peak_memory_bytes=0),)},
        {"emitted": Figures(mfu=float("inf"))},
        {"emitted": Figures(step_time_s=0)},
        {"problems": (Diagnostic("a.log", "bad", line=99),)},
    ],
    ids=str,
)
def test_a_wrong_number_line_or_order_is_seen(wrong: dict[str, object]) -> None:
    changed = {name: Steps.of(one) if name == "steps" else one for name, one in wrong.items()}
    with pytest.raises(AssertionError):
        check_log(replace(GOOD, **changed), TEXT, PRINTED)


@pytest.mark.parametrize("changed", [Reading(1, 1, 9.5), Reading(1, 7, 2.5)])
def test_a_step_that_a_longer_file_changes_is_seen(changed: Reading) -> None:
    with pytest.raises(AssertionError):
        check_cut([replace(GOOD, steps=Steps.of((changed,)))], [GOOD])


def careless(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """Reads each chunk by itself."""
    own = FORMATS["megatron_lm"].parse
    return tuple(one for chunk in content for one in own(where, [chunk]))


def test_a_reader_that_depends_on_the_chunks_is_seen() -> None:
    with pytest.raises(AssertionError):
        of_log(LogFormat("megatron_lm", lambda head, name: 1, careless), TEXT)


def test_what_takes_long_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.targets.TARGETS", {"slow": Target(lambda _: None)})
    monkeypatch.setattr("tests.fuzz.targets.MOST_SECONDS", 0)
    with pytest.raises(AssertionError, match="slow took"):
        checked("slow", b"")


def test_a_step_that_no_column_should_hold_is_seen() -> None:
    good = StepRow(1, 2.5, None, 1.5, 1.5, 8, 8, False, 1)
    check_step(good)
    for wrong in ({"step_time_min_s": -1.0}, {"loss": float("nan")}, {"tokens": -1}):
        with pytest.raises(AssertionError):
            check_step(good._replace(**wrong))


def test_an_input_is_made_small() -> None:
    whole = b"a line\n" * 50 + b"nan" + b"more\n" * 20 + b"inf"
    assert b"naninf" == minimised(whole, lambda one: b"nan" in one and b"inf" in one)


def test_files_of_an_input_read_back() -> None:
    files = [("a/b.log", b"1\n"), ("run.json", b"{}"), ("empty.md", b"")]
    assert files == list(trees.files(trees.joined(files)))
