"""Which steps a figure is taken over: named windows, stored with each result."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles, stdev

from perfdb.errors import InputError, Problem
from perfdb.record import StepRecord

Steps = Sequence[StepRecord]


@dataclass(frozen=True)
class Window:
    """A rule that picks steps; `name` is how it is written and stored."""

    name: str
    pick: Callable[[Steps], Steps]


def last() -> Window:
    """The last step only, as the Nemotron-4 recipe does."""
    return Window("last", lambda steps: steps[-1:])


def last_n(count: int) -> Window:
    """The last so many steps."""
    return Window(f"last_n({count})", lambda steps: steps[-count:])


def between(first: int, final: int) -> Window:
    """Steps numbered first to final, both included."""
    return Window(
        f"window({first},{final})", lambda steps: [s for s in steps if first <= s.step <= final]
    )


def skip_warmup(count: int) -> Window:
    """All but the first so many steps."""
    return Window(f"skip_warmup({count})", lambda steps: [s for s in steps if s.step > count])


RULES: dict[str, Callable[..., Window]] = {
    "last": last,
    "last_n": last_n,
    "window": between,
    "skip_warmup": skip_warmup,
}


def named(name: str) -> Window:
    """The window of a written name such as 'skip_warmup(10)'. Raises InputError."""
    match = re.fullmatch(r"(\w+)(?:\((\d+(?:\s*,\s*\d+)*)\))?", name.strip())
    if match and match[1] in RULES:
        arguments = [int(number) for number in re.findall(r"\d+", match[2] or "")]
        expected = RULES[match[1]].__code__.co_argcount
        if len(arguments) == expected:
            return RULES[match[1]](*arguments)
    known = "last, last_n(N), window(FIRST,LAST), skip_warmup(N)"
    raise InputError(Problem("--window", f"no window {name!r}", remedy=f"known: {known}"))


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
    times = [step.step_time_s for step in steps]
    if not times:
        return None
    deciles = quantiles(times, n=10, method="inclusive") if len(times) > 1 else None
    return Summary(
        num_steps=len(times),
        median_s=median(times),
        mean_s=fmean(times),
        last_s=times[-1],
        stdev_s=stdev(times) if len(times) > 1 else None,
        p10_s=deciles[0] if deciles else None,
        p90_s=deciles[-1] if deciles else None,
    )
