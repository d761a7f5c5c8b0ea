"""The color of each precision and each system, the same in every chart of site and dashboard.

Each is for a light and for a dark background, 3:1 or more against white or #121212. Precisions of
one family have colors of one hue or next to it, and systems of one generation too; those of one
family differ in lightness, so that they differ without hues.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from perfdb import catalog


class Shade(NamedTuple):
    """A color on a light background and on a dark one."""

    light: str
    dark: str


NEUTRAL: Final = Shade("#6b6b6b", "#9a9a9a")
"""What is not known, and systems that the catalog lacks."""

PRECISIONS: Final[Mapping[str, Shade]] = {
    "fp32": Shade("#4d4d4d", "#b8b8b8"),
    "bf16": Shade("#0072b2", "#56b4e9"),
    "fp16": Shade("#3f4aa8", "#98a4f5"),
    "fp8": Shade("#d55e00", "#ff8a3d"),
    "fp8_ds": Shade("#8a3a00", "#c97842"),
    "fp8_cs": Shade("#a87400", "#f0c24b"),
    "fp8_mx": Shade("#a3267f", "#ee8ccf"),
    "fp8_sc": Shade("#7040b0", "#b793ef"),
    "nvfp4": Shade("#00664d", "#4fd1a5"),
}
SYSTEMS: Final[Mapping[str, Shade]] = {
    "dgx-a100": Shade("#7d7d7d", "#8f8f8f"),
    "dgx-a100-40gb": Shade("#4d4d4d", "#b8b8b8"),
    "dgx-h100": Shade("#4f6d94", "#9db7d9"),
    "dgx-h200": Shade("#1f3f6b", "#6d93c9"),
    "dgx-b200": Shade("#bf6516", "#e89a52"),
    "dgx-b300": Shade("#7d3b00", "#c97f45"),
    "dgx-gb200": Shade("#5f9000", "#a9db45"),
    "dgx-gb300": Shade("#2c5a00", "#6fae2e"),
}
_OTHERS: Final = (
    Shade("#00798c", "#4fc3d6"),
    Shade("#a3267f", "#ee8ccf"),
    Shade("#7040b0", "#b793ef"),
    Shade("#a87400", "#f0c24b"),
)
"""The colors of the other systems, in the order of the catalog."""


def of_precision(name: str | None) -> Shade:
    """The color of a precision; a neutral one where it is not known."""
    return PRECISIONS.get(name or "", NEUTRAL)


def of_system(name: str) -> Shade:
    """The color of a system; a neutral one for those that the catalog lacks."""
    if name in SYSTEMS:
        return SYSTEMS[name]
    others = [it for it in catalog.systems() if it not in SYSTEMS]
    return _OTHERS[others.index(name) % len(_OTHERS)] if name in others else NEUTRAL
