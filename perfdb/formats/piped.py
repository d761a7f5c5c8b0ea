"""What a step line of the shape `START | key: value | key: value |` says, read by itself.

Megatron and NeMo print such lines. See `perfdb.formats.wrapped` for one that goes on on the next.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from perfdb.formats.numbers import NUMBER, WHOLE

Span = tuple[int, int]
"""Where a number starts and ends."""

_VALUE = rf"{NUMBER}(?:/{NUMBER})?"
_ITEM = re.compile(rf"\s*([^\s|:\[\]][^|:\[\]]{{0,99}}):\s*{_VALUE}\s*")


@dataclass(frozen=True)
class Syntax:
    """How a program prints a step.

    `marker` stands once in each step line; `start` is where a step's text begins, with a group for
    each of `counters`; `fields` are the keys that matter, none of which holds a digit; `required`
    those no step is without; `facts` those that say something of the run rather than of a step;
    `last`: the field that stands behind all others of every step, where there is one.
    A value may be a pair `last/average`: the last is taken.
    """

    marker: bytes
    start: str
    counters: tuple[str, ...]
    fields: tuple[str, ...]
    required: tuple[str, ...]
    facts: tuple[str, ...]
    last: str | None = None

    @cached_property
    def starts(self) -> re.Pattern[str]:
        """Finds where the text of a step begins."""
        return re.compile(self.start + r"\s*\|")

    @cached_property
    def values(self) -> re.Pattern[str]:
        """Finds the fields that matter, each with its value."""
        keys = "|".join(map(_key, sorted(self.fields, key=len, reverse=True)))
        return re.compile(rf"\|\s*({keys}):[ \t]*({NUMBER})(?:/{NUMBER})?{WHOLE}")

    @cached_property
    def by_letters(self) -> Mapping[str, str]:
        """The fields by their keys without spaces: a line break may have taken one."""
        return {_letters(field): field for field in self.fields}

    @cached_property
    def _end(self) -> re.Pattern[str] | None:
        return re.compile(rf"\|\s*{_key(self.last)}:\s*{_VALUE}\s*\|") if self.last else None

    @property
    def names(self) -> tuple[str, ...]:
        """All the numbers that a step may have."""
        return (*self.counters, *self.fields)

    def ends_in(self, text: str) -> bool:
        """Whether a text holds the last field of a step."""
        return bool(self._end and self._end.search(text))

    def is_closed(self, text: str) -> bool:
        """Whether a step of this text goes on on no other line, unless that looks like it."""
        return self.ends_in(text) if self.last else self.is_whole(text)

    def is_whole(self, text: str) -> bool:
        """Whether a text is a step's start and fields with numbers, of which none is broken."""
        start = self.starts.match(text)
        if not start:
            return False
        return self._are_items(text[start.end() :])

    def open_key(self, text: str) -> str | None:
        """The key that a text ends in the number of, without its spaces; nothing closes it."""
        item = _ITEM.fullmatch(text.rpartition("|")[2])
        return _letters(item[1]) if item else None

    def field_of_end(self, text: str) -> str | None:
        """The field that a text ends in, with a number or before it."""
        key, colon, _ = text.rpartition("|")[2].partition(":")
        return self.by_letters.get(_letters(key)) if colon else None

    def goes_on_with(self, text: str, rest: str) -> bool:
        """Whether a text and a rest have nothing but keys with numbers behind the text's last |."""
        return self._are_items(text.rpartition("|")[2] + rest)

    def _are_items(self, text: str) -> bool:
        *items, last = text.split("|")
        return all(map(self._is_item, items)) and (not last.strip() or self._is_item(last))

    def _is_item(self, text: str) -> bool:
        """Whether a text is a key with a number, and not a field's with something before it."""
        item = _ITEM.fullmatch(text)
        letters = _letters(item[1]) if item else ""
        is_hidden = letters.endswith(tuple(self.by_letters)) and letters not in self.by_letters
        return bool(item) and not is_hidden

    def spans(self, text: str) -> Mapping[str, Span]:
        """Where in a step's text counters and fields stand; of a field told twice, the first."""
        start = self.starts.match(text)
        counters = self.counters if start else ()
        spans = {name: start.span(n) for n, name in enumerate(counters, 1) if start}
        for found in self.values.finditer(text):
            spans.setdefault(self.by_letters[_letters(found[1])], found.span(2))
        return spans

    def lacking(self, row: Mapping[str, float]) -> Sequence[str]:
        """What a step should have and does not: all that is required, else the last field."""
        lacking = [name for name in self.required if name not in row]
        return lacking or [name for name in (self.last,) if name and name not in row]


def is_spoilt(text: str) -> bool:
    """Whether a text ends in what is no key with a number, whatever comes behind it."""
    last = text.rpartition("|")[2]
    return last.count(":") > 1 or "[" in last


def _key(key: str) -> str:
    """A pattern for a key, of which a line break may have taken spaces."""
    return r"\s*".join(map(re.escape, key.split()))


def _letters(key: str) -> str:
    return "".join(key.split())
