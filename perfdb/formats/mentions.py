"""Finds the settings that a program prints, as `name=value` or `name: value`, in whatever layout.

A program may print its settings before and after it overrides them: the last dump counts. A setting
with several values in one dump is left out: which one the run had is unknown.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final

from perfdb.formats import precision, settings
from perfdb.formats.base import RunSettings
from perfdb.formats.precision import Pair, StatedPrecision
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
# The look behind is after the name: a pattern that begins with a literal is found at once.
_MENTIONED = (
    *(
        re.compile(rf"({name})(?<!\w{name})['\"]?\s*[=:]\s*['\"]?([\w.\-]+)")
        for name in (*NAMES, *SHAPE, "num_nodes", "devices", LIMIT)
    ),
    *(
        re.compile(rf"({name})(?<!\w{name})['\"]?[ \t]*[=:][ \t]*{_ENABLED}?['\"]?([\w.\-]+)")
        for name in precision.NAMES
        if name not in (*precision.RECIPES_OF, "torch_dtype")
    ),
    # In quotes it is that of a checkpoint, which transformers prints.
    re.compile(r"(torch_dtype)(?<![\w'\"]torch_dtype)[ \t]*[=:][ \t]*['\"]?([\w.\-]+)"),
    *(
        re.compile(rf"({name})(?<!\w{name})['\"]?[ \t]*[=:][ \t]*['\"]?({words})\b")
        for name, words in precision.RECIPES_OF.items()
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
    precision: StatedPrecision

    def configuration(self, **known: object) -> PartialCase:
        """What they say of a case; `known` are fields of it that are known without them."""
        own = {"precision": self.precision.name} if self.precision.name else {}
        return settings.configuration(self.settings, **(own | known))

    def described(self, known: Mapping[str, object], version: str | None = None) -> RunSettings:
        """The same as settings of a run, with what they leave open."""
        configuration = self.configuration(**known)
        stated = {*configuration.model_fields_set, *(configuration.options or ())}
        doubts = {
            field: f"{name} {' and '.join(values)}"
            for name, field in _FIELDS.items()
            if (values := self.several.get(name)) and field not in stated
        }
        doubts |= settings.doubts(self.settings)
        doubts |= {"precision": self.precision.doubt} if self.precision.doubt else {}
        return RunSettings(configuration, settings.shape(self.settings), doubts, version)


def mentioned(text: str) -> Printed:
    """The settings that a text mentions as `name=value` or `name: value`."""
    return printed(text, _mentions)


def printed(text: str, read: Read) -> Printed:
    """The settings of a text: those of a later dump replace those of an earlier one."""
    parts = [(part, list(read(part))) for part in _parts(text)]
    several: dict[str, tuple[str, ...]] = {}
    for _, pairs in parts:
        several |= _values(pair for pair in pairs if pair[0] not in precision.NAMES)
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
    """The same lines, those behind a key without what is before it: digits may differ."""
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
        values.setdefault(name, {}).setdefault("" if word in precision.NONE else word, value)
    return {name: tuple(found.values()) for name, found in values.items()}


def _precision(parts: Sequence[tuple[str, Sequence[Pair]]], read: Read) -> StatedPrecision:
    """The precision of the last dump that configures mixed precision, and of what is behind it.

    Where none does, of the last that says a precision.
    """
    own = [[pair for pair in pairs if pair[0] in precision.NAMES] for _, pairs in parts]
    insisting = [list(read(precision.insisting(part))) for part, _ in parts]
    claiming = [place for place, pairs in enumerate(insisting) if precision.claims(pairs)] or [
        place for place, pairs in enumerate(own) if precision.claims(pairs)
    ]
    start = claiming[-1] if claiming else 0
    return precision.of([*chain(*own[start:])], [*chain(*insisting[start:])])


def _parts(text: str) -> Sequence[str]:
    """The dumps of a text, each with what is behind it, and first what is above them."""
    starts = sorted(found.start() for dump in _DUMPS for found in dump.finditer(text))
    return [text[start:stop] for start, stop in pairwise([0, *starts, len(text)])]
