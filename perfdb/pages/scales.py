"""Units that stand above a table, or in a row of it, and are not those of its figures."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from perfdb.pages.columns import Column
from perfdb.pages.outline import Said, Table

_MANY: Final = r"(?:node|server|system|superchip|host|machine|instance|rack|cluster)"
_THOUSANDS: Final = r"(?:in\s+)?(?:thousands?|millions?)|[x×]\s?1,?000(?:,?000)?"
_TOTAL: Final = r"(?:in\s+)?(?:totals?|aggregated?|all\s+gpus)"
_SUBJECT: Final = r"\b(?:throughputs?|rates?|tokens|numbers|figures|values|results)\b"
_ARE: Final = (
    rf"{_SUBJECT}[^.;]{{0,80}}?\b(?:is|are)\s+(?:(?:all|given|reported|shown|printed|measured)\s+)*"
)
_OTHER: Final = re.compile(
    rf"\W*(?:[kmg]|{_THOUSANDS}|per[- ]{_MANY})\W*"
    rf"|.*(?:[x×]\s?1,?000\b|(?<![0-9] )\b(?:k|kilo|mega)[- ]?tok|\bin\s+thousands\b).*"
    rf"|.*{_SUBJECT}\W+per[- ]{_MANY}\b.*",
    re.IGNORECASE,
)
"""A heading, or a row of one cell, that says another unit of the figures below it."""
_ARE_OTHER: Final = re.compile(
    rf"{_ARE}(?:per[- ]{_MANY}\b|in\s+(?:thousands|millions)\b)", re.IGNORECASE
)
_OF_ALL: Final = re.compile(rf"\W*{_TOTAL}\W*", re.IGNORECASE)
_ARE_OF_ALL: Final = re.compile(rf"{_ARE}(?:{_TOTAL}\b|for\s+all\s+gpus)", re.IGNORECASE)
_OF_ONE: Final = re.compile(r"\bper[- ]gpu\b|/\s?gpu\b", re.IGNORECASE)
_ARE_OF_ONE: Final = re.compile(rf"{_ARE}per[- ]gpu\b", re.IGNORECASE)
_SAYS_ALL: Final = re.compile(r"\b(?:total|global|aggregated?|cluster|all\s+gpus)\b", re.IGNORECASE)
_PER_GPU: Final = frozenset({"tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu"})


def is_unit(text: str) -> bool:
    """Whether a row of one cell is of units: `(thousands)`, `per node`, `per GPU`."""
    return any(found.fullmatch(text) for found in (_OTHER, _OF_ALL)) or bool(_OF_ONE.search(text))


def wrong(table: Table, header: Sequence[Column]) -> tuple[str, str] | None:
    """Why the figures of a table are not what their titles say, and what to do."""
    fields = {field for column in header for field in column.fields}
    all_gpus = (one.title for one in header if "tokens_per_sec" in one.fields)
    open_total = any(not _SAYS_ALL.search(title) for title in all_gpus)
    for said in table.said:
        other = _says(said, _OTHER, _ARE_OTHER)
        of_all = not fields.isdisjoint(_PER_GPU) and _says(said, _OF_ALL, _ARE_OF_ALL)
        of_one = open_total and (_OF_ONE if said.heading else _ARE_OF_ONE).search(said.text)
        if other or of_all or of_one:
            message = f"{said.text!r}, which stands above, is another unit than that of the titles"
            return message, "write the unit into the titles of the columns: Tokens/s/GPU"
    return None


@lru_cache(maxsize=4096)
def _says(said: Said, heading: re.Pattern[str], line: re.Pattern[str]) -> bool:
    return bool((said.heading and heading.fullmatch(said.text)) or line.search(said.text))
