"""Which steps a figure is taken over: named windows, stored with each result."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from math import fsum, sqrt
from statistics import fmean, median, quantiles
from typing import Final

from perfdb.errors import InputError, Problem
from perfdb.record import StepRecord

Steps = Sequence[StepRecord]

SHORTEST_STEP_S: Final = 1e-12
LONGEST_STEP_S: Final = 1e9
"""What a step can take: from a picosecond to thirty years. Far beyond, sums and rates overflow."""


@dataclass(frozen=True)
class Window:
    """A rule that picks steps; `name` is how it is written and stored.

    `holds` tells of each step, by the numbers of all of them in their order, whether it is picked.
    """

    name: str
    holds: Callable[[Sequence[int]], list[bool]]
    least: int = 1
    """It holds none of fewer steps than that."""
    most: int | None = None
    """It holds no more steps than that; None: as many as there are."""

    def pick(self, steps: Steps) -> Steps:
        """The steps of the window, in their order."""
        return list(compress(steps, self.holds([step.step for step in steps])))

    def may_hold(self, num_steps: int) -> bool:
        """Whether there are runs of which it holds so many steps."""
        return self.least <= num_steps and (self.most is None or num_steps <= self.most)

    def why_none(self, num_steps: int) -> str:
        """Why it holds none of so many steps."""
        if 0 < num_steps < self.least:
            return f"only {num_steps} of {self.least} steps; {self.name} would take the warm-up in"
        return f"no step in {self.name}"


def last() -> Window:
    """The last step only, as the Nemotron-4 recipe does."""
    return Window("last", lambda numbers: _last(1, numbers), most=1)


def last_n(count: int) -> Window:
    """The last so many steps; of fewer than that none, for the first ones are the warm-up."""
    name = f"last_n({count})"
    return Window(name, lambda numbers: _last(count, numbers), least=count, most=count)


def _last(count: int, numbers: Sequence[int]) -> list[bool]:
    if count > len(numbers):
        return [False] * len(numbers)
    return [left <= count for left in range(len(numbers), 0, -1)]


def between(first: int, final: int) -> Window:
    """Steps numbered first to final, both included."""
    name = f"window({first},{final})"
    most = final - first + 1
    return Window(name, lambda numbers: [first <= number <= final for number in numbers], most=most)


def skip_warmup(count: int) -> Window:
    """All but the first so many steps."""
    name = f"skip_warmup({count})"
    return Window(name, lambda numbers: [number > count for number in numbers])


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

_WRITTEN = re.compile(r"(\w+)(?:\((\d{1,9}(?:\s*,\s*\d{1,9})*)\))?")


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


def _refused(option: str, message: str) -> Problem:
    known = ", ".join(rule.written(name) for name, rule in RULES.items())
    return Problem(option, message, remedy=f"known: {known}")


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


def summarise(steps: Steps) -> Summary | None:
    """The step times of a window; None where it holds no step."""
    return summarise_times([step.step_time_s for step in steps])


def summarise_times(times: Sequence[float]) -> Summary | None:
    """The same of the times alone, in the order of their steps."""
    if not times:
        return None
    deciles = quantiles(times, n=10, method="inclusive") if len(times) > 1 else None
    return Summary(
        num_steps=len(times),
        median_s=median(times),
        mean_s=fmean(times),
        last_s=times[-1],
        stdev_s=_stdev(times) if len(times) > 1 else None,
        p10_s=deciles[0] if deciles else None,
        p90_s=deciles[-1] if deciles else None,
    )


def _stdev(times: Sequence[float]) -> float:
    """Of a sample; statistics.stdev computes with fractions, which takes far longer."""
    mean = fmean(times)
    return sqrt(fsum((time - mean) ** 2 for time in times) / (len(times) - 1))
