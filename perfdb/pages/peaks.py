"""The dense peaks that a page states its MFU against, in its prose."""

import re
from collections.abc import Mapping
from typing import Final

from perfdb import catalog

Peaks = Mapping[tuple[str, str], float]
"""TFLOP/s of a GPU, by the system and the peak of a precision (`bf16`, `fp8`, `fp4`)."""

_NUMBER: Final = r"(?P<number>[0-9][0-9,]*(?:\.[0-9]+)?)"
_IS = re.compile(
    rf"\bfor (?:the )?(?P<gpu>\w+) (?P<precision>\S+) is {_NUMBER} ?(?P<scale>[TP])FLOP", re.I
)
"""`The peak theoretical throughput for H100 FP8 is 1979 TFLOPS and for H100 BF16 is 989 TFLOPS`, of
NVIDIA's Nemotron-4 recipe."""
_FOR = re.compile(rf"{_NUMBER}(?P<scale>) for (?P<precision>\S+) (?P<gpu>\w+)\b", re.IGNORECASE)
"""`peak TFLOPs for the system (989 for BF16 H100)`, of AutoModel's performance summary."""
_PEAK = re.compile(r"\bpeak\b", re.IGNORECASE)


def stated(text: str) -> Peaks:
    """The peaks that the lines of a text state; a GPU or precision that is not known is none."""
    found: dict[tuple[str, str], float] = {}
    for line in filter(_PEAK.search, text.splitlines()):
        for one in (*_IS.finditer(line), *_FOR.finditer(line)):
            system = catalog.system_of_gpu(one["gpu"])
            recipe = catalog.precisions().get(catalog.precision_of(one["precision"]) or "")
            if system and recipe and recipe.peak:
                tflops = float(one["number"].replace(",", ""))
                found[system.name, recipe.peak] = tflops * (1000 if one["scale"] == "P" else 1)
    return found


def of_case(peaks: Peaks, system: str, precision: str | None) -> float | None:
    """The stated peak of a case's MFU; None where none is stated."""
    recipe = catalog.precisions().get(precision or "")
    return peaks.get((system, recipe.peak)) if recipe and recipe.peak else None
