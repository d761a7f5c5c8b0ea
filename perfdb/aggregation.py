"""Aggregation windows and step statistics: which steps a figure is taken over, and their summary.

A line of a log may be the mean of several steps; `counts` says of how many. All functions are pure.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from perfdb import metrics
from perfdb.errors import Diagnostic, InputError
from perfdb.record import Note, NoteCode

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

SHORTEST_STEP_S: Final = 1e-12
LONGEST_STEP_S: Final = 1e9
"""What a step can take: from a picosecond to thirty years. Far beyond, sums and rates overflow."""

REGULAR: Final = 5
"""So many equal gaps in a row are a log interval, and no lines that are lost."""


@dataclass(frozen=True)
class Window:
    """A rule that picks steps; `name` is how it is written and stored.

    `holds` takes the first and the last step of each line and answers which lines are wholly in it.
    """

    name: str
    holds: Callable[[Ints, Ints], Flags]
    least: int = 1
    """It holds none of fewer steps than that."""
    most: int | None = None
    """It holds no more steps than that; None: as many as there are."""

    def pick(self, steps: Sequence[int]) -> Flags:
        """Which of the steps with these numbers it holds, each step by itself."""
        numbers = np.array(steps, np.int64)
        return self.holds(numbers, numbers)

    def may_hold(self, num_steps: int) -> bool:
        """Whether there are runs of which it holds so many steps."""
        return self.least <= num_steps and (self.most is None or num_steps <= self.most)

    def none_held(self, num_steps: int, span: int = 1) -> Note:
        """Why it holds none of so many steps, of which a line of the log has `span`."""
        if 0 < num_steps < self.least:
            code = NoteCode.TOO_FEW_STEPS_FOR_WINDOW
            return Note.of(code, num_steps=num_steps, least=self.least, window=self.name)
        return Note(NoteCode.NO_STEP_IN_WINDOW, {"window": self.name, "span": span})


def last() -> Window:
    """The last step only, as the Nemotron-4 recipe does."""
    return replace(last_n(1), name="last")


def last_n(count: int) -> Window:
    """The last so many steps; none of fewer, for the first ones are the warm-up."""

    def holds(firsts: Ints, lasts: Ints) -> Flags:
        counts = lasts - firsts + 1
        total = int(counts.sum())
        until_the_end = total - (np.cumsum(counts) - counts)
        return np.asarray((until_the_end <= count) & (count <= total))

    return Window(f"last_n({count})", holds, least=count, most=count)


def between(first: int, final: int) -> Window:
    """Steps numbered first to final, both included."""

    def holds(firsts: Ints, lasts: Ints) -> Flags:
        return np.asarray((firsts >= first) & (lasts <= final))

    return Window(f"window({first},{final})", holds, most=final - first + 1)


def skip_warmup(count: int) -> Window:
    """All but the first so many steps that there are: a run that was resumed warms up again."""

    def holds(firsts: Ints, _lasts: Ints) -> Flags:
        return np.asarray(firsts >= metrics.first_counted_step(firsts[:2].tolist(), count))

    return Window(f"skip_warmup({count})", holds)


@dataclass(frozen=True)
class WindowRule:
    """A kind of window: how it is made, and the numbers that it takes."""

    make: Callable[..., Window]
    takes: tuple[str, ...] = ()

    def written(self, name: str) -> str:
        """'window(FIRST,LAST)', as help and errors write it."""
        return f"{name}({','.join(self.takes)})" if self.takes else name


RULES: dict[str, WindowRule] = {
    "last": WindowRule(last),
    "last_n": WindowRule(last_n, ("N",)),
    "window": WindowRule(between, ("FIRST", "LAST")),
    "skip_warmup": WindowRule(skip_warmup, ("N",)),
}

_WRITTEN = re.compile(r"(\w+)(?:\((\d{1,18}(?:\s*,\s*\d{1,18})*)\))?")


def named(name: str, option: str = "--window") -> Window:
    """The window of a written name such as 'skip_warmup(10)'.

    Raises InputError, which names the option and lists the known windows.
    """
    match = _WRITTEN.fullmatch(name.strip())
    rule = RULES.get(match[1]) if match else None
    numbers = [int(number) for number in re.findall(r"\d+", (match and match[2]) or "")]
    if match is None or rule is None:
        message = f"no window {name!r}"
    elif len(numbers) != len(rule.takes):
        message = f"{name!r} should be {rule.written(match[1])}"
    elif match[1] == "last_n" and numbers == [0]:
        message = f"{name!r} holds no step"
    elif match[1] == "window" and numbers != sorted(numbers):
        message = f"{name!r} ends before it begins"
    else:
        return rule.make(*numbers)
    known = ", ".join(rule.written(name) for name, rule in RULES.items())
    raise InputError(Diagnostic(option, message, remedy=f"known: {known}"))


def steps_per_line(steps: Ints) -> Ints:
    """Of how many steps each line is the mean, where times are means since the line before.

    After a gap, where lines are lost, it is as many as usual, unless gap after gap is as large: a
    later attempt has another interval. A log's only line counts as one step. Megatron-Core does
    not start anew after the very first step; the mean of the next line includes it.
    """
    gaps = gap_counts(steps)
    usual = usual_gap(gaps)
    changes = any(gap > usual and often >= REGULAR for gap, often in gaps.items())
    rises = bool(np.all(np.diff(steps) > 0))
    if usual == 1 and not changes and rises and (not len(steps) or steps[0] > 0):
        return np.broadcast_to(np.int64(1), len(steps))
    counts = np.empty(len(steps), np.int64)
    counts[:1] = np.minimum(steps[:1], usual)
    counts[1:] = np.minimum(np.diff(steps), usual)
    if changes:
        counts[1:] = _with_regular_gaps(counts[1:], np.diff(steps), usual)
    return counts


def _with_regular_gaps(counts: Ints, gaps: Ints, usual: int) -> Ints:
    """The counts, with the gaps above the usual one that come REGULAR times in a row."""
    ends = np.flatnonzero(np.diff(gaps)) + 1
    lengths = np.diff(ends, prepend=0, append=len(gaps))
    is_regular = np.repeat(lengths >= REGULAR, lengths) & (gaps > usual)
    return np.where(is_regular, gaps, counts)


def gap_counts(steps: Ints) -> Mapping[int, int]:
    """How often there is each gap between lines, in the order in which they are first seen."""
    # Newer versions log the very first step too, whatever the interval.
    several = steps[1:] if len(steps) > 2 and steps[0] == 1 else steps
    gaps = np.diff(several)
    if len(gaps) and (gaps == gaps[0]).all():
        return {int(gaps[0]): len(gaps)}
    gaps, firsts, counts = np.unique(gaps, return_index=True, return_counts=True)
    order = firsts.argsort()
    return dict(zip(gaps[order].tolist(), counts[order].tolist(), strict=True))


def usual_gap(gaps: Mapping[int, int]) -> int:
    """The gap that is seen most often, and first of several; 1 where there is none."""
    return max(gaps, key=gaps.__getitem__, default=1)


def intervals(counts: Ints) -> set[int]:
    """The numbers of steps that at least REGULAR lines are the mean of."""
    return {value for value, often in Counter(counts.tolist()).items() if often >= REGULAR}


def lines_held(window: Window, lasts: Ints, counts: Ints) -> slice:
    """The lines that a window holds, in the order of their steps."""
    held = np.flatnonzero(window.holds(lasts - counts + 1, lasts))
    return slice(int(held[0]), int(held[-1]) + 1) if len(held) else slice(0, 0)


@dataclass(frozen=True)
class Summary:
    """Step times in seconds over a window; spreads are None where there are too few steps."""

    num_steps: int
    median_s: float
    mean_s: float
    last_s: float
    stdev_s: float | None
    p10_s: float | None
    p90_s: float | None
    num_means: int | None = None
    """Of how many means of several steps it is; None: each step has a time of its own."""


def summarize(times: Floats, counts: Ints | None = None) -> Summary | None:
    """The summary of step times in the order of their steps; None where there is none.

    A mean of several steps counts as often; the spread is then that of the means, which is less
    than that of their steps.
    """
    if not len(times):
        return None
    several = len(times) > 1
    if counts is not None and counts.max() > 1:
        num_steps, median_s = int(counts.sum()), decile(5, times, counts)
        mean = fsum((times * counts).tolist()) / num_steps
        variance = fsum((counts * (times - mean) ** 2).tolist()) / num_steps
        stdev = sqrt(variance / (1 - 1 / len(times))) if several else None
        low, high = (decile(tenths, times, counts) for tenths in (1, 9))
    else:
        num_steps, ordered = len(times), np.sort(times)
        mean = fsum(times.tolist()) / num_steps
        squares = fsum(((times - mean) ** 2).tolist())
        stdev = sqrt(squares / (num_steps - 1)) if several else None
        median_s = (float(ordered[(num_steps - 1) // 2]) + float(ordered[num_steps // 2])) / 2
        low, high = (_decile_of_steps(tenths, ordered) for tenths in (1, 9))
    return Summary(
        num_steps=num_steps,
        median_s=median_s,
        mean_s=mean,
        last_s=float(times[-1]),
        stdev_s=stdev,
        p10_s=low if several else None,
        p90_s=high if several else None,
        num_means=len(times) if num_steps > len(times) else None,
    )


def median(values: Floats, counts: Ints | None = None) -> float:
    """The median of values, each as often as its count; as statistics.median where all are 1."""
    if counts is not None and counts.max(initial=1) > 1:
        return decile(5, values, counts)
    middle = len(values) // 2
    ordered = np.partition(values, (middle - 1, middle) if middle else middle)
    high = float(ordered[middle])
    return high if len(values) % 2 else (float(ordered[middle - 1]) + high) / 2


def decile(tenths: int, values: Floats, counts: Ints) -> float:
    """Of values, each as often as its count: statistics.quantiles, inclusive, by interpolation."""
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(counts[order])
    place, rest = divmod(tenths * (int(ends[-1]) - 1), 10)
    low = float(values[order[np.searchsorted(ends, place, side="right")]])
    if not rest:
        return low
    high = float(values[order[np.searchsorted(ends, place + 1, side="right")]])
    return low + (high - low) * (rest / 10)


def _decile_of_steps(tenths: int, ordered: Floats) -> float:
    """As statistics.quantiles has it, inclusive."""
    place, rest = divmod(tenths * (len(ordered) - 1), 10)
    low = float(ordered[place])
    high = float(ordered[place + 1]) if rest else low
    return (low * (10 - rest) + high * rest) / 10
