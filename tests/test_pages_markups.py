"""The markups of published pages: the same figures in each of them, and no text too strange."""

import re
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin

from perfdb.pages import charset, reader, tables
from perfdb.pages.base import Grid, PageContext
from perfdb.record import Case, Figures, Release
from tests.test_pages import BAD, GOOD, MARKUPS, OURS, golden_of, name_of

CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "pages"
SCRAPED = {"nemo-25.04", "scraped", "scraped-cut-off"}
NOTED = [page for page in GOOD if "footnotes" in golden_of(page)]

Rows = list[list[str]]
Section = tuple[str, str, Rows]
"""A heading, the label of a tab and a table, its titles first."""


def markup_of(page: Path) -> str:
    own = "mkdocs" if page.stem == "mkdocs" else MARKUPS[page.suffix]
    return "scraped" if page.stem in SCRAPED else own


@pytest.mark.parametrize("page", [*GOOD, *BAD], ids=name_of)
def test_a_page_is_recognised_as_its_own_markup_alone(page: Path) -> None:
    """Markdown, which any text is, does not count."""
    found = [name for name, one in reader.FORMATS.items() if one.recognises(page.read_text())]
    assert list(dict.fromkeys([markup_of(page), "markdown"])) == found


@pytest.mark.parametrize("page", NOTED, ids=name_of)
def test_footnotes_are_kept_by_their_marks(page: Path) -> None:
    """Text and mark as typed from the page, whatever its markup writes around them."""
    read = reader.FORMATS[markup_of(page)].page(page.read_text())
    assert golden_of(page)["footnotes"] == read.footnotes


def test_every_new_markup_has_footnotes_to_show_for_it() -> None:
    assert {"html", "rest", "mdx", "mkdocs", "markdown"} == {markup_of(page) for page in NOTED}


def figures(text: str, context: PageContext) -> list[tuple[Case, Figures, Release]]:
    """What a page says, without the lines and titles that differ from markup to markup."""
    read = reader.read("page", text, context)
    assert () == read.problems
    return [(one.case, one.figures, one.release) for one in read.results]


def sections(text: str) -> Iterator[Section]:
    """The tables of a DFM page, split at its pipes."""
    heading = label = ""
    rows: Rows = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            if not line.startswith("|-"):
                rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            yield heading, label, rows
            rows = []
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        if found := re.search(r"(?:tab-item\} |System: )(\S+)", line):
            label = found[1]


def as_html(section: Section) -> str:
    heading, label, (titles, *rows) = section
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f"<h2>{heading}</h2><details><summary>{label}</summary>"
        f"<table><tr>{head}</tr>\n{body}</table></details>\n"
    )


def as_grid(section: Section) -> str:
    heading, label, rows = section
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    rules = ["+" + "+".join(sign * (width + 2) for width in widths) + "+" for sign in "=-"]
    lines = [rules[1]]
    for row in rows:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines += [f"| {' | '.join(padded)} |", rules[len(lines) > 1]]
    table = "\n".join(f"      {line}" for line in lines)
    tab = f".. tab-set::\n\n   .. tab-item:: {label}\n\n{table}\n"
    return f"{heading}\n{'-' * len(heading)}\n\n{tab}\n"


def as_simple(section: Section) -> str:
    heading, label, rows = section
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    rule = " ".join("=" * width for width in widths)
    lines = [
        " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    table = "\n".join(f"   {line}" for line in (rule, lines[0], rule, *lines[1:], rule))
    return f"{heading}\n{'-' * len(heading)}\n\n.. table:: {label}\n\n{table}\n\n"


def list_table(rows: Rows) -> str:
    lines = (f"{'* ' if not at else '  '}- {cell}" for row in rows for at, cell in enumerate(row))
    return "\n".join(lines)


def as_list_table(section: Section) -> str:
    heading, label, rows = section
    table = list_table(rows).replace("\n", "\n   ")
    directive = f".. list-table:: {label}\n   :header-rows: 1\n\n   {table}\n"
    return f"{heading}\n{'-' * len(heading)}\n\n{directive}\n"


def as_myst_list_table(section: Section) -> str:
    heading, label, rows = section
    directive = f"```{{list-table}} {label}\n:header-rows: 1\n\n{list_table(rows)}\n```\n"
    return f"## {heading}\n\n{directive}\n"


def as_csv_table(section: Section) -> str:
    heading, label, rows = section
    lines = "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)
    return f"## {heading}\n\n:::{{csv-table}} {label}\n:header-rows: 1\n\n{lines}\n:::\n\n"


def as_mdx(section: Section) -> str:
    heading, label, (titles, *rows) = section
    lines = [titles, ["---"] * len(titles), *rows]
    table = "\n".join(f"    | {' | '.join(row)} |" for row in lines)
    return f"## {heading}\n\n<Tabs>\n  <Tab title='{label}'>\n{table}\n  </Tab>\n</Tabs>\n\n"


WRITERS: dict[str, tuple[str, Callable[[Section], str]]] = {
    "html": ("<!doctype html>\n<h1>NeMo DFM</h1>\n", as_html),
    "grid table": ("NeMo DFM\n========\n\n", as_grid),
    "simple table": ("NeMo DFM\n========\n\n", as_simple),
    "list-table": ("NeMo DFM\n========\n\n", as_list_table),
    "MyST list-table": ("# NeMo DFM\n\n", as_myst_list_table),
    "MyST csv-table": ("# NeMo DFM\n\n", as_csv_table),
    "MDX": ("# NeMo DFM\n\n", as_mdx),
}


@pytest.mark.parametrize("markup", WRITERS)
def test_the_same_page_in_another_markup_says_the_same(markup: str) -> None:
    """DFM's page, its tables split at their pipes and written anew."""
    title, write = WRITERS[markup]
    source = OURS.read_text()
    text = title + "".join(write(section) for section in sections(source))
    context = PageContext(release="main")
    wanted = figures(source, context)
    assert 5 == len(wanted)
    assert wanted == figures(text, context)


cells = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=9)


@given(
    st.integers(2, 6).flatmap(
        lambda width: st.lists(
            st.lists(cells, min_size=width, max_size=width), min_size=2, max_size=6
        )
    )
)
@settings(deadline=None, max_examples=50)
def test_every_cell_of_a_table_stands_in_its_place_in_every_markup(rows: Rows) -> None:
    """Row for row and cell for cell, whatever the cells hold."""
    for markup, (title, write) in WRITERS.items():
        # docutils takes a row that starts like a rule of equals signs or an item for one.
        section = ("H", "L", [[f"x{cell}" for cell in row] for row in rows])
        text = title + write(section)
        name = next(name for name, one in reader.FORMATS.items() if one.recognises(text))
        (grid,) = [one for one in reader.FORMATS[name].page(text).pieces if isinstance(one, Grid)]
        read = [[cell.text for cell in row.cells] for row in (grid.header, *grid.rows)]
        assert section[2] == read, markup
        lines = text.splitlines()
        assert all(row.cells[0].text in lines[row.line - 1] for row in (grid.header, *grid.rows))


def renderer() -> MarkdownIt:
    return MarkdownIt().enable("table").use(front_matter_plugin).use(footnote_plugin)


PLAIN = [
    page
    for page in [*GOOD, *sorted(CORPUS.glob("*.md"))]
    if page.suffix == ".md" and ":::" not in page.read_text() and "`{" not in page.read_text()
    # A renderer takes text right below a table for rows of it, and leaves out raw HTML.
    if page.stem not in SCRAPED | {"automodel-plain", "gfm-html", "mkdocs"}
]


@pytest.mark.parametrize("page", PLAIN, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_a_page_rendered_to_html_says_what_its_markdown_says(page: Path) -> None:
    """As another program, markdown-it, renders it."""
    text = page.read_text()
    context = PageContext(framework="nemo", release="main", system="dgx-h100", precision="bf16")
    read = reader.read("page", text, context)
    rendered = reader.read("page", f"<!DOCTYPE html>\n{renderer().render(text)}", context)
    assert len(read.problems) == len(rendered.problems)
    assert read.results
    neutral = {"framework": "x", "variant": None}
    assert [(one.case.model_copy(update=neutral), one.figures) for one in read.results] == [
        (one.case.model_copy(update=neutral), one.figures) for one in rendered.results
    ]


def test_a_table_in_another_file_is_not_looked_for(tmp_path: Path) -> None:
    """A page says what it says by itself: nothing is opened that it names."""
    other = tmp_path / "other.csv"
    other.write_text("Model,System,#-GPUs,GBS,Sequence Length,MFU\nLlama3 8B,DGX-H100,8,8,8,40%\n")
    text = (
        f"NeMo\n====\n\n.. csv-table::\n   :file: {other}\n   :header-rows: 1\n\n"
        f".. include:: {other}\n\n.. raw:: html\n   :file: {other}\n"
    )
    assert "rest" == next(name for name, one in reader.FORMATS.items() if one.recognises(text))
    assert not reader.looks_like_page(text)


PARTS = {
    "html": [
        "<table>", "<tr>", "<td>", "<th colspan=9999999999>", "<td rowspan=0>", "</table>", "<sup>",
        "<td", "<!--", "-->", "<![", "<?", "</p>", "<p><sup>1</sup> x", "<details>", "</details>",
        "<summary>", "<h1>", "<label>", '<div class="sd-tab-content">', "<div role=tabpanel>", "x",
        "<li>", '<ol class="footnotes">', '<aside class="footnote">', "<b class=label>", "&#0;",
        "<caption>", "<thead>", "<tbody>", "<p hidden>", '<a ="', "<script>", "\n", "]]>",
    ],
    "rest": [
        "===", "=== ===", "+--+--+\n", "| a|b |\n", "+==+==+\n", ".. list-table::\n", "   * - a\n",
        "     - b\n", ".. csv-table::\n", "   :header: a\n", "   :delim: \"\n", "   a,\"b\n",
        "[#]_", ".. [#] x", ".. |a| replace:: b\n", "|a|", ":x:`", "``", "*", "\n", "\n\n",
        "    ", "- ", "::\n", "a\n---\n", "====\na\n====\n", ".. raw:: html\n", "   <table>\n",
        "\\", "漢字", "\x0b",
    ],
    "mdx": [
        "<Tabs>\n", "</Tabs>\n", "<Tab title='a'>", "</Tab>", "<Tab {", "}>", "{/*", "*/}", "```\n",
        "import a from 'b'\n", "\n\n", "| a | b |\n", "|---|---|\n", "<details>", "</details>\n",
        "<summary>a</summary>", "[^1]: x\n", "<table>\n\n", "</table>\n", "---\n", "    ", "`",
        "<T items={['a']}>\n",
    ],
    "markdown": [
        "```{list-table}\n", ":::{csv-table}\n", ":header-rows: 1\n", ":delim: \"\n", "* - a\n",
        "  - b\n", "```\n", ":::\n", "---\n", "<table>\n\n", "</table>\n", "<details>\n",
        "</details>\n\n", "<!--", "-->", "[^a]: x\n", "    y\n", "| a | b |\n", "|---|---|\n", "\n",
        "```{eval-rst}\n", "a,\"b\n", "> ", "- ", "% a\n", "%", "<div hidden>\n\n", "</div>\n",
        "```{only} x\n", "--8<-- \"a\"\n", "<nav/>\n\n",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", reader.FORMATS)
@given(text=st.text())
@settings(deadline=None, max_examples=50)
def test_any_text_has_pieces_in_any_markup(name: str, text: str) -> None:
    """Whatever recognised it: nothing is raised."""
    reader.FORMATS[name].recognises(text)
    assert reader.FORMATS[name].page(text).front is None or text.startswith("---")


@pytest.mark.parametrize("name", PARTS)
@given(data=st.data())
@settings(deadline=None, max_examples=150)
def test_any_order_of_a_markups_own_parts_has_pieces(name: str, data: st.DataObject) -> None:
    """Tags without an end, boxes within boxes, tables cut in two: nothing is raised."""
    text = "".join(data.draw(st.lists(st.sampled_from(PARTS[name]), max_size=30)))
    page = reader.FORMATS[name].page(text)
    assert tables.of_results(tables.of_page(page)) is not None
    lines = [one.header.line for one in page.pieces if isinstance(one, Grid)]
    assert all(1 <= line <= text.count("\n") + 1 for line in lines)


@pytest.mark.parametrize("text", ["> :::{note}\n> ", "> > :::{csv-table}\n> > ", ":::{note}\n"])
def test_a_box_may_end_with_the_text(text: str) -> None:
    assert () == tables.of_results(tables.of_page(reader.FORMATS["markdown"].page(text)))


def test_a_dropdown_that_the_end_of_a_table_closes_is_left_once() -> None:
    """HTML may close more than it opened."""
    page = reader.FORMATS["markdown"].page("<table>\n\n<details>\n</table>")
    assert () == tables.of_results(tables.of_page(page))


ENDLESS = {
    "html": [
        "<div>", "<div ", '<a b="', "<!--", "<![x", "<table><tr><td>", "<td rowspan=9999999999>",
        "<sup>", "<h1>x", "<details>", '<ol class="footnotes"><li>', "<label>x", "<p>x",
        "<div role=tablist><b role=tab>",
    ],
    "rest": ["- ", "=== ===\n", "+--+--+\n", ".. x::\n", "*", "`", "a\n---\n", ":a:`", "[#]_ "],
    "mdx": ["<Tab>\n", "<Tab {", "{/*", "import a from 'b'\n", "</Tab>\n", "<T />|"],
    "markdown": [
        "<table>\n\n", "<details>\n\n", "[^a]: x\n", ":::{list-table}\n", "|", "- ", "% a\n",
        "<div hidden>\n\n", "<b hidden", "</div>\n\n", ":::{only} x\n",
    ],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "part"), [(name, part) for name, parts in ENDLESS.items() for part in parts]
)
def test_a_part_without_end_is_read_in_time_that_grows_with_the_text(name: str, part: str) -> None:
    """Thirty thousand characters of it: where time grows with their square it never ends."""
    text = part * (30_000 // len(part))
    assert reader.FORMATS[name].page(text).front is None
    assert all(isinstance(one.recognises(text), bool) for one in reader.FORMATS.values())


def test_a_cell_that_spans_a_billion_columns_and_rows_ends_with_its_table() -> None:
    """Every row has the columns of the header, and no row is made up."""
    span = 'colspan="1000000000" rowspan="1000000000"'
    rows = f"<tr><td {span}>a</td><td>b</td></tr>" * 3
    text = f"<!doctype html><table><tr><th>A</th><th>B</th></tr>{rows}</table>"
    (grid,) = [one for one in reader.FORMATS["html"].page(text).pieces if isinstance(one, Grid)]
    assert 3 == len(grid.rows)


@pytest.mark.parametrize(
    ("encoding", "named"),
    [
        ("utf-8", '<meta charset="UTF-8">'),
        ("windows-1252", '<META HTTP-EQUIV=x CONTENT="text/html; charset=windows-1252">'),
        ("iso-8859-1", "<meta charset=iso-8859-1>"),
        ("shift_jis", "<?xml version='1.0' encoding='Shift_JIS'?>"),
        ("utf-16", ""),
    ],
)
def test_a_page_is_decoded_as_it_says_itself(encoding: str, named: str) -> None:
    """By its byte order mark or its own head."""
    text = f"{named}<p>{'ü' if encoding != 'shift_jis' else 'ア'} §</p>"
    assert text == charset.decoded(text.encode(encoding))


def test_a_line_below_a_title_is_no_tab_of_mkdocs() -> None:
    assert not reader.FORMATS["mkdocs"].recognises("NeMo 25.04\n===\n\n    code\n")
    assert reader.FORMATS["mkdocs"].recognises('=== "DGX-H100"\n\n    code\n')


@pytest.mark.parametrize("content", [b"\xff", b"<meta charset=big9>\xff", b"\xff\xfe\x00\xd8"])
def test_bytes_that_are_no_text_are_refused(content: bytes) -> None:
    with pytest.raises(UnicodeDecodeError):
        charset.decoded(content)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ('{{< tab "DGX-B200" >}}', "{{< /tab >}}"),
        ('{{% tab name="DGX-B200" %}}', "{{% /tab %}}"),
        ('{% tab title="DGX-B200" %}', "{% endtab %}"),
    ],
)
def test_a_tab_of_hugo_and_of_gitbook_holds_up_to_its_end(start: str, end: str) -> None:
    rows = (
        "| Model | GPUs | GBS | Sequence Length | MFU |\n|---|---|---|---|---|\n"
        "| Llama3 8B | 8 | 128 | 8192 | 50% |\n"
    )
    above = "# NeMo 25.04\n\n## Pre-training\n\nSystem: DGX-H100\n"
    text = f"{above}\n{start}\n{rows}{end}\n\nBelow:\n\n{rows}"
    found = reader.read("page.md", text, PageContext())
    assert () == found.problems
    assert [("dgx-b200", 10), ("dgx-h100", 17)] == [(o.case.system, o.line) for o in found.results]


@pytest.mark.parametrize(
    "head",
    [
        "Model       GPUs  GBS  Sequence  Tokens\n                       Length    / sec / GPU\n",
        "Run                              Speed\n"
        "-------------------------------  -----------\n"
        "Model       GPUs  GBS  Seq Len   Tokens/s/GPU\n",
    ],
)
def test_a_simple_table_with_a_header_of_several_lines_is_restructuredtext(head: str) -> None:
    border = "==========  ====  ===  ========  ===========\n"
    row = "Llama3 8B   8     128  8192      9500\nLlama3 70B  8     128  8192      1100\n"
    text = f"NeMo 25.09 on DGX-H100\n======================\n\n{border}{head}{border}{row}{border}"
    assert reader.FORMATS["rest"].recognises(text)
    found = reader.read("page.rst", text, PageContext())
    assert [9500.0, 1100.0] == [one.figures.tokens_per_sec_per_gpu for one in found.results]
