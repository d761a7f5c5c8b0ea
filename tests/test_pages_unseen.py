"""What the readers of a page do not see is not read, and what stands elsewhere is told."""

from pathlib import Path

import pytest

from perfdb.ingest.find import Source
from perfdb.ingest.page import read_page
from perfdb.ingest.read import Rejected
from perfdb.pages import reader
from perfdb.pages.base import PageContext
from tests.test_pages_told import HEAD, ROW, SIZES, read, said, table

SHOWN = table((*SIZES, "MFU"), (*ROW, "40%"))
DRAFT = table((*SIZES, "MFU"), (*ROW, "41%"))


@pytest.mark.parametrize(
    "unseen",
    [
        "".join(f"% {line}\n" for line in DRAFT.splitlines()),
        "%\n" + "".join(f"%{line}\n" for line in DRAFT.splitlines()),
        f"Text\n% {ROW[0]} | 8 | 128 | 8192 | 41% |\n",
        "% System: DGX-B200\n",
        f'<div style="display:none">\n\n{DRAFT}\n</div>\n',
        f'<section class="x" hidden>\n<div>\n\n{DRAFT}\n</div>\n\n{DRAFT}\n</section>\n',
        f"<div style={{{{ display: 'none' }}}}>\n\n{DRAFT}\n</div>\n",
        f"<template>\n\n{DRAFT}\n</template>\n",
        f"<div hidden>\n<details><summary>Old</summary>\n\n{DRAFT}\n</details>\n</div>\n",
        f"<div hidden>\n\nSystem: DGX-B200\n\n:::{{tab-item}} FP8\n{DRAFT}:::\n\n</div>\n",
    ],
)
def test_what_is_hidden_or_commented_out_in_markdown_says_nothing(unseen: str) -> None:
    """Neither of itself nor of the table below it; that stands where it stood."""
    found = read(unseen, SHOWN)
    assert [("dgx-h100", 0.4)] == [(one.case.system, one.figures.mfu) for one in found.results]
    assert [] == said(found)
    assert [HEAD.count("\n") + unseen.count("\n") + 4] == [one.line for one in found.results]


@pytest.mark.parametrize(
    "around",
    [
        "<div class='hidden-lg'>\n\n{}\n</div>\n",
        '<input type="hidden">\n\n{}\n',
        "<div hidden/>\n\n{}\n",
        "<p hidden>\n\n{}\n",
        "<div hidden>x</div>\n\n{}\n",
        "    % in code\n\n{}\n",
        "```{{only}} html or latex\n{}\n```\n",
    ],
)
def test_what_only_looks_hidden_is_read(around: str) -> None:
    found = read(around.format(SHOWN))
    assert [0.4] == [one.figures.mfu for one in found.results]


def test_a_dropdown_that_is_hidden_is_not_left_later() -> None:
    """The tab that it stands in ends where it ends."""
    hidden = f"<div hidden>\n<details>\n\n{DRAFT}\n</details>\n</div>\n"
    text = f"::::{{tab-item}} BF16\n{hidden}\n\n{SHOWN}::::\n"
    pieces = reader.FORMATS["markdown"].page(text).pieces
    assert 2 == sum(type(one).__name__ in ("Enter", "Leave") for one in pieces)


def test_a_comment_within_a_table_ends_it() -> None:
    """As it does in Sphinx: the row below is text there, and is told here."""
    found = read(SHOWN + "% next\n" + f"| {' | '.join((*ROW, '42%'))} |\n")
    assert [0.4] == [one.figures.mfu for one in found.results]
    assert [11] == [one.line for one in found.problems]


def rest(directive: str) -> str:
    """The same page in reStructuredText, with a directive that holds a table of its own."""
    rows = "\n".join(f"      {','.join(line)}" for line in ((*SIZES, "MFU"), (*ROW, "41%")))
    title = "NeMo 25.04\n==========\n\nSystem: DGX-H100, Precision: BF16\n\n"
    return f"{title}.. {directive}\n\n   .. csv-table::\n      :header-rows: 1\n\n{rows}\n"


@pytest.mark.parametrize("name", ["only:: internal", "only:: html and draft", "ifconfig:: draft"])
def test_a_table_that_is_not_shown_to_everybody_is_told_and_not_read(name: str) -> None:
    """What a reader of the built page may not see is no published figure."""
    found = reader.read("page.rst", rest(name), PageContext())
    assert () == found.results
    shown = name.replace("::", "")
    told = f"page.rst:6: a table is not read: not everybody is shown what stands in {shown!r}"
    assert [told] == [one.split(";")[0] for one in said(found)]


@pytest.mark.parametrize("name", ["only:: html", "only:: latex or html", "container:: wide"])
def test_a_table_that_is_for_html_is_read(name: str) -> None:
    found = reader.read("page.rst", rest(name), PageContext())
    assert ([0.41], []) == (
        [one.figures.mfu for one in found.results],
        [one for one in said(found) if "not read" in one],
    )


@pytest.mark.parametrize("name", ["{only} internal", "{todo}", "{ifconfig} draft"])
def test_a_directive_of_myst_is_taken_as_that_of_sphinx(name: str) -> None:
    found = read(SHOWN, f"```{name}\n{DRAFT}```\n")
    assert [0.4] == [one.figures.mfu for one in found.results]
    assert [True] == [one.startswith("page.md:11: a table is not read") for one in said(found)]
    assert [] == said(read(SHOWN, f"```{name}\nWrite more.\n```\n"))


ELSEWHERE = {
    "```{csv-table} More\n:file: more.csv\n```\n": "it is in another file, 'more.csv'",
    "```{eval-rst}\n.. csv-table::\n   :url: https://example.org/a.csv\n```\n": "'https://example",
    "```{eval-rst}\n.. raw:: html\n   :file: more.html\n```\n": "in another file, 'more.html'",
    "```{include} more.md\n```\n": "what is included is not read: 'more.md'",
    '<P/>\n\nimport P from "./more.mdx"\n': "what is included is not read: './more.mdx'",
    '<Rows of={[["LLAMA3-70B", 64, 128, 8192]]} />\n\n{/* MDX */}\n': "component 'Rows' are not",
    '--8<-- "more.md"\n': "what is included is not read: '--8<-- \"more.md\"'",
}


@pytest.mark.parametrize(("names", "told"), ELSEWHERE.items())
def test_what_stands_in_another_file_is_told_with_its_line(names: str, told: str) -> None:
    """Where the page is named and has nothing else, it is why nothing was read."""
    found = read(SHOWN, names)
    assert [told in one for one in said(found)] == [True]
    assert [one.line in (11, 12) and one.remedy is not None for one in found.notes] == [True]
    for named in (True, False):
        source = Source(Path("page.md"), "page", named=named)
        rejected = read_page(source, [names.encode()], PageContext())
        assert isinstance(rejected, Rejected)
        assert [told in str(one) for one in rejected.problems] == [True] * named
        assert () == rejected.notes


@pytest.mark.parametrize(
    "code",
    ['```python\n--8<-- "more.py"\n```\n', "```{literalinclude} more.py\n```\n",
     '{/* MDX */}\nimport P from "./more.jsx"\n\n<P/>\n\n<Tab of={[1]} />\n\n',
     '{/* MDX */}\nimport P from "./more.mdx"\n\n',
     "```{include} more.py\n:code: python\n```\n", "```{raw} latex\n:file: more.tex\n```\n"],
)  # fmt: skip
def test_code_that_stands_in_another_file_is_not_told(code: str) -> None:
    assert [] == said(read(SHOWN, code))
