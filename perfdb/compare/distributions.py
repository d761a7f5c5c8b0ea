"""Student's t, the normal distribution and the polygamma functions, by `scipy.special`.

It is imported on the first use: importing it takes longer than most comparisons.
"""

from functools import cache
from math import inf
from types import ModuleType
from typing import Any


@cache
def _special() -> ModuleType:
    from scipy import special  # noqa: PLC0415

    found: ModuleType = special
    return found


def two_sided(t: Any, degrees: Any = None) -> Any:
    """The chance that Student's t is as far from zero or farther; without degrees, normal.

    Of numbers or of arrays of them.
    """
    far = -abs(t)
    return 2 * (_special().ndtr(far) if degrees is None else _special().stdtr(degrees, far))


@cache
def quantile(degrees: float, level: float) -> float:
    """The t beyond which, on both sides together, `level` of Student's distribution lies."""
    special, below = _special(), 1 - level / 2
    return float(special.ndtri(below) if degrees == inf else special.stdtrit(degrees, below))


@cache
def digamma(x: float) -> float:
    """The derivative of the logarithm of the gamma function."""
    return float(_special().psi(x))


@cache
def trigamma(x: float) -> float:
    """The derivative of `digamma`."""
    return float(_special().polygamma(1, x))


def inverse_trigamma(value: float) -> float:
    """The x at which the trigamma function has a positive value, by Newton's method.

    On its inverse, which is nearly linear, as `trigammaInverse` of the R package limma has it.
    """
    found = 0.5 + 1 / value
    for _ in range(50):
        now = trigamma(found)
        step = now * (1 - now / value) / float(_special().polygamma(2, found))
        found += step
        if abs(step) < 1e-8 * found:
            break
    return found
