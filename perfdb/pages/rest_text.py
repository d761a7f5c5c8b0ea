"""Text within lines of reStructuredText: the words that a reader sees, and marks of footnotes."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final

from perfdb.pages import cells

_SUBSTITUTION = re.compile(r"^ *\.\. +\|([^|\n]+)\| +(?:replace|unicode)::[ ]*(.*)$", re.MULTILINE)
_INLINE = re.compile(
    r"""\\(?P<escaped>(?s:.))
      | ``(?P<literal>[^`]+)``
      | :(?P<role>[\w:.+-]{1,60}):`(?P<of_role>[^`]+)`
      | `(?P<link>[^`]+)`(?:__?|:[\w.+-]{1,60}:)?
      | \[(?P<mark>[^\[\]\s]{1,60})\]_\b(?!_)
      | \[(?P<last>[^\[\]\s]{1,60})\]_
      | \|(?P<name>[^|\s][^|]{0,60})\|_{0,2}
      | (?P<stars>\*{1,2})(?P<strong>[^*\s](?:[^*]*[^*\s])?)(?P=stars)
      | \b(?P<reference>[^\W_]+)__?(?=$|[\s.,;:!?)'"])""",
    re.VERBOSE,
)
_TARGET = re.compile(r"\s*<[^<>]*>$")
_SYMBOLS: Final = "*†‡§¶#"
"""What stands for `[*]_`, in the order of docutils."""
_ANONYMOUS = re.compile(r"(?P<defined>^ *\.\. +)?\[(?P<kind>[#*])\](?(defined)(?=\s)|_)", re.M)

_STRIKING: Final = frozenset({"s", "del", "strike", "strikethrough", "line-through"})
"""Roles that strike their text out, as pages define them."""

_NUMBERED = re.compile(r"^ *\.\. +\[([1-9])\]", re.MULTILINE)


def numbered(text: str) -> str:
    """The text with the marks that docutils would print for `[#]_` and `[*]_`.

    Marks keep their width, for they stand in tables: from the tenth on they stay as they are.
    """
    taken = set(_NUMBERED.findall(text))
    numerals = [mark for mark in "123456789" if mark not in taken]
    numbers: dict[tuple[str, bool], Iterator[int]] = {}

    def printed(found: re.Match[str]) -> str:
        key = (found["kind"], found["defined"] is None)
        at = next(numbers.setdefault(key, count()))
        marks = numerals if found["kind"] == "#" else list(_SYMBOLS)
        mark = marks[at] if at < len(marks) else found["kind"]
        return f"{found['defined'] or ''}[{mark}]{'' if found['defined'] else '_'}"

    return _ANONYMOUS.sub(printed, text)


@dataclass(frozen=True)
class Inline:
    """Resolves the markup within lines; `substitutions` are the page's own."""

    substitutions: Mapping[str, str]

    @classmethod
    def of(cls, text: str) -> "Inline":
        """With the substitutions that a page defines anywhere."""
        return cls({name.casefold(): said for name, said in _SUBSTITUTION.findall(text)})

    def words(self, markup: str) -> str:
        """The words a reader sees; a mark of a footnote is printed as `[^1]`."""
        return " ".join(_INLINE.sub(self._plain, markup).split())

    def cell_words(self, markup: str) -> str:
        """The words of a cell; numbers of two runs of text, or on two lines, stay apart."""
        return cells.together(_INLINE.sub(self._run, markup))

    def _run(self, found: re.Match[str]) -> str:
        edge = "" if found["escaped"] else cells.EDGE
        return f"{edge}{self._plain(found)}{edge}"

    def _plain(self, found: re.Match[str]) -> str:
        kind = found.lastgroup or ""
        if kind == "escaped":
            return "" if found["escaped"].isspace() else found["escaped"]
        if kind == "of_role":
            return _of_role(found["role"], found["of_role"])
        if mark := found["mark"] or found["last"]:
            return f"[^{mark.lstrip('#') or mark}]"
        if kind == "name":
            return self.substitutions.get(found["name"].casefold(), found[0])
        if kind == "link":
            return _titled(found["link"])
        return found[kind]


def _of_role(role: str, text: str) -> str:
    if role in ("sup", "superscript"):
        return f"<sup>{text}</sup>"
    if role in _STRIKING:
        return f"~~{text}~~"
    return _titled(text.removeprefix("~"))


def _titled(text: str) -> str:
    """The title of `title <target>`; the target itself where it has none."""
    return _TARGET.sub("", text) or text.strip("<> ")
