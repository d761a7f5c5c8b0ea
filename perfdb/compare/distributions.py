"""Student's t, the normal distribution and the polygamma functions, without a typed table.

As `scipy.special` has them, whose import takes longer than a comparison. Pure functions.
"""

from functools import cache
from math import erfc, exp, inf, lgamma, log, log1p, pi, sqrt
from statistics import NormalDist
from typing import Final

_TINY: Final = 1e-300
_ENOUGH: Final = 1e-16
"""The relative change at which a series ends."""
_MOST_TERMS: Final = 10_000
_LARGE: Final = 16.0
"""From here on the asymptotic series of the polygamma functions are exact to a float's digits."""


def two_sided(t: float, degrees: float) -> float:
    """The chance that Student's t is as far from zero or farther; normal at infinite degrees.

    The regularized incomplete beta function I(ν/2, 1/2) at ν / (ν + t²): DLMF 8.17.
    """
    if degrees == inf:
        return erfc(abs(t) / sqrt(2))
    square = t * t
    if not square:
        return 1.0
    if square == inf:
        return 0.0
    x, rest = degrees / (degrees + square), square / (degrees + square)
    half = degrees / 2
    log_x = -log1p(square / degrees)
    front = exp(half * log_x + log(rest) / 2 - _log_beta(half))
    if x < (half + 1) / (half + 2.5):
        return front * _fraction(half, 0.5, x) / half
    return 1.0 - front * _fraction(0.5, half, rest) * 2


@cache
def _log_beta(half: float) -> float:
    """The logarithm of B(half, 1/2)."""
    return lgamma(half) + log(pi) / 2 - lgamma(half + 0.5)


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, DLMF 8.17.22, by Lentz's method."""
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d or _TINY)
    found = d
    for m in range(1, _MOST_TERMS):
        of = a + 2 * m
        term = m * (b - m) * x / ((of - 1) * of)
        d, c = 1 / ((1 + term * d) or _TINY), (1 + term / c) or _TINY
        found *= d * c
        term = -(a + m) * (a + b + m) * x / (of * (of + 1))
        d, c = 1 / ((1 + term * d) or _TINY), (1 + term / c) or _TINY
        found *= d * c
        if abs(d * c - 1) <= 2 * _ENOUGH:
            break
    return found


@cache
def quantile(degrees: float, level: float) -> float:
    """The t beyond which, on both sides together, `level` of Student's distribution lies.

    Newton's method on logarithms, of which the tail is a concave function.
    """
    normal = NormalDist().inv_cdf(1 - level / 2)
    if degrees == inf:
        return normal
    at = log(normal)
    for _ in range(100):
        t = exp(at)
        tail = two_sided(t, degrees)
        density = exp(-(degrees + 1) / 2 * log1p(t * t / degrees) - _log_beta(degrees / 2)) / sqrt(
            degrees
        )
        step = log(tail / level) * tail / (2 * t * density)
        at += step
        if abs(step) < 4 * _ENOUGH * max(1.0, abs(at)):
            break
    return exp(at)


@cache
def digamma(x: float) -> float:
    """The derivative of the logarithm of the gamma function, of a positive x: DLMF 5.11.2."""
    less = 0.0
    while x < _LARGE:
        less += 1 / x
        x += 1
    y = 1 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132)))))
    return log(x) - 1 / (2 * x) - series - less


@cache
def trigamma(x: float) -> float:
    """The derivative of `digamma`."""
    more = 0.0
    while x < _LARGE:
        more += 1 / (x * x)
        x += 1
    y = 1 / (x * x)
    series = y * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * (5 / 66)))))
    return 1 / x + y / 2 + series / x + more


def inverse_trigamma(value: float) -> float:
    """The x at which the trigamma function has a positive value, by Newton's method.

    On its inverse, which is nearly linear, as `trigammaInverse` of the R package limma has it.
    """
    found = 0.5 + 1 / value
    for _ in range(50):
        now = trigamma(found)
        step = now * (1 - now / value) / _tetragamma(found)
        found += step
        if abs(step) < 1e-8 * found:
            break
    return found


def _tetragamma(x: float) -> float:
    """The derivative of `trigamma`."""
    less = 0.0
    while x < _LARGE:
        less += 2 / (x * x * x)
        x += 1
    y = 1 / (x * x)
    series = y * (1 / 2 - y * (1 / 6 - y * (1 / 6 - y * (3 / 10 - y * (5 / 6)))))
    return -y - y / x - y * series - less
