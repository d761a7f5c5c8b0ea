"""Knows a log that tells of a run of which the store has another log: the run counts once.

Two renderings of what a job printed, such as a copy without colours, have other bytes and the same
steps; those of two ranks, or of two formats, the same but for the clock or the digits. A log that
was moved while its run went on begins with the bytes of the earlier one.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import chain, groupby, pairwise, zip_longest
from operator import itemgetter
from typing import Final

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, false, or_

from perfdb import said_before
from perfdb.db import keys
from perfdb.db import runs as stored_runs
from perfdb.db.rows import StepRow, step_rows
from perfdb.db.tables import cases, releases, runs, sources
from perfdb.errors import Diagnostic
from perfdb.ingest import elsewhere, grown, rendered
from perfdb.ingest.fallback import spellings
from perfdb.ingest.read import RunRead
from perfdb.ingest.rendered import Likeness, Said
from perfdb.queries import runs as tellings
from perfdb.record import Outcome

_HEAD: Final = 3
"""The steps that a run is looked up by: the first ones differ most from one run to another."""

_AT_ONCE: Final = 1 << 12
"""Steps that are held as rows at a time."""


Timed = tuple[int, float]
"""A step and its time."""


@dataclass(frozen=True)
class Twin:
    """The log of a run in force of which another one tells, too, and what is said of that.

    `grew`: the other one tells more of it and takes its place.
    """

    path: str
    note: Diagnostic
    grew: bool = False


@dataclass(frozen=True, eq=False)
class _Other:
    """A run in force that was read from a log, and which of the steps that are looked up it has."""

    row: RowMapping
    head: Sequence[Said]


class _Told(Enum):
    """How what a log tells, of its steps or of its case, is to what is known of a run."""

    SAME = auto()
    MORE = auto()
    FEWER = auto()
    OTHERS = auto()


def apart(given: Sequence[RunRead]) -> Iterator[Sequence[RunRead]]:
    """The same runs in portions: those that may be one run follow one another, each of which finds
    in the store what the portions before it have told.
    """
    portion: list[RunRead] = []
    starts, heads = set[Hashable](), set[Hashable]()
    for read in given:
        head, marks = tuple(map(_timed, _head(read))), _marks(read)
        own = {head[:end] for end in range(1, len(head) + 1)} | marks
        if head in starts or own & heads:
            yield portion
            portion, starts, heads = [], set(), set()
        portion.append(read)
        starts |= own
        heads |= {head} | marks
    if portion:
        yield portion


def found(
    connection: Connection, fresh: Sequence[RunRead]
) -> tuple[Mapping[str, Twin], Collection[str]]:
    """The logs that tell of runs in force under other ids, by the ids of their own runs.

    Where a log tells more of a run, the run takes its id. Then come the ids of those that may be of
    a run that another of these logs has taken: what that tells is to be stored before.
    """
    given = [read for read in fresh if _head(read)]
    others = _by_mark(_others(connection, given)) if given else {}
    twins, waiting, taken = dict[str, Twin](), set[str](), set[_Other]()
    for read in given:
        run_id = read.run.run.run_id
        marked = (others.get(mark, ()) for mark in (_timed(_head(read)[0]), *_marks(read)))
        near = dict.fromkeys(chain.from_iterable(marked))
        if not taken.isdisjoint(near):
            waiting.add(run_id)
            continue
        for other in near:
            if twin := _twin(connection, read, other):
                twins[run_id] = twin
                if twin.grew:
                    stored_runs.rename(connection, other.row["id"], run_id)
                    taken.add(other)
                break
    return twins, waiting


def _twin(connection: Connection, read: RunRead, other: _Other) -> Twin | None:
    if twin := _of_bytes(connection, read, other.row):
        return twin
    head, row, file = _head(read), other.row, read.files.record_file
    alike = rendered.likeness((file.path, row["path"]), (file.parser, row["parser"]))
    is_exact = len(head) == _HEAD and set(map(_timed, other.head)).issuperset(map(_timed, head))
    may_be = is_exact or alike is not rendered.EXACT
    twin = _of_steps(connection, read, row, alike) if may_be else None
    if twin or {file.parser, row["parser"]} != {rendered.OF_NODES}:
        return twin
    return _of_steps(connection, read, row, rendered.OF_ANOTHER_NODE)


def noted(read: RunRead, twins: Mapping[str, Twin]) -> RunRead:
    """A log with the note that it takes the place of its twin; one that is not stored has none."""
    twin = twins.get(read.run.run.run_id)
    if twin is None:
        return read
    return replace(read, notes=(*read.notes, twin.note) if twin.grew else ())


def _head(read: RunRead) -> Sequence[Said]:
    """The first steps of a log; none of a run directory."""
    if read.run.run.recipe is not None:
        return ()
    return [(step.step, step.step_time_s, step.loss) for step in read.run.steps[:_HEAD]]


def _timed(said: Said) -> Timed:
    step, time, _ = said
    return step, time


def _marks(read: RunRead) -> set[Hashable]:
    """What a log may be looked up by beside its steps."""
    file, head = read.files.record_file, _head(read)
    return set(rendered.marks(file.path, file.parser, head[:1])) if head else set()


def _others(connection: Connection, given: Sequence[RunRead]) -> Iterator[_Other]:
    """The runs that may be the same: of such work and these releases, or unfinished."""
    results = [read.run.result for read in given]
    wanted = {result.release.key for result in results}
    release_ids = keys.known(connection, releases, releases.c.key, wanted).values()
    sizes = (cases.c.num_gpus, cases.c.global_batch_size, cases.c.sequence_length)
    of_work = (size.in_({getattr(one.case, size.name) for one in results}) for size in sizes)
    which = or_(
        runs.c.outcome != Outcome.FINISHED.value,
        and_(runs.c.release_id.in_(release_ids), *of_work),
    )
    heads = {_timed(said) for read in given for said in _head(read)}
    files = [read.files.record_file for read in given]
    others: list[ColumnElement[bool]] = [false()]
    if any(file.parser in rendered.AT_ONCE for file in files):
        others.append(sources.c.parser.in_(rendered.AT_ONCE))
    if any(file.parser == rendered.OF_NODES for file in files):
        others.append(sources.c.parser == rendered.OF_NODES)
    if any(rendered.attempt_of(file.path) for file in files):
        others.append(sources.c.path.like(rendered.OF_RANKS))
    rows = connection.execute(tellings.of_logs(which, heads, or_(*others))).mappings()
    for _, group in groupby(rows, key=itemgetter("id")):
        some = list(group)
        yield _Other(some[0], [(row["step"], row["step_time_s"], row["loss"]) for row in some])


def _by_mark(others: Iterable[_Other]) -> Mapping[Hashable, Collection[_Other]]:
    found: dict[Hashable, list[_Other]] = {}
    for other in others:
        row, head = other.row, other.head
        for mark in {*map(_timed, head), *rendered.marks(row["path"], row["parser"], head)}:
            found.setdefault(mark, []).append(other)
    return found


def _of_bytes(connection: Connection, read: RunRead, row: RowMapping) -> Twin | None:
    """A log that goes on where an unfinished one of its format ends, or the other way round."""
    path = row["path"]
    if row["parser"] != read.files.record_file.parser:
        return None
    if row["outcome"] != Outcome.FINISHED and grown.begins_with(read, row):
        message = f"begins with the unfinished log {path}: it is that run, grown on"
        return Twin(path, Diagnostic(read.path, message), grew=True)
    if _is_cut(read) and grown.is_start_of(connection, read, row):
        return Twin(path, Diagnostic(read.path, f"tells of the same run as {path}, which goes on"))
    return None


def _of_steps(
    connection: Connection, read: RunRead, row: RowMapping, alike: Likeness
) -> Twin | None:
    """A log is the same run where its steps and its case are, as far as both say it; one that says
    no end may have fewer steps, as may that of another rank.
    """
    file, path = read.files.record_file, row["path"]
    case = _case_told(connection, read, row)
    if case is _Told.OTHERS or row["sha256"] == file.sha256:
        return None  # the same bytes: a file that holds several runs
    steps, num_shared = _compared(connection, step_rows(read.run.steps), row["id"], alike)
    is_rank = alike is rendered.OF_ANOTHER_RANK
    is_whole = steps is _Told.SAME
    if not _differ(read, num_shared, alike, whole=is_whole):
        return None
    end = rendered.end_told(file.parser, read.run.run.outcome)
    its_end = rendered.end_told(row["parser"], Outcome(row["outcome"]))
    tells_more = is_whole and (end, _says_more(connection, read, row, case)) > (its_end, False)
    message = f"tells of the same run as {path}: {alike.why}"
    if is_whole and path in spellings(file.path) and case is not _Told.FEWER:
        message = f"tells of the same run as before: {alike.why}, and what it says now holds"
        return Twin(path, Diagnostic(read.path, message), grew=True)
    goes_on = steps is _Told.MORE and (is_rank or its_end < rendered.SAYS_END)
    if case is not _Told.FEWER and (goes_on or tells_more):
        return Twin(
            path, Diagnostic(read.path, f"{message}, and it tells more: it holds"), grew=True
        )
    ends_before = steps is _Told.FEWER and (is_rank or end < rendered.SAYS_END)
    if case is not _Told.MORE and (ends_before or (is_whole and not tells_more)):
        return Twin(path, Diagnostic(read.path, message))
    return None


def _case_told(connection: Connection, read: RunRead, row: RowMapping) -> _Told:
    """How much a log says of the case of a run that has its steps; of another release, another."""
    result = read.run.result
    if result.release.key != row["release_key"]:
        return _Told.OTHERS
    if result.case.key == row["case_key"]:
        return _Told.SAME
    case, its_case = result.case, elsewhere.told_of(connection, row["run_id"]).case
    if said_before.is_held_by(its_case, case):
        return _Told.MORE
    return _Told.FEWER if said_before.is_held_by(case, its_case) else _Told.OTHERS


def _says_more(connection: Connection, read: RunRead, row: RowMapping, case: _Told) -> bool:
    """Whether a log says more of its case, or the memory that the other one does not."""
    if case is not _Told.SAME or read.run.result.peak_memory_bytes is None:
        return case is _Told.MORE
    return connection.scalar(tellings.peak_memory_of(row["id"])) is None


def _is_cut(read: RunRead) -> bool:
    """Whether a log ends without saying how its run did."""
    return read.run.run.outcome is Outcome.INCOMPLETE


def _compared(
    connection: Connection, given: Sequence[StepRow], number: int, alike: Likeness
) -> tuple[_Told, int]:
    """How steps are to those of a run in the store, and how many they share."""
    answer = connection.execute(
        tellings.times_of(number), execution_options={"yield_per": _AT_ONCE}
    )
    with answer:
        said = ((step.step, step.step_time_s, step.loss) for step in given)
        known = ((step, time, loss) for step, time, loss in answer)
        for place, (one, other) in enumerate(zip_longest(said, known)):
            if one is None:
                return _Told.FEWER, place
            if other is None:
                return _Told.MORE, place
            if not alike.is_same(one, other):
                return _Told.OTHERS, place
    return _Told.SAME, len(given)


def _differ(read: RunRead, num_shared: int, alike: Likeness, *, whole: bool) -> bool:
    """Whether steps differ by what they are known by: those of two runs may be the same, too."""
    result = read.run.result
    if alike is rendered.OF_ANOTHER_NODE:
        losses = (step.loss for step in read.run.steps[:num_shared])
        return num_shared >= _HEAD and any(one != other for one, other in pairwise(losses))
    if alike.dust is None:
        return True
    if whole and result.step_time_stdev_s is not None and result.step_time_s is not None:
        return result.step_time_stdev_s > alike.dust * result.step_time_s
    times = (step.step_time_s for step in read.run.steps[1:num_shared])
    return any(one != other for one, other in pairwise(times))
