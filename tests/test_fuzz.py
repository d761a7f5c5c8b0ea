"""Whatever befalls a file, its reader neither fails nor hangs nor makes up a number.

A quick run of each target of `make fuzz`, the inputs that once showed a fault, and files of absurd
shapes.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import URL, select

from perfdb import yamlfile
from perfdb.db.tables import results, runs
from perfdb.errors import Diagnostic
from perfdb.formats import FORMATS, ParsedLog, Reading
from perfdb.formats.base import Content, LogFormat
from perfdb.formats.columns import Steps
from perfdb.record import Figures, PartialCase
from tests.fuzz import seeds, trees
from tests.fuzz.minimise import minimised
from tests.fuzz.mutations import LAUGHS, MUTATIONS
from tests.fuzz.oracles import check_cut, check_log
from tests.fuzz.targets import TARGETS, checked, of_log
from tests.logs import SET, nemo
from tests.trees import rows_of

FOUND = sorted((Path(__file__).parent / "data" / "fuzz").glob("*/*"))
EXAMPLES = 10
MIB = 1 << 20


@st.composite
def damaged(draw: st.DrawFn, name: str) -> bytes:
    """A file that means something to a reader, after up to three accidents."""
    whole = st.sampled_from(seeds.of(name))
    content = draw(whole)
    for mutation in draw(st.lists(st.sampled_from(sorted(MUTATIONS)), min_size=1, max_size=3)):
        chance = Random(draw(st.integers(0, 2**32)))
        content = MUTATIONS[mutation](chance, content, draw(whole))
    return content[: TARGETS[name].most_bytes]


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_damaged_is_read_or_refused_and_never_made_up(name: str) -> None:
    """Cut, flipped, mixed, recoded, stretched, nested: the checks of tests.fuzz.oracles hold."""

    @settings(
        max_examples=3 if name == "tree" else EXAMPLES,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(damaged(name))
    def holds(content: bytes) -> None:
        checked(name, content)

    holds()


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_input_that_once_showed_a_fault_shows_none(path: Path) -> None:
    """`make fuzz` adds to them."""
    checked(path.parent.name, path.read_bytes())


@pytest.mark.parametrize("name", ["archive", "run"])
def test_whole_files_are_read_without_a_fault(name: str) -> None:
    """What the readers are for, among it zip bombs."""
    for content in seeds.of(name):
        checked(name, content)


@pytest.mark.slow
def test_a_line_of_100_mb_amid_the_steps_is_passed_over(sqlite: URL, tmp_path: Path) -> None:
    """In bounded memory; the steps before and behind it are read."""
    path = tmp_path / "train.log"
    lines = nemo().encode().splitlines(keepends=True)
    with path.open("wb") as file:
        file.writelines(lines[:10])
        for _ in range(100):
            file.write(b"x" * MIB)
        file.write(b"\n")
        file.writelines(lines[10:])
    command = "from perfdb.cli import main; main()"
    options = [word for one in SET for word in ("--set", one)]
    limit = 1536 * MIB
    done = subprocess.run(
        [sys.executable, "-c", command, "ingest", path, *options, "--db", str(sqlite.database)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert 0 == done.returncode, done.stderr
    assert [(10, 2.1)] == rows_of(sqlite, select(results.c.num_steps, results.c.step_time_s))
    assert [("finished",)] == rows_of(sqlite, select(runs.c.outcome))


def test_megabytes_without_an_end_of_line_hold_no_step() -> None:
    """Be they of the very words that steps are known by."""

    def endless() -> Iterator[bytes]:
        for _ in range(2):
            yield b"step: 1  loss: tps: elapsed time per iteration (ms): " * (MIB // 212)

    for name, member in FORMATS.items():
        if not seeds.NAMES.get(name, "train.log").endswith((".json", ".yaml")):
            assert not any(log.steps for log in member.parse("train.log", endless())), name


@pytest.mark.parametrize("mark", ["*", "[", "[^", "<sup>", "<!--", "<td>"])
def test_a_cell_of_many_marks_takes_no_longer_than_another(mark: str) -> None:
    """The time grows with their number, not with the square of it."""
    cell = mark * (40_000 // len(mark))
    page = f"| Model | GBS | Tokens / sec / GPU {cell}x |\n|---|---|---|\n| a | 1 | 2 |\n"
    checked("page", page.encode())


def test_a_document_of_billions_of_values_or_without_end_is_refused() -> None:
    """Its aliases are counted, not followed."""
    found = yamlfile.parse("a.yaml", LAUGHS.decode())
    assert isinstance(found, yamlfile.Unreadable)
    assert [
        "a.yaml: more than 262,144 values or 26,214,400 characters, with what its aliases (*) "
        "stand for; write out what they stand for"
    ] == list(map(str, found.problems))
    assert isinstance(yamlfile.parse("a.yaml", "a: &a [*a]\n"), yamlfile.Unreadable)
    read = yamlfile.parse("a.yaml", "a: &a [1, 2]\nb: *a\n")
    assert isinstance(read, yamlfile.Document)
    assert {"a": [1, 2], "b": [1, 2]} == read.content


@pytest.mark.parametrize(
    "text", ["a: " + "[" * 101, "# " + "]" * 200 + "\na: " + "[" * 101, "a: ]]][[[" + "[" * 98]
)
def test_what_closes_no_bracket_makes_up_for_none(text: str) -> None:
    """Brackets in a comment are counted, too, but they open no room for others."""
    found = yamlfile.parse("a.yaml", text)
    assert isinstance(found, yamlfile.Unreadable)
    assert ["more than 100 brackets in one another"] == [one.message for one in found.problems]


def test_a_number_that_python_does_not_write_is_refused() -> None:
    """It reads 5,000 hexadecimal digits, and writes no more than 4,300 decimal ones."""
    found = yamlfile.parse("a.yaml", f"a: 0x{'f' * 5000}\n")
    assert isinstance(found, yamlfile.Unreadable)
    assert [Diagnostic("a.yaml", "not YAML: an integer of more than 1,000 digits", line=1)] == list(
        found.problems
    )


ROW = "|Model|GBS|#-GPUs|Sequence Length|TFLOP / sec / GPU|\n|-|-|-|-|-|\n|a|1|8|1|1|\n\n"
GROWING: Mapping[str, tuple[str, int, Callable[[int], str]]] = {
    "aliases of aliases of a long text": (
        "megatron_config",
        1000,
        lambda size: (
            f"MODEL_ARGS:\n  a: 1\nb: &b {'x' * size}\nc: &c [{'*b, ' * (size // 4)}]\n"
            f"d: [{'*c, ' * (size // 4)}]\n"
        ),
    ),
    "tables": ("page", 300, lambda size: ROW * size),
    "lines of HTML": ("page", 2000, lambda size: "<b>a</b>\n" * size),
    "elements that nobody sees": ("page", 6000, lambda size: f"<html>{'<svg></svg>' * size}"),
    "line breaks": ("page", 8000, lambda size: f"<html>{'<br><b>a</b>' * size}"),
}
"""By their name: the target, a size, and the input of that size."""


@pytest.mark.parametrize("what", GROWING)
def test_twice_the_input_takes_at_most_three_times_the_time(what: str) -> None:
    """Of a processor, whatever else the machine does; what took the square took four times it."""
    name, size, made = GROWING[what]
    TARGETS[name].check(made(1).encode())  # what is loaded once

    def seconds(content: bytes) -> float:
        began = time.process_time()
        TARGETS[name].check(content)
        return time.process_time() - began

    once, twice = (min(seconds(made(n).encode()) for _ in range(2)) for n in (size, 2 * size))
    assert twice < 3 * max(once, 0.05)


TEXT = b"iteration 1: 2500 ms\niteration 2: 3500 ms\n"
GOOD = ParsedLog(PartialCase(), steps=Steps.of((Reading(1, 1, 2.5), Reading(2, 2, 3.5))))


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": (Reading(2, 2, 3.5), Reading(1, 1, 2.5))},
        {"steps": (Reading(1, 1, 25.0),)},
        {"steps": (Reading(9, 1, 2.5),)},
        {"steps": (Reading(1, 1, float("nan")),)},
        {"emitted": Figures(mfu=float("inf"))},
        {"problems": (Diagnostic("a.log", "bad", line=99),)},
    ],
    ids=str,
)
def test_the_oracle_sees_a_wrong_number_line_or_order(wrong: dict[str, object]) -> None:
    check_log(GOOD, TEXT, ("step", "step_time_s"))
    changed = {name: Steps.of(one) if name == "steps" else one for name, one in wrong.items()}
    with pytest.raises(AssertionError):
        check_log(replace(GOOD, **changed), TEXT, ("step", "step_time_s"))


def test_the_oracle_sees_a_step_that_a_longer_file_or_its_chunks_change() -> None:
    check_cut([replace(GOOD, steps=GOOD.steps[:1])], [GOOD])
    with pytest.raises(AssertionError):
        check_cut([replace(GOOD, steps=Steps.of((Reading(1, 1, 9.5),)))], [GOOD])

    def careless(where: str, content: Content) -> tuple[ParsedLog, ...]:
        own = FORMATS["megatron_lm"].parse
        return tuple(one for chunk in content for one in own(where, [chunk]))

    with pytest.raises(AssertionError):
        of_log(LogFormat("megatron_lm", lambda head, name: 1, careless), TEXT)


def test_an_input_is_made_small_and_its_files_read_back() -> None:
    whole = b"a line\n" * 50 + b"nan" + b"more\n" * 20 + b"inf"
    assert b"naninf" == minimised(whole, lambda one: b"nan" in one and b"inf" in one)
    files = [("a/b.log", b"1\n"), ("run.json", b"{}"), ("empty.md", b"")]
    assert files == list(trees.files(trees.joined(files)))


@pytest.mark.filterwarnings("ignore:XDG_RUNTIME_DIR")
def test_the_program_that_kills_commands_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs for half an hour, so nothing else here would show that it is broken."""
    from tests.fuzz import kills

    monkeypatch.setattr(sys, "argv", ["kills", "--help"])
    with pytest.raises(SystemExit, match="0"):
        kills.main()
