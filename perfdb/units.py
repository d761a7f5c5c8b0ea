"""Convert and print: the only place where a number becomes text for people."""

import math
import re
from functools import lru_cache

UNKNOWN = "–"
"""The text of a value that is not known. Never 0."""

SECONDS_PER_DAY = 86_400

LEAST_FIGURES = 3
"""The least significant figures of what was achieved: a CPU's 0.06 TFLOP/s is not 0.00."""

_PRINTED = re.compile(r"(\d[\d,]*)((?:\.\d+)?%?)")


def number(value: float | None, digits: int = 0) -> str:
    """A number with thousands separators and a fixed number of decimals; – when unknown."""
    if value is None or math.isnan(value):
        return UNKNOWN
    return f"{value:,.{digits}f}"


def significant(value: float | None, figures: int = 4) -> str:
    """A number to so many significant figures, never in exponent form; – when unknown."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if value == 0 or math.isinf(value):
        return f"{value:g}"
    # Of the rounded value: four figures of 9.9996 are 10.00.
    exponent = int(f"{value:.{figures - 1}e}".partition("e")[2])
    decimals = max(0, figures - 1 - exponent)
    return f"{value:,.{decimals}f}"


def figure(value: float | None, digits: int) -> str:
    """A number with so many decimals, or with three significant figures where these are more."""
    few = value is not None and 0 < abs(value) < 10.0 ** (LEAST_FIGURES - 1 - digits)
    return significant(value, LEAST_FIGURES) if few else number(value, digits)


def share(fraction: float | None, digits: int = 1) -> str:
    """0.4312 → 43.1%, 0.0004312 → 0.0431%: as `figure` in percent."""
    return UNKNOWN if fraction is None else f"{figure(fraction * 100, digits)}%"


def told_apart(one: float, other: float, figures: int) -> tuple[str, str]:
    """Two numbers to so many significant figures, and to more where these would say the same."""
    enough = (n for n in range(figures, 17) if significant(one, n) != significant(other, n))
    digits = next(enough, figures)
    return significant(one, digits), significant(other, digits)


@lru_cache(maxsize=10_000)
def regrouped(printed: str) -> str:
    """'13812.50' → '13,812.50': a printed number with our separators; other text unchanged."""
    found = _PRINTED.fullmatch(printed)
    return f"{int(found[1].replace(',', '')):,}{found[2]}" if found else printed


def counted(count: int, word: str) -> str:
    """'1 run', '1,200 runs': so many of what a word names."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def percent(fraction: float | None, digits: int = 1) -> str:
    """0.4312 → 43.1%; – when unknown."""
    return UNKNOWN if fraction is None else f"{fraction * 100:.{digits}f}%"


def text(value: object) -> str:
    """Any scalar as a page prints it: True is 1, unknown is –."""
    if value is None or value == "":
        return UNKNOWN
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def slug(name: str) -> str:
    """'Llama 3 (8B)' → 'llama-3-8b': a printed name as perfdb's own; empty if nothing is left."""
    return re.sub(r"[^\w.]+|_+", "-", name.casefold()).strip("-.")


def gib(size_bytes: float | None) -> str:
    """Bytes as GiB with two decimals; – when unknown."""
    return UNKNOWN if size_bytes is None else f"{size_bytes / 2**30:.2f} GiB"
