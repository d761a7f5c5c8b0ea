"""MDX: Markdown between components such as Docusaurus's and Mintlify's tabs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Final

from perfdb.pages import markdown
from perfdb.pages.base import Enter, Leave, Page, Piece, Skipped
from perfdb.pages.directives import NOTES, included
from perfdb.pages.markdown_text import words

NAME = "mdx"

_CODE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[^\n]*(?:\n.*?(?:^[ \t]*(?P=fence)[`~]*[ \t]*$|\Z)|\Z)"
    r"|`[^`\n]+`",
    re.MULTILINE | re.DOTALL,
)
_MODULES = re.compile(
    r"""^(?:import\s+(?:[^\n]*\sfrom\s+)?["'{*\w]|export\s+(?:const|let|var|default|function)\b)""",
    re.MULTILINE,
)
_MODULE_LINES = re.compile(rf"{_MODULES.pattern}[^\n]*(?:\n[^\n]+)*", re.MULTILINE)
_PARTIAL = re.compile(r"""import\s+(\w+)\s+from\s+["']([^"'\n]+\.(?:mdx?|markdown|rst))["']""")
"""A text in another file that an element of its own stands for."""
_NUMBERS = re.compile(r"[\[,:]\s*[0-9.]+\s*(?=[,\]}])")
_COMMENT = re.compile(r"\{/\*.*?(?:\*/\s*\}|\Z)", re.DOTALL)
_TAG = re.compile(
    r"""<(?P<end>/?)(?P<name>[A-Z][\w.]*|details)(?=[\s/>])
        (?P<attributes>(?>[^<>"'{}/]+|/(?!>)|"[^"]*"|'[^']*'
            |\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*+\})*+\})*+)(?P<alone>/?)>""",
    re.VERBOSE,
)
_START = re.compile(r"^[ \t]*<([A-Z][\w.]*[a-z][\w.]*)[\s/>]", re.MULTILINE)
_END = re.compile(r"</([A-Z][\w.]*[a-z][\w.]*)>")
"""Of components; HTML may be written in capitals, but then in nothing else."""
_ATTRIBUTE = re.compile(r"""([\w-]+)\s*=\s*(?:\{\s*)?(?:"([^"]*)"|'([^']*)'|`([^`]*)`)""")
_PROPERTY = re.compile(r"""["']?(label|value)["']?\s*:\s*(?:"([^"]*)"|'([^']*)')""")
_ITEMS = re.compile(r"items\s*=\s*\{\s*\[([^\]]*)\]")
_TEXT = re.compile(r"""["']([^"']*)["']""")
_VALUES = re.compile(r"\{([^{}]*)\}")
_SUMMARY = re.compile(r"\s*<summary[^<>]*>(.{0,500}?)</summary", re.DOTALL)
_FEWEST_NUMBERS: Final = 3
"""Of a component that may be a table, or a chart."""
_DEEPEST: Final = 100
"""Components within components that are followed."""


def recognises(text: str) -> bool:
    """Whether a text imports, exports, has a comment of JSX or a component that ends."""
    plain = _without_code(markdown.without_front(text)[1])
    if _MODULES.search(plain) or _COMMENT.search(plain):
        return True
    starts = {found[1] for found in _START.finditer(plain)}
    return any(found[1] in starts for found in _END.finditer(plain))


def page(text: str) -> Page:
    """The pieces of an MDX text."""
    front, rest = markdown.without_front(text)
    reader = _Reader(rest)
    return Page(front, tuple(reader.read()), reader.footnotes)


@dataclass(frozen=True)
class _Open:
    """A component that is open: its name, and the labels that it has for those inside it."""

    name: str
    labels: Mapping[str, str]
    items: list[str]


@dataclass
class _Reader:
    """Reads a text from component to component; what is between them is Markdown."""

    text: str
    footnotes: dict[str, str] = field(default_factory=dict)
    opened: list[_Open] = field(default_factory=list)

    def read(self) -> Iterator[Piece]:
        text = self.text
        code = _without_code(text)
        partials = dict(_PARTIAL.findall(code))
        for pattern in (_MODULE_LINES, _COMMENT):
            text, code = _cut(pattern, code, text), _blanked(pattern, code)
        at, line, inline = 0, 1, _inline(code)
        for tag in _TAG.finditer(code):
            if tag.start() in inline:
                continue
            yield from self.between(text[at : tag.start()], line)
            line += text.count("\n", at, tag.start())
            yield from _elsewhere(tag, line, partials)
            yield from self.tag(tag, line)
            line += text.count("\n", tag.start(), tag.end())
            at = tag.end()
        yield from self.between(text[at:], line)
        yield from (Leave() for _ in self.opened)

    def between(self, text: str, line: int) -> Iterator[Piece]:
        """Markdown, without the indent that it has from standing in a component."""
        if text.strip():
            first, _, rest = text.partition("\n")
            plain = _TAG.sub("", f"{first.strip()}\n{dedent(rest)}")
            yield from markdown.pieces(plain, line, self.footnotes)

    def tag(self, tag: re.Match[str], line: int) -> Iterator[Piece]:
        if tag["end"]:
            yield from self.leave(tag["name"])
        elif not tag["alone"] and len(self.opened) < _DEEPEST:
            yield Enter(self.label(tag), line, note=tag["name"].lower() in NOTES)
            self.opened.append(_open(tag))

    def leave(self, name: str) -> Iterator[Piece]:
        """Leave a component and those in it that have no end; an end without a start is none."""
        if any(one.name == name for one in self.opened):
            while True:
                yield Leave()
                if self.opened.pop().name == name:
                    return

    def label(self, tag: re.Match[str]) -> str:
        """What a tab says by itself, or what the tabs around it say of it."""
        said = _attributes(tag["attributes"])
        above = self.opened[-1] if self.opened else _Open("", {}, [])
        for name in ("label", "title", "summary", "tab"):
            if name in said:
                return words(said[name])
        if tag["name"] == "details":
            summary = _SUMMARY.match(tag.string, tag.end())
            return words(summary[1]) if summary else ""
        if "Tab" in tag["name"] and above.items:
            return above.items.pop(0)
        return above.labels.get(said.get("value", ""), said.get("value", ""))


def _elsewhere(tag: re.Match[str], line: int, partials: Mapping[str, str]) -> Iterator[Piece]:
    """What is to be said of a component that stands for another file, or holds its own values."""
    if not tag["end"] and tag["name"] in partials:
        yield included(partials[tag["name"]], line)
    elif len(_NUMBERS.findall(tag["attributes"])) >= _FEWEST_NUMBERS:
        message = f"the values in the component {tag['name']!r} are not read"
        yield Skipped(message, line, "write a table, or ingest the built page")


def _open(tag: re.Match[str]) -> _Open:
    """A component with the labels in `values={[{label: …, value: …}]}` or `items={[…]}`."""
    properties = (
        {found[1]: found[2] or found[3] or "" for found in _PROPERTY.finditer(value[1])}
        for value in _VALUES.finditer(tag["attributes"])
    )
    labels = {one.get("value", ""): one["label"] for one in properties if "label" in one}
    items = _ITEMS.search(tag["attributes"])
    return _Open(tag["name"], labels, _TEXT.findall(items[1]) if items else [])


def _attributes(text: str) -> Mapping[str, str]:
    return {f[1]: f[2] or f[3] or f[4] or "" for f in _ATTRIBUTE.finditer(text)}


def _inline(code: str) -> frozenset[int]:
    """Where the tags start that stand within a line of text or a row, and not around it."""
    found: set[int] = set()
    line_tags: list[re.Match[str]] = []
    for tag in _TAG.finditer(code):
        if line_tags and "\n" in code[line_tags[-1].end() : tag.start()]:
            found.update(_within(code, line_tags))
            line_tags = []
        line_tags.append(tag)
    found.update(_within(code, line_tags))
    return frozenset(found)


def _within(code: str, tags: Sequence[re.Match[str]]) -> Iterator[int]:
    """Of the tags of a line: all of them where it is a row of a table, or text, and no note."""
    if tags:
        start = code.rfind("\n", 0, tags[0].start()) + 1
        end = code.find("\n", tags[-1].end())
        stop = end if end >= 0 else len(code)
        around = code[start : tags[0].start()] + code[tags[-1].end() : stop]
        is_note = tags[0]["name"].lower() in NOTES
        is_text = bool(around.strip()) and not is_note and _are_closed(tags)
        if is_text or "|" in (around if is_note else _TAG.sub("", code[start:stop])):
            yield from (tag.start() for tag in tags)


def _are_closed(tags: Sequence[re.Match[str]]) -> bool:
    """Whether no box is open where the line of some tags ends, and one is within it."""
    opened = sorted(tag["name"] for tag in tags if not (tag["end"] or tag["alone"]))
    return bool(opened) and opened == sorted(tag["name"] for tag in tags if tag["end"])


def _without_code(text: str) -> str:
    """The text, as long as it was, with nothing in place of quoted text."""
    return _blanked(_CODE, text)


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def _cut(pattern: re.Pattern[str], found_in: str, text: str) -> str:
    """The text without what a pattern finds in another one of the same length."""
    parts: list[str] = []
    at = 0
    for found in pattern.finditer(found_in):
        parts += [text[at : found.start()], re.sub(r"[^\n]", " ", found[0])]
        at = found.end()
    return "".join([*parts, text[at:]])
