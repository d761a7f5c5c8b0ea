"""The prose linter of `make lint`: proselint with our own rules, over all that users read.

    python -m tests.prose [FILE.md ...]

It reads the documents, the help of every command, and the text of the site and the dashboard.
Vale cannot be used: its wheel downloads the program from GitHub when it first runs.
"""

import ast
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin
from proselint.checks import __register__
from proselint.config import DEFAULT
from proselint.registry import CheckRegistry
from proselint.registry.checks import Check, CheckResult, types
from proselint.tools import LintFile

from perfdb.cli import cli

ROOT = Path(__file__).parents[1]
LONGEST_WORDS = 25
"""The longest sentence; Google's style guide asks for fewer than 26 words."""
PLAIN = {
    "alike": "equally, the same",
    "be that": "that can be",
    "beside": "next to, with",
    "given": "stated, passed, set",
    "hereby|herein|whereby|wherein|thereof|therein|thereby": "a plain subject",
    "in force": "active, set",
    "lest": "so that … not",
    "likewise": "also",
    "said|told|tells|tellings?": "states, reports, shows",
    "stands?": "is",
    "whichever|whoever|whatever|wherever": "any, who, what, where",
    "whose": "with, of which",
    "catalogue": "catalog",
    r"(?:recogn|normal|synchron|summar)is\w+|\w*(?:behavi|col)our\w*": "the American spelling",
}
"""Words that make a sentence a riddle, and plain ones for them."""
OFF = {
    *("dates_times", "lexical_illusions", "misc.phrasal_adjectives", "terms", "typography"),
    *("uncomparables", "weasel_words"),
}
"""Checks for essays: of curly quotes and of cells that repeat each other, for example."""
CHECKS = DEFAULT["checks"] | dict.fromkeys(OFF, False) | {"perfdb": True}
CHECKS = dict(sorted(CHECKS.items(), reverse=True))
"""The names of proselint's checks, the deepest first, as it asks."""
_END = re.compile(r"(?<=[.?!:])[\s)]+|\n\n+")
_WORD = re.compile(r"\S*\w\S*")
_TAG = re.compile(r"\{#.*?#\}|\{%.*?%\}|<[^>]*>", re.DOTALL)
_HOLE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_AS_TYPED = re.compile(r"\x08\n(?:.+(?:\n|$))*")
"""A block that click prints as it is: examples and tables."""


@dataclass(frozen=True)
class Passage:
    """A paragraph, a cell, a heading or a string, without markup; code is the word `CODE`."""

    place: str
    line: int
    text: str


def long_sentences(text: str, check: Check) -> Iterator[CheckResult]:
    """Each sentence of `text` that is longer than `LONGEST_WORDS`."""
    start = 0
    for end in [*_END.finditer(text), None]:
        stop = end.start() if end else len(text)
        words = len(_WORD.findall(text[start:stop]))
        if words > LONGEST_WORDS:
            span = (start, stop)
            yield CheckResult(check.path, check.message.format(words, LONGEST_WORDS), span, None)
        start = end.end() if end else stop


OWN = (
    Check(long_sentences, path="perfdb.long", message="A sentence of {} words; at most {}."),
    *(
        Check(
            types.ExistenceSimple(rf"\b(?:{words})\b"),
            path="perfdb.plain",
            message=f"'{{}}': say {plain}.",
        )
        for words, plain in PLAIN.items()
    ),
)


def documents(paths: Sequence[Path]) -> Iterator[Passage]:
    """The prose of Markdown files, with glossaries, without other directives."""
    reader = MarkdownIt().enable("table").use(front_matter_plugin).use(myst_block_plugin)
    for path in paths:
        place = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
        line = 0
        for token in reader.parse(path.read_text(encoding="utf-8")):
            line = token.map[0] if token.map else line
            if token.type == "inline":
                yield Passage(place, line + 1, _words(token))
            elif token.info == "{glossary}":
                yield Passage(place, line + 1, token.content.replace("\n    ", ":\n\n"))
            elif token.type == "front_matter":
                for text in re.findall(r'^description: "?(.+?)"?$', token.content, re.MULTILINE):
                    yield Passage(place, line + 2, text)


def _words(token: Token) -> str:
    """Its text, without emphasized words: they quote what perfdb prints."""
    plain = {"text": "{0.content}", "code_inline": "CODE", "softbreak": "\n", "em_open": "TERM"}
    text, depth = "", 0
    for child in token.children or ():
        depth -= child.type == "em_close"
        text += "" if depth else plain.get(child.type, "").format(child)
        depth += child.type == "em_open"
    return text


def helps(command: click.Command = cli, name: str = "perfdb") -> Iterator[Passage]:
    """The help of a command, of its options and of all commands below it."""
    place = f"`{name} --help`"
    texts = [command.help, *(getattr(one, "help", None) for one in command.params)]
    for text in filter(None, texts):
        yield Passage(place, 1, _AS_TYPED.sub("", text))
    if isinstance(command, click.Group):
        context = click.Context(command)
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            if found and not found.hidden:
                yield from helps(found, f"{name} {child}")


def strings() -> Iterator[Passage]:
    """The text that site and dashboard show: strings of several words, and templates."""
    for path in sorted([*ROOT.glob("perfdb/site/**/*.py"), *ROOT.glob("dashboards/**/*.py")]):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node not in docstrings:
                text = _shown(str(node.value))
                if len(text.split()) > 3 and re.search(r"^\W*[A-Z]|[.,;:](?: |$)", text):
                    yield Passage(str(path.relative_to(ROOT)), node.lineno, text)
    for path in sorted(ROOT.glob("perfdb/site/templates/*.j2")):
        text = _shown(path.read_text(encoding="utf-8"))
        yield Passage(str(path.relative_to(ROOT)), 1, text)


def _shown(template: str) -> str:
    return _HOLE.sub("X", _TAG.sub("\n\n", template))


def problems(passages: Sequence[Passage]) -> list[str]:
    """What is wrong with them: place, line, rule and what to do."""
    if not CheckRegistry().checks:
        CheckRegistry().register_many((*__register__, *OWN))
    starts, text = [], ""
    for passage in passages:
        starts.append(len(text))
        text += passage.text.strip() + ".\n\n"
    lines, joined = [], LintFile("", text)
    joined.quote_bounds = ()  # a quote of one passage would pair with that of another
    for found in joined.lint({"max_errors": 10_000, "checks": CHECKS}):
        path, message, (start, end), _ = found.check_result
        passage = passages[bisect_right(starts, start - 1) - 1]
        words = " ".join(text[start - 1 : end - 1].split())[:60]
        lines.append(f"{passage.place}:{passage.line}: {message} [{path}] {words!r}")
    return lines


def main(names: Sequence[str]) -> int:
    """Print what is wrong; 1 if anything is."""
    kinds = ("tutorial", "how-to", "explanation", "reference")
    written = ["*.md", "docs/*.md", *(f"docs/{kind}/*.md" for kind in kinds)]
    pages = [Path(name).resolve() for name in names]
    pages = pages or [page for pattern in written for page in sorted(ROOT.glob(pattern))]
    passages = list(documents(pages))
    if not names:
        passages += [*helps(), *strings()]
    found = problems(passages)
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
