"""Knows a log that tells of a run of which the store has another log: the run counts once.

Two renderings of what a job printed, such as a copy without colours, have other bytes and the same
steps. A log that was moved while its run went on begins with the bytes of the earlier one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import groupby, zip_longest
from operator import itemgetter
from typing import Final

from sqlalchemy import Connection, RowMapping, or_

from perfdb.db import keys
from perfdb.db import runs as stored_runs
from perfdb.db.rows import StepRow
from perfdb.db.tables import cases, releases, runs
from perfdb.errors import Problem
from perfdb.ingest import grown
from perfdb.ingest.read import RunRead
from perfdb.queries import tellings
from perfdb.record import Outcome

_HEAD: Final = 3
"""The steps that a run is looked up by: the first ones differ most from one run to another."""

_AT_ONCE: Final = 1 << 12
"""Steps that are held as rows at a time."""

_DUST: Final = 1e-9
"""The deviation that equal times may have by rounding, as a share of the step time."""

Timed = tuple[int, float]
"""A step and its time."""


@dataclass(frozen=True)
class Twin:
    """The log of a run in force of which another one tells, too, and what is said of that.

    `grew`: the other one tells more of it and takes its place.
    """

    path: str
    note: Problem
    grew: bool = False


@dataclass(frozen=True)
class _Other:
    """A run in force that was read from a log, and which of the steps that are looked up it has."""

    row: RowMapping
    head: frozenset[Timed]


class _Steps(Enum):
    """How the steps of a log are to those of a run."""

    SAME = auto()
    MORE = auto()
    FEWER = auto()
    OTHERS = auto()


def apart(given: Sequence[RunRead]) -> Iterator[Sequence[RunRead]]:
    """The same runs in portions: those that may be one run follow one another, each of which finds
    in the store what the portions before it have told.
    """
    portion: list[RunRead] = []
    starts, heads = set[tuple[Timed, ...]](), set[tuple[Timed, ...]]()
    for read in given:
        head = tuple(_head(read))
        own = {head[:end] for end in range(1, len(head) + 1)}
        if head in starts or own & heads:
            yield portion
            portion, starts, heads = [], set(), set()
        portion.append(read)
        starts |= own
        heads.add(head)
    if portion:
        yield portion


def found(connection: Connection, fresh: Sequence[RunRead]) -> Mapping[str, Twin]:
    """The logs that tell of runs in force under other ids, by the ids of their own runs.

    Where a log tells more of a run, the run takes its id.
    """
    given = [read for read in fresh if _head(read)]
    others = _by_step(_others(connection, given)) if given else {}
    twins: dict[str, Twin] = {}
    for read in given:
        run_id = read.run.run.run_id
        for other in others.get(_head(read)[0], ()):
            if twin := _twin(connection, read, other):
                twins[run_id] = twin
                if twin.grew:
                    stored_runs.rename(connection, other.row["id"], run_id)
                break
    return twins


def _twin(connection: Connection, read: RunRead, other: _Other) -> Twin | None:
    if twin := _of_bytes(connection, read, other.row):
        return twin
    head = _head(read)
    is_alike = len(head) == _HEAD and other.head.issuperset(head)
    return _of_steps(connection, read, other.row) if is_alike else None


def noted(read: RunRead, twins: Mapping[str, Twin]) -> RunRead:
    """A log with the note that it takes the place of its twin; one that is not stored has none."""
    twin = twins.get(read.run.run.run_id)
    if twin is None:
        return read
    return replace(read, notes=(*read.notes, twin.note) if twin.grew else ())


def _head(read: RunRead) -> Sequence[Timed]:
    """The first steps of a log; none of a run directory."""
    if read.run.run.recipe is not None:
        return ()
    return [(step.step, step.step_time_s) for step in read.run.steps[:_HEAD]]


def _subject(read: RunRead) -> tuple[str, str]:
    result = read.run.result
    return result.case.key, result.release.key


def _others(connection: Connection, given: Sequence[RunRead]) -> Iterator[_Other]:
    """The runs that may be the same: of these cases and releases, or unfinished."""
    of_cases, of_releases = map(set, zip(*map(_subject, given), strict=True))
    case_ids = keys.known(connection, cases, cases.c.key, of_cases).values()
    release_ids = keys.known(connection, releases, releases.c.key, of_releases).values()
    which = or_(
        runs.c.outcome != Outcome.FINISHED.value,
        runs.c.case_id.in_(case_ids) & runs.c.release_id.in_(release_ids),
    )
    heads = {timed for read in given for timed in _head(read)}
    rows = connection.execute(tellings.of_logs(which, heads)).mappings()
    for _, group in groupby(rows, key=itemgetter("id")):
        some = list(group)
        yield _Other(some[0], frozenset((row["step"], row["step_time_s"]) for row in some))


def _by_step(others: Iterable[_Other]) -> Mapping[Timed, Collection[_Other]]:
    found: dict[Timed, list[_Other]] = {}
    for other in others:
        for timed in other.head:
            found.setdefault(timed, []).append(other)
    return found


def _of_bytes(connection: Connection, read: RunRead, row: RowMapping) -> Twin | None:
    """A log that goes on where an unfinished one of its format ends, or the other way round."""
    path = row["path"]
    if row["parser"] != read.files.record_file.parser:
        return None
    if row["outcome"] != Outcome.FINISHED and grown.begins_with(read, row):
        message = f"begins with the unfinished log {path}: it is that run, grown on"
        return Twin(path, Problem(read.path, message), grew=True)
    if _is_cut(read) and grown.is_start_of(connection, read, row):
        return Twin(path, Problem(read.path, f"tells of the same run as {path}, which goes on"))
    return None


def _of_steps(connection: Connection, read: RunRead, row: RowMapping) -> Twin | None:
    """A log is the same run where its steps are, of which the first are known to be; one that says
    no end may have fewer of them.
    """
    if _subject(read) != (row["case_key"], row["release_key"]):
        return None
    if row["sha256"] == read.files.record_file.sha256:
        return None  # a file that holds several runs
    steps, num_shared = _compared(connection, read.run.steps, row["id"])
    if not _differ(read, num_shared, whole=steps is _Steps.SAME):
        return None
    path, is_cut = row["path"], _is_cut(read)
    message = f"tells of the same run as {path}: its steps are the same"
    is_more = steps is _Steps.MORE or (steps is _Steps.SAME and not is_cut)
    if is_more and row["outcome"] == Outcome.INCOMPLETE:
        return Twin(path, Problem(read.path, f"{message}, and it tells more: it holds"), grew=True)
    if steps is _Steps.SAME or (steps is _Steps.FEWER and is_cut):
        return Twin(path, Problem(read.path, message))
    return None


def _is_cut(read: RunRead) -> bool:
    """Whether a log ends without saying how its run did."""
    return read.run.run.outcome is Outcome.INCOMPLETE


def _compared(connection: Connection, given: Sequence[StepRow], number: int) -> tuple[_Steps, int]:
    """How steps are to those of a run in the store, and how many they share."""
    answer = connection.execute(
        tellings.steps_of(number), execution_options={"yield_per": _AT_ONCE}
    )
    with answer:
        said = ((step.step, step.step_time_s, step.loss) for step in given)
        for place, (one, other) in enumerate(zip_longest(said, map(tuple, answer))):
            if one == other:
                continue
            if one is None:
                return _Steps.FEWER, place
            return (_Steps.MORE if other is None else _Steps.OTHERS), place
    return _Steps.SAME, len(given)


def _differ(read: RunRead, num_shared: int, *, whole: bool) -> bool:
    """Whether steps take different times: printed the same, those of two runs may be, too."""
    result = read.run.result
    if whole and result.step_time_stdev_s is not None and result.step_time_s is not None:
        return result.step_time_stdev_s > _DUST * result.step_time_s
    return len({step.step_time_s for step in read.run.steps[1:num_shared]}) > 1
