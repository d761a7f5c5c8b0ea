"""The results of one case at one release: one or several runs, and the figure they have."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import inf, sqrt
from statistics import median
from typing import Final

from perfdb.audit.equations import whole_samples
from perfdb.audit.interval import half_unit
from perfdb.compare.noise import of_steps, sample
from perfdb.groups import grouped
from perfdb.metrics import CONVENTION_BOUND
from perfdb.record import CONFIGURATION_FIELDS, NoteCode, Origin, Outcome, Result
from perfdb.stated import RATE
from perfdb.versions import natural

FAULTS = (
    Outcome.FAILED, Outcome.OUT_OF_MEMORY, Outcome.NAN_LOSS, Outcome.NAN_GRAD_NORM,
    Outcome.TIMED_OUT,
)  # fmt: skip
"""The outcomes of a run that failed by itself, and was not stopped."""

LONE_AND_UNEVEN: Final = "steps differ in tokens: a single run shows no noise, repeat it"
"""Why two rates cannot be distinguished, one of which is of a single run of such steps."""
NO_STEPS: Final = "a single run of a single step, or of steps whose times are not known"
"""Why a run without repeats is no measure."""
_DECILES_APART: Final = 2.563
"""Standard deviations between the 10th and the 90th percentile of a normal distribution."""


def usable(result: Result, metric: str) -> float | None:
    """The value of a metric; None where it is unknown, does not count, or cannot be a rate."""
    value: float | None = getattr(result, metric)
    is_rate = value is not None and 0 < value < inf
    return value if is_rate and result.counts else None


def figures_of(results: Iterable[Result], metric: str) -> list[float]:
    """The usable values of a metric."""
    found = [usable(one, metric) for one in results]
    return [figure for figure in found if figure is not None]


def work_order(result: Result) -> tuple[object, ...]:
    """A key that sorts results by what was done: model, system, task, precision, then sizes."""
    work = (natural(result.model_title), natural(result.system_title), result.task)
    size = (result.num_gpus, result.sequence_length, result.global_batch_size)
    return (*work, result.precision or "", *size)


def layout_order(result: Result) -> tuple[object, ...]:
    """A key that sorts results of the same work by how it was done: MBS, LBS, TP, PP, …"""
    values = [result.value(name) for name in CONFIGURATION_FIELDS]
    texts = (natural("" if value is None else str(value)) for value in values)
    return (*texts, result.case_key)


def marked(results: Iterable[Result], wrong: Collection[int]) -> tuple[Result, ...]:
    """The results, marked with open errors where their numbers are among the wrong ones."""
    return tuple(
        replace(one, has_open_errors=True) if one.result_id in wrong else one for one in results
    )


class Shown:
    """What a side shows by one metric. It is worked out once: many verdicts read it."""

    __slots__ = ("_metric", "_noise", "_side", "figures", "kind", "median", "sample", "usable")

    def __init__(self, side: "Side", metric: str) -> None:
        """Everything that the verdicts on later releases read."""
        self._side, self._metric = side, metric
        self.figures = figures = side.figures(metric)
        """The figure of each finished run that has one."""
        self.median = median(figures) if len(figures) > 1 else figures[0] if figures else None
        """The median of the figures, which a verdict compares.

        The one shown alone would make an even number of runs look faster than they are, and is of
        median step time only.
        """
        self.sample = sample(figures) if figures else None
        """The logarithms of the figures; None where there are none."""
        self.usable = None if side.shown.has_open_errors else self.sample
        """The same, without open errors."""
        convention = side.shown.flops_convention if metric in CONVENTION_BOUND else None
        self.kind = side.origin, side.windows, convention
        """How it was measured: sides of the same kind show the noise of one another."""
        self._noise: tuple[float, str | None] | None = None

    @property
    def noise(self) -> tuple[float, str | None]:
        """The standard error at the least, by the steps of the runs, and why it is not known.

        A single run shows the noise by its steps alone; a row of a page by its digits.
        """
        if self._noise is None:
            self._noise = self._by_steps()
        return self._noise

    def _by_steps(self) -> tuple[float, str | None]:
        side, run, count = self._side, self._side.shown, len(self.figures)
        is_lone = count == 1 and side.origin != Origin.PUBLISHED
        if self._metric == RATE and side.is_uneven:
            return 0.0, LONE_AND_UNEVEN if is_lone else None
        # A log that prints one mean for many steps shows no more than there are means.
        steps, apart = run.num_means or run.num_steps, _steps_apart(run)
        if not steps or apart is None or not count:
            return 0.0, NO_STEPS if is_lone else None
        return of_steps(apart, steps) / sqrt(count), NO_STEPS if is_lone and steps <= 1 else None

    @property
    def half_digit(self) -> float:
        """Half a unit in the last printed place of a figure, as a share of it; 0 of a run."""
        side = self._side.stated or self._side
        figure = side.median(self._metric) if side.origin == Origin.PUBLISHED else None
        if not figure:
            return 0.0
        return half_unit(figure, self._metric, side.shown.printed.get(self._metric)) / figure


def _steps_apart(run: Result) -> float | None:
    """The relative standard deviation of the steps, by their deciles where these are known.

    One step in twenty that waits for a checkpoint moves no decile, and no median.
    """
    p10_s, median_s, p90_s = run.step_time_p10_s, run.step_time_s, run.step_time_p90_s
    if p10_s is not None and p90_s is not None and median_s:
        return apart_by_deciles(p10_s, median_s, p90_s)
    mean_s, deviation_s = run.step_time_mean_s, run.step_time_stdev_s
    return None if not mean_s or deviation_s is None else deviation_s / mean_s


def apart_by_deciles(p10_s: float, median_s: float, p90_s: float) -> float:
    """The relative standard deviation of step times by their deciles, as of normal ones."""
    return (p90_s - p10_s) / _DECILES_APART / median_s


class _ByMetric(dict[str, Shown]):
    """What a side shows, by metric; made as it is asked for."""

    __slots__ = ("_side",)

    def __init__(self, side: "Side") -> None:
        self._side = side

    def __missing__(self, metric: str) -> Shown:
        made = self[metric] = Shown(self._side, metric)
        return made


@dataclass(slots=True)
class Side:
    """The results of one case at one release from one origin: one or several runs.

    What follows from them is worked out once: a side is in the history of each later release. It
    is never changed; a frozen class would take twice as long to make, and there are many.
    """

    results: tuple[Result, ...]
    has_whole_samples: bool = False
    """Whether all tokens/s of its page are whole samples per second: they were rounded to that."""
    stated: "Side | None" = None
    """As it was stated, with its digits, where its FLOPs are restated; None: they are not."""
    finished: tuple[Result, ...] = field(init=False, repr=False, compare=False)
    """The results that have figures which count."""
    shown: Result = field(init=False, repr=False, compare=False)
    """The result a table prints: of the finished runs the one of median step time.

    The faster of the middle two where their number is even, as
    `perfdb.queries.results.representative` does.
    """
    origin: Origin = field(init=False, repr=False, compare=False)
    """Whether its figures are measured or published."""
    windows: frozenset[str] = field(init=False, repr=False, compare=False)
    """The known windows of its finished runs."""
    by: _ByMetric = field(init=False, repr=False, compare=False)
    """What it shows by each metric."""

    def __post_init__(self) -> None:
        """Work out what follows from the results."""
        self.finished = finished = tuple([one for one in self.results if one.counts])
        self.shown = (
            self.results[0] if len(self.results) == 1 else _middle(finished or self.results)
        )
        self.origin = self.shown.origin
        self.windows = _windows(frozenset([one.window for one in finished]))
        self.by = _ByMetric(self)

    def with_flops(self, factor: float, convention: str | None) -> "Side":
        """The same by another convention: the FLOPs of runs that count as the one shown, scaled."""
        mine = self.shown.flops_convention

        def moved(one: Result) -> Result:
            if one.flops_convention != mine:
                return one
            known = {name: it for name in CONVENTION_BOUND if (it := one.figure(name)) is not None}
            scaled = {name: value * factor for name, value in known.items()}
            return replace(one, flops_convention=convention, **scaled)  # type: ignore[arg-type]

        return Side(tuple(map(moved, self.results)), self.has_whole_samples, stated=self)

    def median(self, metric: str) -> float | None:
        """The median of the runs' figures, which a verdict compares."""
        return self.by[metric].median

    def figures(self, metric: str) -> list[float]:
        """The figure of each finished run that has one.

        FLOPs only of the runs that count them as the one shown does.
        """
        runs: Iterable[Result] = self.finished
        if metric in CONVENTION_BOUND:
            convention = self.shown.flops_convention
            runs = [it for it in runs if it.flops_convention == convention]
        return [it for one in runs if (it := getattr(one, metric)) is not None and 0 < it < inf]

    def rounding(self, metric: str) -> float:
        """The share of a rate that the rounding of samples/s leaves open."""
        rate = self.median(RATE)
        if not self.has_whole_samples or metric != RATE or not rate:
            return 0.0
        return self.shown.sequence_length / self.shown.num_gpus / 2 / rate

    @property
    def is_uneven(self) -> bool:
        """Whether its rates depend on how many tokens the steps happened to have."""
        noted = [one for one in self.finished if one.notes]
        return any(one.has_note(NoteCode.VARIABLE_LENGTH_STEPS) for one in noted)

    def is_usable(self, metric: str) -> bool:
        """Whether another figure can be compared with that of this side."""
        return self.by[metric].usable is not None

    @property
    def failed(self) -> tuple[Result, ...]:
        """The runs that failed by themselves, without those that were stopped or cut off."""
        if len(self.finished) == len(self.results):
            return ()
        return tuple(result for result in self.results if result.outcome in FAULTS)

    @property
    def share_failed(self) -> float:
        """The fraction of its runs that failed."""
        return len(self.failed) / len(self.results)

    def fails_more_than(self, least: float) -> bool:
        """Whether it has figures, and yet a larger share of its runs failed than that."""
        return bool(self.finished) and self.share_failed > least

    @property
    def window(self) -> str | None:
        """'skip_warmup(10)': the window of its finished runs; several where they have several."""
        return ", ".join(sorted(self.windows)) or None

    @property
    def containers(self) -> frozenset[str | None]:
        """The containers of its runs; None is a run without a container."""
        return frozenset([one.container for one in self.results])


def _middle(results: Sequence[Result]) -> Result:
    def step_time(one: Result) -> tuple[bool, float, int]:
        return (one.step_time_s is None, one.step_time_s or 0.0, one.result_id)

    return sorted(results, key=step_time)[(len(results) - 1) // 2]


@cache
def _windows(known: frozenset[str | None]) -> frozenset[str]:
    return frozenset(filter(None, known))


Pages = frozenset[tuple[int, str]]
"""Pages, by the release of their results and the file."""


def rounding_pages(results: Iterable[Result]) -> Pages:
    """The pages that round samples/s: all of their tokens/s are whole samples per second."""
    published = [one for one in results if one.origin == Origin.PUBLISHED]
    pages = grouped(published, lambda one: (one.release_id, one.source))
    return frozenset(page for page, rows in pages.items() if whole_samples(rows))


def side_of(results: Iterable[Result], rounding: Pages = frozenset()) -> Side:
    """The results of a case, which know whether their page rounds samples/s."""
    side = Side(tuple(results))
    if rounding:
        side.has_whole_samples = (side.shown.release_id, side.shown.source) in rounding
    return side


def sides_of(results: Iterable[Result], rounding: Pages = frozenset()) -> list[Side]:
    """The results by case and origin."""
    of_cases = grouped(results, lambda one: (one.case_key, one.origin))
    return [side_of(group, rounding) for group in of_cases.values()]
