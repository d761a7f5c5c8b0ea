"""The colours of drawings: of the theme, so that they hold in light and in dark."""

from typing import Final

TEXT: Final = "var(--pst-color-text-base, currentColor)"
MUTED: Final = "var(--pst-color-text-muted, #666)"
RULE: Final = "var(--pst-color-border, #ccc)"
GROUND: Final = "var(--pst-color-surface, transparent)"

STEP: Final = "var(--perf-step, #0072b2)"
WARMUP: Final = "var(--perf-warmup, #e69f00)"
MEDIAN: Final = "var(--perf-median, #d55e00)"
GOOD: Final = "var(--perf-good, #00664d)"
BAD: Final = "var(--perf-bad, #b03a00)"
PUBLISHED: Final = "var(--perf-published, #7b3fb5)"
WARNING: Final = "var(--perf-warning, #8a5a00)"
FAINT: Final = f"color-mix(in srgb, {MUTED} 65%, var(--pst-color-background, #fff))"
"""A neutral bar: lighter than the good and the bad ones."""

SERIES: Final = (STEP, MEDIAN, GOOD, PUBLISHED, WARNING, MUTED)
"""The colours of lines that stand beside one another."""

OF_PEAKS: Final = {"bf16": STEP, "fp8": MEDIAN, "fp4": GOOD}
"""The colours of bars, by the peak that their precision is held against."""
