"""What closes the gates of `perfdb compare`, and what its rows say of runs, keys and order."""

import json
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.compare import Judgement, Verdict, comparison, report
from perfdb.record import Case, Release
from tests.factories import case, release, stored, write_run
from tests.shell import Shell
from tests.test_compare import at, printed


@pytest.fixture
def compare(sqlite: URL, perfdb: Shell) -> Shell:
    """`perfdb compare 1 2` on the store."""
    return partial(perfdb, "compare", "1", "2", "--db", sqlite.render_as_string())


@pytest.fixture
def ran(sqlite: URL, tmp_path: Path) -> "Ran":
    return Ran(sqlite, tmp_path)


class Ran:
    """Stores runs of steady steps, which differ in earnest beyond 1.6 %."""

    def __init__(self, store: URL, folder: Path) -> None:
        self.store, self.folder, self.count = store, folder, 0

    def __call__(self, version: str, seconds: float, **changed: object) -> None:
        self.count += 1
        fields = {"release": release(version)} | changed
        name, steps = f"r{self.count}", [seconds] * 10
        stored(self.store, write_run(self.folder, run_id=name, step_times=steps, **fields))


def test_runs_that_fail_beside_one_that_finishes_close_the_gate(compare: Shell, ran: Ran) -> None:
    for version in ("1", "2"):
        ran(version, 12.0)
    for _ in range(2):
        ran("2", 12.0, outcome="out_of_memory")

    code, out, err = compare("--fail-on", "slower,missing")
    [match] = json.loads(compare("--json").stdout)["matched"]
    silent = compare("--fail-on", "slower")

    said = "2 of 3 runs failed: out of memory"
    assert (1, "", True) == (code, err, said in out.replace("\n", " "))
    assert ("same", None, said) == (match["verdict"], match["failed_a"], match["failed_b"])
    assert (0, "warning: 1 failed, and --fail-on missing was not asked for\n") == (
        silent.code, silent.stderr,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("of_a", "of_b", "code"),
    [
        (("out_of_memory",), ("out_of_memory",), 0),  # as often as before
        (("out_of_memory",), (), 0),
        ((), ("timed_out",), 1),
        ((), ("interrupted",), 0),  # stopped from outside, and run anew
    ],
)
def test_only_more_failures_than_before_close_it(
    compare: Shell, ran: Ran, of_a: tuple[str, ...], of_b: tuple[str, ...], code: int
) -> None:
    for version, outcomes in (("1", of_a), ("2", of_b)):
        ran(version, 12.0)
        for outcome in outcomes:
            ran(version, 12.0, outcome=outcome)

    assert code == compare("--fail-on", "missing").code


def test_what_is_slower_by_less_than_asked_closes_no_gate(compare: Shell, ran: Ran) -> None:
    """12/12.24 is 2.0 % less."""
    ran("1", 12.0)
    ran("2", 12.24)

    codes = [
        compare("--fail-on", "slower", *more).code
        for more in ((), ("--min-change", "1%"), ("--min-change", "3 %"))
    ]

    assert [1, 1, 0] == codes
    assert "1 slower" in compare("--min-change", "3%").stdout


def test_a_gate_closes_on_exactly_the_change_that_was_asked_for() -> None:
    """1 - 900/1,000 is 0.09999999999999998 as a float."""
    found = comparison([printed(1_000)], [printed(900)])
    assert [1, 0] == [len(found.slower(least)) for least in (0.1, 0.101)]


def test_the_document_has_keys_and_containers(compare: Shell, ran: Ran) -> None:
    old, new = case(tensor_parallel=2), case()
    box = Release(framework="megatron-core", version="2", container="acme/mcore:n2")
    ran("1", 12.0, case=old)
    ran("2", 12.0, case=new, release=box)

    [match] = json.loads(compare("--json").stdout)["matched"]

    assert ("workload", old.workload_key, old.key, new.key) == (
        match["level"], match["workload_key"], match["case_key_a"], match["case_key_b"],
    )  # fmt: skip
    assert (None, "acme/mcore:n2") == (match["container_a"], match["container_b"])


def test_a_version_in_several_containers_asks_to_name_one(
    compare: Shell, ran: Ran, perfdb: Shell
) -> None:
    """In x the work is 5 % slower in 2, which y hides."""
    for version, box, seconds in (("1", "x", 12.0), ("1", "y", 12.6), ("2", "x", 12.6)):
        boxed = Release(framework="megatron-core", version=version, container=box)
        ran(version, seconds, release=boxed)

    pooled, store = compare("--fail-on", "slower"), compare.args[-1]
    named = "megatron-core 1 [x]"
    alone = perfdb("compare", named, "2", "--db", store, "--fail-on", "slower")

    said = "the runs of megatron-core 1 are of several containers: name one"
    assert 0 == pooled.code
    assert pooled.stderr.startswith(f"warning: {said}, such as '{named}'\n")
    assert "2 containers, median" in " ".join(pooled.stdout.split())
    assert (1, "") == (alone.code, alone.stderr)


def test_layouts_of_the_same_work_stand_in_their_order() -> None:
    """By their keys, which are hashes, they would stand in none."""
    layouts: list[Case] = [
        case(tensor_parallel=tensor, micro_batch_size=batch)
        for tensor, batch in ((None, 1), (1, 1), (2, 1), (4, 1), (16, 1), (1, 2), (1, 16))
    ]
    both = [at(4.0, case=layout) for layout in reversed(layouts)]

    found = comparison(both, both).matched
    alone = comparison(both, ()).only_a

    expected = [(layout.tensor_parallel, layout.micro_batch_size) for layout in layouts]
    shown = [one.a.shown for one in found], [one.shown for one in alone]
    assert [expected, expected] == [
        [(one.tensor_parallel, one.micro_batch_size) for one in some] for some in shown
    ]


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.973, 0.99968, "0.9730 – 0.9997"),  # slower, and 1 is outside
        (1.00004, 1.02, "1.00004 – 1.02000"),
        (0.973, 0.996, "0.973 – 0.996"),
        (0.973, 1.0003, "0.973 – 1.000"),  # 1 is inside
        (0.99968, 1.0, "1.000 – 1.000"),
    ],
)
def test_an_interval_that_leaves_out_1_is_printed_so(low: float, high: float, said: str) -> None:
    assert said == report.interval(Judgement(0.985, low, high, Verdict.SLOWER))
