"""Reads the settings that a log prints: of several dumps those of the steps it is judged by.

A program may print its settings before and after it overrides them, and a job that was queued again
prints them anew. A setting with several values in one dump is left out: nobody says which one the
run had.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Final

from perfdb import aggregation
from perfdb.formats import precisions, settings
from perfdb.formats.base import ParsedLog
from perfdb.formats.ending import WINDOW
from perfdb.formats.piecewise import Cells
from perfdb.formats.precisions import Pair, Stated
from perfdb.formats.readings import Readings
from perfdb.formats.settings import (
    ADAPTER,
    DUMPS,
    EARLIER,
    LIMIT,
    NAMES,
    OPTIONS,
    RAMP,
    SHAPE,
    Settings,
)
from perfdb.formats.spans import held_by, spans
from perfdb.record import PartialCase

Read = Callable[[str], Iterable[Pair]]
"""Finds the settings of a text, in their order."""

_DUMPS = tuple(map(re.compile, DUMPS))
_FIELDS: Final[Mapping[str, str]] = {
    **NAMES, "num_nodes": "num_gpus", "devices": "num_gpus", ADAPTER: "task",
    **{name: name for name in OPTIONS}, **EARLIER,
}  # fmt: skip
"""The fields and options of a case, by the settings that say them."""

_ITEM: Final = settings.ITEM
_ENABLED: Final = r"(?:\n(?P<depth>[ \t]++)(?:[^\n]*+\n(?P=depth)){0,99}?enabled:[ \t]*)"
"""AutoModel has `enabled` in a group of a setting, at any place."""
_PREFIXED_KEY = re.compile(r"(.{0,199}\S)[ \t]+['\"]?\w+['\"]?:\s*")
"""A key with its value on the lines behind, and what a launcher or a collector puts before it."""
_BACKEND = re.compile(
    r"backend(?<!\wbackend):[ \t]*\n(?P<depth>[ \t]++)[^\n]*(?:\n(?P=depth)[^\n]*)*+"
)
"""AutoModel's group of the kernels of a model."""
# The look behind stands after the name: a pattern that begins with a literal is found at once.
_MENTIONED = (
    *(
        re.compile(rf"({name})(?<!\w{name})['\"]?\s*[=:]\s*['\"]?([\w.\-]+)")
        for name in (*NAMES, *SHAPE, "num_nodes", "devices", LIMIT)
    ),
    *(
        re.compile(rf"({name})(?<!\w{name})['\"]?[ \t]*[=:][ \t]*{_ENABLED}?['\"]?([\w.\-]+)")
        for name in precisions.NAMES
        if name not in (*precisions.RECIPES_OF, "torch_dtype")
    ),
    # In quotes it is that of a checkpoint, which transformers prints.
    re.compile(r"(torch_dtype)(?<![\w'\"]torch_dtype)[ \t]*[=:][ \t]*['\"]?([\w.\-]+)"),
    *(
        re.compile(rf"({name})(?<!\w{name})['\"]?[ \t]*[=:][ \t]*['\"]?({words})\b")
        for name, words in precisions.RECIPES_OF.items()
    ),
    # The class of a group, where its recipe is left out.
    re.compile(r"(te_fp8):[ \t]*\n[ \t]+(_target_|recipe):"),
    re.compile(rf"(compile)(?<!\wcompile):[ \t]*{_ENABLED}([\w.\-]+)"),
    # A class or its short name, as `peft=<Config[LoRA(…` or in a group of its own; or none.
    re.compile(
        rf"({ADAPTER})(?<!\w{ADAPTER})(?:_scheme)?['\"]?[ \t]*[=:](?:\s*_target_:)?[ \t]*"
        r"(?:<\w+\[)?['\"]?((?i:(?:[\w.]*LoRA|null|none)\b))"
    ),
    # A value on the same line, or a list.
    *(
        re.compile(
            rf"({name})(?<!\w{name})['\"]?[ \t]*[=:][ \t]*['\"]?"
            rf"(\[[^\]\n]*\]|[\w.\-]+|(?:{_ITEM}[\w.]+)+)"
        )
        for name in (*OPTIONS, *EARLIER, RAMP)
        # Which any text may have: they count in a dump of arguments, or in a group of their own.
        if name not in ("profile", "compile")
    ),
)


@dataclass(frozen=True)
class Printed:
    """The settings that a log prints. `several`: the values of those that have more than one."""

    settings: Settings
    several: Mapping[str, Sequence[str]]
    precision: Stated

    def configuration(self, **known: object) -> PartialCase:
        """What they say of a case; `known` are fields of it that are known without them."""
        said = {"precision": self.precision.name} if self.precision.name else {}
        return settings.configuration(self.settings, **(said | known))

    def of(self, log: ParsedLog, **known: object) -> ParsedLog:
        """A log with what they say of its case, and with what they leave open."""
        configuration = self.configuration(**known)
        said = {*configuration.model_fields_set, *(configuration.options or ())}
        doubts = {
            field: f"{name} {' and '.join(values)}"
            for name, field in _FIELDS.items()
            if (values := self.several.get(name)) and field not in said
        }
        doubts |= settings.doubts(self.settings)
        doubts |= {"precision": self.precision.doubt} if self.precision.doubt else {}
        shape = settings.shape(self.settings)
        return replace(log, configuration=configuration, shape=shape, doubts=doubts)


def mentioned(text: str, log: ParsedLog | None = None) -> Printed:
    """The settings that a text mentions as `name=value` or `name: value`, in whatever layout."""
    return printed(text, _mentions, log)


def printed(text: str, read: Read, log: ParsedLog | None = None) -> Printed:
    """The settings of a text that stands above the steps of a log and among the first of them.

    A later dump holds over an earlier one, up to the first step that the log is judged by.
    """
    parts = [(part, list(read(part))) for part in _parts(text, log)]
    several: dict[str, tuple[str, ...]] = {}
    for _, pairs in parts:
        several |= _values(pair for pair in pairs if pair[0] not in precisions.NAMES)
    one = {name: values[0] for name, values in several.items() if len(values) == 1}
    more = {name: values for name, values in several.items() if len(values) > 1}
    return Printed(one, more, _precision(parts, read))


def _mentions(text: str) -> list[Pair]:
    text = _BACKEND.sub(_with_names, _without_prefixes(text))
    found = (one for pattern in _MENTIONED for one in pattern.finditer(text))
    return [(one[1], one.groups()[-1]) for one in sorted(found, key=lambda one: one.start())]


def _with_names(backend: re.Match[str]) -> str:
    """The same group, its kernels under the names that AutoModel's CI gives them."""
    kernels = rf"(?<=\n{backend['depth']})(?=(?:attn|linear|experts|dispatcher):)"
    return re.sub(kernels, "backend_", backend[0])


def _without_prefixes(text: str) -> str:
    """The same lines, those behind a key without what stands before it: digits may differ."""
    lines, prefix = text.split("\n"), None
    for place, line in enumerate(lines):
        if prefix and (found := prefix.match(line)):
            lines[place] = line[found.end() :]
        else:
            key = _PREFIXED_KEY.fullmatch(line) if line.rstrip().endswith(":") else None
            before = re.sub(r"\d+", r"\\d+", re.escape(key[1])) if key else ""
            prefix = re.compile(rf"{before}(?:[ \t]|$)") if key else None
    return "\n".join(lines)


def _values(pairs: Iterable[Pair]) -> dict[str, tuple[str, ...]]:
    """The values of each setting, in their order; of those that mean the same the first."""
    values: dict[str, dict[str, str]] = {}
    for name, value in pairs:
        word = value.lower()
        values.setdefault(name, {}).setdefault("" if word in precisions.NONE else word, value)
    return {name: tuple(found.values()) for name, found in values.items()}


def _precision(parts: Sequence[tuple[str, Sequence[Pair]]], read: Read) -> Stated:
    """The precision of the last dump that configures mixed precision, and of what is behind it.

    Where none does, of the last that says a precision.
    """
    said = [[pair for pair in pairs if pair[0] in precisions.NAMES] for _, pairs in parts]
    insisting = [list(read(precisions.insisting(part))) for part, _ in parts]
    claiming = [place for place, pairs in enumerate(insisting) if precisions.claims(pairs)] or [
        place for place, pairs in enumerate(said) if precisions.claims(pairs)
    ]
    start = claiming[-1] if claiming else 0
    return precisions.of([*chain(*said[start:])], [*chain(*insisting[start:])])


def judged(text: str, log: ParsedLog) -> str:
    """What of such a text is not of a later attempt than the one that a log is judged by."""
    return "".join(_parts(text, log))


def _parts(text: str, log: ParsedLog | None) -> Sequence[str]:
    """The dumps of a text, each with what stands behind it, and first what stands above them.

    Those behind the first step that a log is judged by are left out: they are of a later attempt.
    """
    starts = sorted(found.start() for dump in _DUMPS for found in dump.finditer(text))
    end = len(text)
    if len(starts) > 1 and log and log.readings:
        first = _offset(text, first_line(log))
        later = [start for start in starts if start > first]
        end = later[0] if 0 < len(later) < len(starts) else end
    bounds = [0, *(start for start in starts if start < end), end]
    return [text[start:stop] for start, stop in pairwise(bounds)]


def first_line(log: ParsedLog) -> int:
    """The line of the first step in the window of a log, or else of its last attempt."""
    return int(Readings.of(log.readings).line[first_place(log)])


def first_place(log: ParsedLog) -> int:
    """The place of that step among the steps of the log."""
    lasts = Readings.of(log.readings).step
    judged = held_by(aggregation.named(log.window or WINDOW), lasts, spans(lasts))
    again = min(bisect_left(Cells[int](lasts), log.restarted_at or 0), len(lasts) - 1)
    return judged.start if judged.stop else again


def _offset(text: str, line: int) -> int:
    """Where a line of a text begins; its end if it has fewer."""
    place = 0
    for _ in range(line - 1):
        place = text.find("\n", place) + 1
        if not place:
            return len(text)
    return place
