"""Units that a text says of a table's figures, and are not those of its titles; parts of a step."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from perfdb.pages import footnotes, sentences
from perfdb.pages.columns import Column
from perfdb.pages.outline import Said, Table

_MANY: Final = r"(?:node|server|system|superchip|host|machine|instance|rack|cluster)"
_GPUS: Final = r"(?:all|[0-9]+)\s+(?:\w+\s+)?gpus"
_THOUSANDS: Final = r"(?:in\s+)?(?:thousands?|millions?)|[x×]\s?1,?000(?:,?000)?"
_IN_THOUSANDS: Final = r"in\s+(?:thousands|millions)\b"
_KILO: Final = r"(?<![0-9] )\b(?:k|kilo|mega)[- ]?tok"
_TOTAL: Final = r"(?:in\s+)?(?:totals?|aggregated?|all\s+gpus)"
_SUMMED: Final = r"(?:totals?|aggregated?|combined|summed)"
_SUBJECT: Final = r"\b(?:throughputs?|rates?|tokens|numbers|figures|values|results)\b"
_ARE: Final = (
    rf"{_SUBJECT}[^.;]{{0,80}}?\b(?:is|are)\s+(?:(?:all|given|reported|shown|printed|measured)\s+)*"
)
_OF: Final = rf"{_SUBJECT}[^.;]{{0,40}}?\b(?:of|for|over|across)\s+"
_NORMALIZED: Final = r"normali[sz]ed(?!\s+(?:per|by\s+(?:the\s+)?(?:number|count|gpu))\b)"
_RELATIVE: Final = rf"(?:relative\s+to|{_NORMALIZED})\b"
_IS_RELATIVE: Final = rf"\A\W*(?:relative|normali[sz]ed)\s+(?:\w+\s+)?(?:{_SUBJECT}|performance\b)"
_OTHER: Final = re.compile(
    rf"\W*(?:[kmg]|{_THOUSANDS}|per[- ]{_MANY})\W*"
    rf"|.*(?:[x×]\s?1,?000\b|{_KILO}|\bin\s+thousands\b).*"
    rf"|.*{_SUBJECT}\W+(?:per[- ]{_MANY}\b|{_RELATIVE}).*|{_IS_RELATIVE}.*",
    re.IGNORECASE,
)
"""A heading, or a row of one cell, that says another unit of the figures below it."""
_ARE_OTHER: Final = re.compile(
    rf"{_ARE}(?:per[- ]{_MANY}\b|{_IN_THOUSANDS}|{_RELATIVE})|{_SUBJECT}\s+{_IN_THOUSANDS}"
    rf"|{_KILO}\w*\s*(?:/|per\b)|{_IS_RELATIVE}",
    re.IGNORECASE,
)
_COMPARED: Final = re.compile(
    r"\b(?:speed-?ups?|ratios?|gains?|improvements?|efficienc\w+|columns?)\b", re.IGNORECASE
)
"""What a sentence speaks of that is relative, and no figure."""
_OF_ALL: Final = re.compile(
    rf"\W*{_TOTAL}\W*|\W*{_SUMMED}\s+throughput\W*|.*\b{_OF}{_GPUS}\s+together\b.*", re.IGNORECASE
)
_ARE_OF_ALL: Final = re.compile(
    rf"{_ARE}(?:{_TOTAL}\b|for\s+all\s+gpus)|{_OF}{_GPUS}\s+(?:together|combined)\b"
    rf"|{_OF}the\s+(?:whole|entire)\s+{_MANY}\b|\b{_SUMMED}\s+(?:\w+\s+)?{_OF}{_GPUS}\b"
    rf"|{_SUBJECT}[^.;]{{0,40}}?\b{_SUMMED}\s+(?:of|over|across)\s+(?:the\s+)?{_GPUS}\b",
    re.IGNORECASE,
)
_OF_ONE: Final = re.compile(r"\bper[- ]gpu\b|/\s?gpu\b", re.IGNORECASE)
_ARE_OF_ONE: Final = re.compile(rf"{_ARE}per[- ]gpu\b", re.IGNORECASE)
_SAYS_ALL: Final = re.compile(r"\b(?:total|global|aggregated?|cluster|all\s+gpus)\b", re.IGNORECASE)
_PER_GPU: Final = frozenset({"tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu"})
_PASS: Final = r"(?:forward|backward|fwd|bwd)"
_PART: Final = re.compile(
    rf"\b{_PASS}(?:[- ]pass(?:es)?)?[- ]only\b|\bonly\s+(?:the\s+|an?\s+)?{_PASS}\b"
    r"|\b(?:no|without|w/o|excluding|excludes?)\s+(?:the\s+)?"
    r"(?:backward[- ]pass(?:es)?|optimi[sz]er[- ](?:step|update)s?)\b",
    re.IGNORECASE,
)
_TIMED: Final = re.compile(
    rf"{_SUBJECT}|\b(?:tim(?:e[ds]?|ings?)|measure\w*|benchmark\w*|profil\w+|r[au]n|reported)\b",
    re.IGNORECASE,
)
_MOST_WORDS: Final = 4
"""Of a sentence that says nothing but which part it is: `Forward pass only.`"""
_NOTE: Final = re.compile(r"notes?\s*:\s*", re.IGNORECASE)


def is_unit(text: str) -> bool:
    """Whether a row of one cell is of units: `(thousands)`, `per node`, `per GPU`."""
    return any(found.fullmatch(text) for found in (_OTHER, _OF_ALL)) or bool(_OF_ONE.search(text))


def wrong(table: Table, header: Sequence[Column]) -> tuple[str, str] | None:
    """Why the figures of a table are not what their titles say, and what to do."""
    fields = {field for column in header for field in column.fields}
    all_gpus = (one.title for one in header if "tokens_per_sec" in one.fields)
    open_total = any(not _SAYS_ALL.search(title) for title in all_gpus)
    said = [(one, "above") for one in table.said] + [(one, "below") for one in _below(table)]
    for one, where in said:
        other = _says(one, _OTHER, _ARE_OTHER)
        of_all = not fields.isdisjoint(_PER_GPU) and _says(one, _OF_ALL, _ARE_OF_ALL)
        of_one = open_total and (_OF_ONE if one.heading else _ARE_OF_ONE).search(one.text)
        if other or of_all or of_one:
            message = f"{one.text!r}, which stands {where}, is another unit than that of the titles"
            return message, "write the unit into the titles of the columns: Tokens/s/GPU"
        if part := _part(one):
            message = f"{one.text!r}, which stands {where}, says {part!r}: that is no whole step"
            return message, "put what was measured of whole steps below another heading"
    return None


def _below(table: Table) -> Iterator[Said]:
    """What the text right below a table says of all its figures; its footnotes are apart."""
    for line in table.below:
        text = _NOTE.sub("", line.text) if _NOTE.match(line.text) else line.text
        of_others = footnotes.begins(text) or sentences.OF_OTHERS_BELOW.search(text)
        if not line.titled and not line.listed and not of_others:
            yield Said(text, line.line, heading=False)


@lru_cache(maxsize=4096)
def _says(said: Said, heading: re.Pattern[str], line: re.Pattern[str]) -> bool:
    if said.heading and heading.fullmatch(said.text):
        return True
    spoken = (one for one in sentences.parts(said.text) if line.search(one))
    return any(line is not _ARE_OTHER or not _COMPARED.search(one) for one in spoken)


@lru_cache(maxsize=4096)
def _part(said: Said) -> str | None:
    """The words for a part of a step that was measured alone; of a recipe of FP8 they are none."""
    for one in [said.text] if said.heading else sentences.parts(said.text):
        found = _PART.search(one)
        timed = said.heading or _TIMED.search(one) or len(one.split()) <= _MOST_WORDS
        if found and timed and (said.heading or not sentences.precisions(one)):
            return found[0]
    return None
