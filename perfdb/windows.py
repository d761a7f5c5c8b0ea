"""Which steps a figure is taken over: named windows, stored with each result."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, compress, islice
from math import fsum, sqrt
from statistics import fmean
from typing import Final

from perfdb.errors import Diagnostic, InputError
from perfdb.record import StepRecord

Steps = Sequence[StepRecord]

Ranked = Callable[[int], float]
"""The value of a rank, from 0 on, of values in order."""

SHORTEST_STEP_S: Final = 1e-12
LONGEST_STEP_S: Final = 1e9
"""What a step can take: from a picosecond to thirty years. Far beyond, sums and rates overflow."""


@dataclass(frozen=True)
class Window:
    """A rule that picks steps; `name` is how it is written and stored.

    A line of a log may stand for several steps: it is picked where all of them are. `holds` tells
    of each line whether it is, by the first and the last steps of all of them in their order.
    """

    name: str
    holds: Callable[[Sequence[int], Sequence[int]], Iterable[bool]]
    least: int = 1
    """It holds none of fewer steps than that."""
    most: int | None = None
    """It holds no more steps than that; None: as many as there are."""

    def pick(self, steps: Steps) -> Steps:
        """The steps of the window, in their order."""
        numbers = [step.step for step in steps]
        return list(compress(steps, self.holds(numbers, numbers)))

    def may_hold(self, num_steps: int) -> bool:
        """Whether there are runs of which it holds so many steps."""
        return self.least <= num_steps and (self.most is None or num_steps <= self.most)

    def why_none(self, num_steps: int, span: int = 1) -> str:
        """Why it holds none of so many steps, of which a line of the log stands for `span`."""
        if 0 < num_steps < self.least:
            return f"only {num_steps} of {self.least} steps; {self.name} would take the warm-up in"
        if span > 1:
            return f"no line of the log, each the mean of {span} steps, is wholly in {self.name}"
        return f"no step in {self.name}"


def last() -> Window:
    """The last step only, as the Nemotron-4 recipe does."""
    return replace(last_n(1), name="last")


def last_n(count: int) -> Window:
    """The last so many steps; of fewer than that none, for the first ones are the warm-up."""

    def holds(firsts: Sequence[int], lasts: Sequence[int]) -> Iterable[bool]:
        total = sum(_spans(firsts, lasts))
        before = accumulate(_spans(firsts, lasts), initial=0)
        return (total - steps <= count <= total for steps in islice(before, len(firsts)))

    return Window(f"last_n({count})", holds, least=count, most=count)


def _spans(firsts: Sequence[int], lasts: Sequence[int]) -> Iterator[int]:
    return (last - first + 1 for first, last in zip(firsts, lasts, strict=True))


def between(first: int, final: int) -> Window:
    """Steps numbered first to final, both included."""
    name = f"window({first},{final})"

    def holds(firsts: Sequence[int], lasts: Sequence[int]) -> Iterable[bool]:
        return (first <= one and last <= final for one, last in zip(firsts, lasts, strict=True))

    return Window(name, holds, most=final - first + 1)


def skip_warmup(count: int) -> Window:
    """All but the first so many steps that there are: a run that was resumed warms up again.

    Nothing tells what was before a line that is all there is: its number says how many steps.
    """

    def holds(firsts: Sequence[int], _lasts: Sequence[int]) -> Iterable[bool]:
        start = (firsts[0] if len(firsts) > 1 else 1) + count
        return (first >= start for first in firsts)

    return Window(f"skip_warmup({count})", holds)


@dataclass(frozen=True)
class Rule:
    """A kind of window: how it is made, and the numbers that it takes."""

    make: Callable[..., Window]
    takes: tuple[str, ...] = ()

    def written(self, name: str) -> str:
        """'window(FIRST,LAST)', as help and errors write it."""
        return f"{name}({','.join(self.takes)})" if self.takes else name


RULES: dict[str, Rule] = {
    "last": Rule(last),
    "last_n": Rule(last_n, ("N",)),
    "window": Rule(between, ("FIRST", "LAST")),
    "skip_warmup": Rule(skip_warmup, ("N",)),
}

_WRITTEN = re.compile(r"(\w+)(?:\((\d{1,19}(?:\s*,\s*\d{1,19})*)\))?")
"""A step's number has up to 19 digits, that of a line which is damaged too."""


def named(name: str, option: str = "--window") -> Window:
    """The window of a written name such as 'skip_warmup(10)'.

    Raises InputError, which names the option that said it and lists what there is.
    """
    match = _WRITTEN.fullmatch(name.strip())
    rule = RULES.get(match[1]) if match else None
    if match is None or rule is None:
        raise InputError(_refused(option, f"no window {name!r}"))
    numbers = [int(number) for number in re.findall(r"\d+", match[2] or "")]
    if len(numbers) != len(rule.takes):
        expected = rule.written(match[1])
        raise InputError(_refused(option, f"{name!r} should be {expected}"))
    if match[1] == "last_n" and numbers == [0]:
        raise InputError(_refused(option, f"{name!r} holds no step"))
    if match[1] == "window" and numbers != sorted(numbers):
        raise InputError(_refused(option, f"{name!r} ends before it begins"))
    return rule.make(*numbers)


def _refused(option: str, message: str) -> Diagnostic:
    known = ", ".join(rule.written(name) for name, rule in RULES.items())
    return Diagnostic(option, message, remedy=f"known: {known}")


@dataclass(frozen=True)
class Summary:
    """Step times in seconds over a window; spreads are None where too few steps tell them."""

    num_steps: int
    median_s: float
    mean_s: float
    last_s: float
    stdev_s: float | None
    p10_s: float | None
    p90_s: float | None
    num_means: int | None = None
    """Of how many means of several steps it is; None: each step has a time of its own."""


def summarise(steps: Steps) -> Summary | None:
    """The step times of a window, but of steps that the optimizer skipped; None where none is."""
    return summarise_times([step.step_time_s for step in steps if not step.skipped])


def summarise_times(
    times: Sequence[float], spans: Sequence[int] | None = None, ranked: Ranked | None = None
) -> Summary | None:
    """The same of the times alone, in the order of their steps.

    `spans`: of how many steps each time is the mean; None: of one. A mean of several counts as
    often; the spread is then that of the means, which is less than that of their steps. `ranked`:
    of times that are too many to be sorted, each as often as its span says.
    """
    if not times:
        return None
    if spans is not None and max(spans) > 1:
        return _of_means(times, spans, ranked or by_rank(times, spans))
    num_steps, several = len(times), len(times) > 1
    ranked = ranked or sorted(times).__getitem__
    return Summary(
        num_steps=num_steps,
        median_s=median(num_steps, ranked),
        mean_s=fmean(times),
        last_s=times[-1],
        stdev_s=_stdev(times) if several else None,
        p10_s=_decile(1, num_steps, ranked) if several else None,
        p90_s=_decile(9, num_steps, ranked) if several else None,
    )


def _of_means(times: Sequence[float], spans: Sequence[int], ranked: Ranked) -> Summary:
    num_steps, several = sum(spans), len(times) > 1
    return Summary(
        num_steps=num_steps,
        median_s=decile(5, num_steps, ranked),
        mean_s=fmean(times, spans),
        last_s=times[-1],
        stdev_s=_stdev_of_means(times, spans) if several else None,
        p10_s=decile(1, num_steps, ranked) if several else None,
        p90_s=decile(9, num_steps, ranked) if several else None,
        num_means=len(times),
    )


def by_rank(values: Sequence[float], spans: Sequence[int]) -> Ranked:
    """Of values in order, each as often as its span says, that of a rank."""
    pairs = sorted(zip(values, spans, strict=True))
    ends = list(accumulate(span for _, span in pairs))
    return lambda rank: pairs[bisect_right(ends, rank)][0]


def decile(tenths: int, num_steps: int, ranked: Ranked) -> float:
    """As statistics.quantiles has it, inclusive, but for how it rounds."""
    place, rest = divmod(tenths * (num_steps - 1), 10)
    low = ranked(place)
    high = ranked(place + 1) if rest else low
    return low + (high - low) * (rest / 10)


def _decile(tenths: int, num_steps: int, ranked: Ranked) -> float:
    """As statistics.quantiles has it, inclusive."""
    place, rest = divmod(tenths * (num_steps - 1), 10)
    return (ranked(place) * (10 - rest) + ranked(place + 1) * rest) / 10


def median(num_steps: int, ranked: Ranked) -> float:
    """As statistics.median has it."""
    high = ranked(num_steps // 2)
    return high if num_steps % 2 else (ranked(num_steps // 2 - 1) + high) / 2


def _stdev(times: Sequence[float]) -> float:
    """Of a sample; statistics.stdev computes with fractions, which takes far longer."""
    mean = fmean(times)
    return sqrt(fsum((time - mean) ** 2 for time in times) / (len(times) - 1))


def _stdev_of_means(times: Sequence[float], spans: Sequence[int]) -> float:
    mean, freedom = fmean(times, spans), 1 - 1 / len(times)
    squares = (span * (time - mean) ** 2 for time, span in zip(times, spans, strict=True))
    return sqrt(fsum(squares) / sum(spans) / freedom)
