"""Why two sides or releases are no measure of each other; FLOPs restated as the other counts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from perfdb import stated
from perfdb.audit.interval import half_unit
from perfdb.catalog import titles
from perfdb.compare.sides import Side, usable
from perfdb.metrics import CONVENTION_BOUND, METRICS
from perfdb.queries.scope import EVERY, Scope
from perfdb.record import Origin
from perfdb.stated import MFU, RATE
from perfdb.units import significant, text
from perfdb.versions import natural

if TYPE_CHECKING:
    from perfdb.audit.restated import Restated
    from perfdb.compare.match import Comparison

_RATES: Final = (RATE, "tokens_per_sec", "step_time_s")
"""What tokens/s/GPU are known by; the first that a result states."""
_TFLOPS: Final = "model_tflops_per_sec_per_gpu"
ROUNDOFF: Final = 1e-9
"""The relative error that floating-point arithmetic may add."""
_SAME_COUNT: Final = 0.001
"""By how much two counts of FLOPs per token may differ and be one, if their digits say less: a file
may pad a figure with zeros that nobody measured. Conventions are further apart."""


WORKLOAD_WORDS: Final[Mapping[str, tuple[str, Callable[[str], str]]]] = {
    "framework": ("frameworks", str),
    "system_title": ("systems", str),
    "model_title": ("models", str),
    "qualifiers": ("model qualifiers", str),
    "task": ("tasks", titles.task),
    "precision": ("precisions", titles.precision),
    "num_gpus": ("numbers of GPUs", str),
    "sequence_length": ("sequence lengths", str),
    "global_batch_size": ("global batch sizes", str),
}
"""The fields that must agree before two results are the same work: their words and titles."""
MOST_VALUES: Final = 4
"""Values of a field that the reason why releases share no work names."""


def restated(a: Side, b: Side, metric: str) -> "tuple[Restated, Side] | None":
    """B as A counts FLOPs, with the digits that it had; None where no formula tells.

    The figures of both must be those of their conventions: what is left between the counts is
    rounding.
    """
    from perfdb.audit.restated import counted_alone, restate  # noqa: PLC0415  few need it

    to, _ = counted_alone(a.shown)
    counted, note = counted_alone(b.shown)
    found = restate(b.shown, counted, to, note) if to else None
    value = found and (found.mfu if metric == MFU else found.tflops_per_sec_per_gpu)
    stated_figure = usable(b.shown, metric)
    if not found or not value or not stated_figure:
        return None
    side = b.with_flops(value / stated_figure, a.shown.flops_convention)
    return None if no_measure(a, side, metric) else (found, side)


def no_measure(a: Side, b: Side, metric: str) -> str | None:
    """Why two figures that count FLOPs are no measure of each other; None where they are."""
    if metric not in CONVENTION_BOUND:
        return None
    conventions = a.shown.flops_convention, b.shown.flops_convention
    if None not in conventions and len(set(conventions)) > 1:
        return f"FLOPs conventions differ: {conventions[0]} / {conventions[1]}"
    counts = gflop_per_token_apart(a, b)
    return f"GFLOP per token differ: {' / '.join(map(significant, counts))}" if counts else None


def gflop_per_token_apart(a: Side, b: Side) -> tuple[float, float] | None:
    """The GFLOP per token that two sides of the same work count; None where they may agree.

    By TFLOP/s ÷ tokens/s, which may follow from the rate of all GPUs or the step time, with the
    rounding of the four figures, and within a tenth of a per cent whatever their digits.
    """
    one, other = _gflop_per_token(a), _gflop_per_token(b)
    if not one or not other:
        return None
    allowed = max(one[1] + other[1], _SAME_COUNT) + ROUNDOFF
    return (one[0], other[0]) if abs(other[0] / one[0] - 1) > allowed else None


def waived(a: Side, b: Side, metric: str) -> float:
    """The share by which counts of FLOPs that are taken for the same differ beyond rounding."""
    if metric not in CONVENTION_BOUND:
        return 0.0
    one, other = _gflop_per_token(a), _gflop_per_token(b)
    if not one or not other:
        return 0.0
    apart = abs(other[0] / one[0] - 1)
    return apart if apart > one[1] + other[1] + ROUNDOFF else 0.0


def _gflop_per_token(side: Side) -> tuple[float, float] | None:
    """What a side counts, and the share of it that rounding leaves open."""
    result = side.shown
    known = {name: value for name in (*_RATES, _TFLOPS) if (value := usable(result, name))}
    nothing: dict[str, float | None] = dict.fromkeys(_RATES)
    tokens = stated.figure(replace(result, **(nothing | known)), RATE)  # type: ignore[arg-type]
    if tokens is None or _TFLOPS not in known:
        return None
    rate = next(iter(known))
    of_rate = half_unit(known[rate], rate, result.printed.get(rate)) / known[rate]
    flops = usable((side.stated or side).shown, _TFLOPS) or known[_TFLOPS]
    of_flops = half_unit(flops, _TFLOPS, result.printed.get(_TFLOPS)) / flops
    return known[_TFLOPS] * 1e3 / tokens, max(of_rate, side.rounding(rate)) + of_flops


def not_of_both(a: Side, b: Side, metric: str) -> str:
    """Which figures both have instead, or else each."""
    ours, theirs = (
        [one.title for one in METRICS.values() if side.median(one.name) is not None]
        for side in (a, b)
    )
    if not ours or not theirs:
        which = "either" if ours == theirs else "A" if not ours else "B"
        return f"no figure of {which}"
    if shared := [title for title in ours if title in theirs]:
        return f"not both have {METRICS[metric].title}, but both have {', '.join(shared)}"
    return f"no figure that both state ({', '.join(ours)}; {', '.join(theirs)})"


def not_alike(a: Side, b: Side) -> str | None:
    """Why two sides were not measured alike; None where they were.

    Steps of another part of a run are faster or slower for that alone, on one side too.
    """
    if a.origin != b.origin:
        return f"one is {a.origin}, the other {b.origin}"
    windows = a.windows if a.windows is b.windows else a.windows | b.windows
    if a.origin == Origin.MEASURED and len(windows) > 1:
        return f"windows differ: {text(a.window)} / {text(b.window)}"
    return None


def why_nothing(name_a: str, name_b: str, comparison: "Comparison", only: Scope = EVERY) -> str:
    """That two releases share no work, and why: 'different systems (DGX-H100 / DGX-B200)'.

    `only` is what the comparison was narrowed to.
    """
    asked = ((name, value) for name, values in only.options.items() for value in values)
    narrowed = " ".join(f"--{name} {value}" for name, value in asked)
    sides = (comparison.only_a, comparison.only_b)
    for name, found in zip((name_a, name_b), sides, strict=True):
        if not found:
            of_these = f" of {narrowed}" if narrowed else ""
            return f"Nothing to compare: {name} has no results{of_these}."
    reasons = []
    for field, (words, title) in WORKLOAD_WORDS.items():
        a, b = ({getattr(side.shown, field) for side in some} for some in sides)
        if not a & b:
            reasons.append(f"different {words} ({_few(a, title)} / {_few(b, title)})")
    reason = "; ".join(reasons) or "no combination of them is in both"
    return f"Nothing to compare: {name_a} and {name_b} share no work: {reason}."


def _few(values: Iterable[object], title: Callable[[str], str]) -> str:
    ordered = sorted(values, key=lambda one: (one is None, natural(str(one))))
    known = [title(text(one)) for one in ordered]
    left = len(known) - MOST_VALUES
    return f"{', '.join(known[:MOST_VALUES])} and {left:,} more" if left > 1 else ", ".join(known)
