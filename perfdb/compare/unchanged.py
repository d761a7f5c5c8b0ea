"""The cases of a trend that did not change: nearly all of a large store, and none is shown.

They are judged as `perfdb.compare.trend` judges all others, by whole columns of rows.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import hypot, inf, log
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import Connection

from perfdb.compare import noise
from perfdb.compare.noise import FALSE_DISCOVERIES, MARGIN, Sample
from perfdb.compare.releases import Choice, Judging, in_order
from perfdb.compare.sides import apart_by_deciles, marked, side_of
from perfdb.compare.verdict import Terms, alike, is_clear, noise_of, terms_of, within_margin
from perfdb.groups import grouped
from perfdb.metrics import CONVENTION_BOUND, METRICS
from perfdb.queries import results as queries
from perfdb.queries.scope import Scope, within
from perfdb.record import Origin, Outcome, Result
from perfdb.stated import RATE
from perfdb.versions import is_numbered

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_OTHERS: Final = 5_000
"""If more cases may have changed, all are followed."""


@dataclass(frozen=True)
class UnchangedCases:
    """What is known of the unchanged cases, and the numbers of the others.

    `num_unknown`: of how many the newest release cannot be told from those before it. `rates`: how
    often cases without a change are as far off, of each of their verdicts. `terms`: of all cases;
    None: as those that are followed show them, with this margin.
    """

    margin: float = MARGIN
    terms: Terms | None = None
    others: Collection[int] = ()
    num_cases: int = 0
    num_unknown: int = 0
    rates: Sequence[float] = ()


NONE_LEFT_OUT: Final = UnchangedCases()


def found(
    connection: Connection,
    only: Scope,
    choices: Sequence[Choice],
    versions: Mapping[tuple[str, Origin], Sequence[str]],
    how: Judging,
) -> UnchangedCases | None:
    """The unchanged cases of all that is within a scope; None: all cases are to be followed.

    `choices` are the releases in their order, `versions` those of each framework and origin.
    """
    metric, names = how.metric or RATE, in_order(choices)
    is_boxed = any("[" in name for name in names.values())
    if is_boxed or METRICS[metric].tolerance is not None or metric in CONVENTION_BOUND:
        return None
    asked = queries.compared({*_READ, "window", RATE, metric})
    rows = queries.fetched(connection, within(connection, asked, only))
    lines = _lines(rows, names)
    plain = dict(_plain(rows, lines, {key: some[-1] for key, some in versions.items()}, how))
    others = {line: some for line, some in lines.items() if line not in plain}
    if not plain:
        return None
    groups = {line: alike(rows.cases[line[0]]) for line in plain}
    shown = [(groups[line], [it.step_time for it in runs]) for line, runs in plain.items()]
    followed = (marked(rows.results(some), how.wrong) for some in others.values())
    by_release = (grouped(some, lambda it: names[it.release_id]).values() for some in followed)
    sides = (list(map(side_of, some)) for some in by_release)
    terms = terms_of([*shown, *noise_of(sides)], how.margin)
    judged: dict[Line, _Judged] = {}
    for name, some in grouped(plain, groups.__getitem__).items():
        judged |= zip(some, _judged([plain[it] for it in some], metric, terms, name), strict=True)
    unchanged = dict(_settled(judged, sum(map(len, others.values()))))
    left = {number for number, _ in lines.keys() - unchanged.keys()}
    rates = [rate for it in unchanged.values() for rate in it.rates.tolist()]
    num_unknown = sum(not it.is_same for it in unchanged.values())
    if len(left) > MOST_OTHERS:
        return None
    return UnchangedCases(how.margin, terms, left, len(unchanged), num_unknown, rates)


def others(connection: Connection, unchanged: UnchangedCases) -> tuple[Result, ...]:
    """The results of the cases that are not unchanged, as `releases.results_of_words` has them."""
    return tuple(queries.read(connection, queries.of_cases(unchanged.others)))


Line = tuple[int, str]
"""A case, by its number, and the origin of its results."""
Rows = Sequence[Sequence[Any]]


class _Run(NamedTuple):
    """The only run of a case at a release: its figure, and what shows its noise."""

    figure: float
    step_time: Sample
    least: float


class _Judged(NamedTuple):
    """The verdicts on a case: the chance of each, whether it is one of a change, the last one.

    `rate_of_best`: the same of the last release against the best one, where it is no better.
    """

    rates: "NDArray[np.float64]"
    moved: "NDArray[np.bool_]"
    is_same: bool
    rate_of_best: float


def _lines(rows: queries.Fetched, names: Mapping[int, str]) -> Mapping[Line, Rows]:
    """The rows of each case in the order of releases."""
    place = {number: (not is_numbered(rows.releases[number]["release"]), at)
             for at, number in enumerate(names) if number in rows.releases}  # fmt: skip
    origin = rows.names.index("origin")
    in_time = sorted(rows.rows, key=lambda row: place[row[-1]])
    return grouped(in_time, lambda row: (row[-2], row[origin]))


def _plain(
    rows: queries.Fetched,
    lines: Mapping[Line, Rows],
    newest: Mapping[tuple[str, str], str],
    how: Judging,
) -> Iterator[tuple[Line, list[_Run]]]:
    """The cases of which each release has one run, measured alike, and the newest release too."""
    read, window = _reader(rows.names, how), rows.names.index("window")
    for works in grouped(lines, lambda line: rows.cases[line[0]]["workload_key"]).values():
        some, line = lines[works[0]], works[0]
        versions = [rows.releases[row[-1]]["release"] for row in some]
        is_lone = len(works) == 1 < len(some) == len(set(versions))
        is_newest = versions[-1] == newest.get((rows.cases[line[0]]["framework"], line[1]))
        windows = {row[window] for row in some}
        if is_lone and is_newest and all(map(is_numbered, versions)) and len(windows) == 1:
            runs = [run for row in some if (run := read(row))]
            if len(runs) == len(some) and all(windows):
                yield line, runs


_READ: Final = (
    "origin", "outcome", "withheld", "notes", "num_steps", "num_means", "step_time_s",
    "step_time_p10_s", "step_time_p90_s", "result_id",
)  # fmt: skip


def _reader(names: Sequence[str], how: Judging) -> Callable[[Sequence[Any]], _Run | None]:
    """What reads a row: None where there is more to it than the noise model knows."""
    columns = itemgetter(*map(names.index, (*_READ, how.metric or RATE)))

    def read(row: Sequence[Any]) -> _Run | None:
        origin, outcome, withheld, notes, steps, means, step_s, p10_s, p90_s, number, figure = (
            columns(row)
        )
        steps = means or steps
        is_whole = outcome == Outcome.FINISHED and withheld is None and not notes
        is_known = steps and steps > 1 and None not in (step_s, p10_s, p90_s, figure)
        if origin != Origin.MEASURED or not is_whole or not is_known or number in how.wrong:
            return None
        if not (0 < step_s < inf and 0 < figure < inf):
            return None
        least = noise.of_steps(apart_by_deciles(p10_s, step_s, p90_s), steps)
        return _Run(figure, Sample(1, log(step_s)), least)

    return read


def _judged(
    cases: Sequence[Sequence[_Run]], metric: str, terms: Terms, group: object
) -> Iterator[_Judged]:
    """Of cases whose noise is alike, each run against those before it, and the last to the best."""
    import numpy as np  # noqa: PLC0415

    sign, asked, start = 1 if METRICS[metric].better == "higher" else -1, [], 0
    for runs in cases:
        best = max(range(len(runs) - 1), key=lambda at: sign * runs[at].figure)
        for a, b in (*pairwise(range(len(runs))), (best, len(runs) - 1)):
            asked.append((start, start + a, start + b, hypot(runs[a].least, runs[b].least)))
        start += len(runs)
    *places, least = zip(*asked, strict=True)
    first, last, new = map(np.array, places)
    logs = np.array([log(it.figure) for runs in cases for it in runs])
    every = np.ones_like(logs), logs, np.zeros_like(logs)
    change, _, _, p, half, *_ = noise.forecast(
        every, (first, last), [it[new] for it in every], np.array(least), terms.prior_of(group)
    )
    is_same, moved = within_margin(change, half, terms.margin)
    ends = list(accumulate(map(len, cases)))
    for a, b in zip([0, *ends], ends, strict=False):
        of_best = float(p[b - 1]) if moved[b - 1] and sign * change[b - 1] < 0 else 1.0
        yield _Judged(p[a : b - 1], moved[a : b - 1], bool(is_same[b - 2]), of_best)


def _settled(judged: Mapping[Line, _Judged], num_others: int) -> Iterator[tuple[Line, _Judged]]:
    """The cases that surely keep no verdict of a change, whatever the verdicts on the others are.

    `num_others`: how many these are at the most.
    """
    rates = [rate for it in judged.values() for rate in it.rates.tolist()]
    adjusted = noise.adjusted([*rates, *[0.0] * num_others])
    start = 0
    for line, it in judged.items():
        count = len(it.rates)
        of_each = zip(adjusted[start : start + count], it.moved.tolist(), strict=True)
        is_below = is_clear(it.rate_of_best, count * len(judged))
        if not is_below and not any(moved and p <= FALSE_DISCOVERIES for p, moved in of_each):
            yield line, it
        start += count
