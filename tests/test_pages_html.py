"""HTML where it means no more than Markdown does, and where it hides a value."""

import pytest

from perfdb.pages import reader
from perfdb.pages.base import PageContext, PageRead
from perfdb.pages.markdown_text import cell_words, words

SAID = PageContext(framework="acme", system="dgx-h100", precision="bf16")


def markdown(model: str, tokens: str) -> PageRead:
    head = "| Model | GPUs | GBS | Seq Len | <b>Tokens/s/GPU</b> |\n|---|---|---|---|---|\n"
    return reader.read("p.md", f"{head}| {model} | 8 | 128 | 8192 | {tokens} |\n", SAID)


def html(tokens: str) -> PageRead:
    titles = ("Model", "GPUs", "GBS", "Seq Len", "Tokens/s/GPU", "Notes")
    head = "".join(f"<th>{title}</th>" for title in titles)
    cells = "".join(f"<td>{text}</td>" for text in ("Llama3 8B", "8", "128", "8192", tokens))
    notes = "<td>as <table><tr><td>logged</td></tr></table></td>"
    text = f"<html><table><tr>{head}</tr>\n<tr>{cells}{notes}</tr></table></html>"
    return reader.read("p.html", text, SAID)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("<b>Llama3 8B</b>", "<strong>12,273</strong>"),
        ("<i>Llama3</i> <em>8B</em>", '<span style="color:red">12273</span>'),
        ('<a href="https://x.y/z">Llama3 8B</a>', "<u>12273</u>"),
        ("<CODE>Llama3 8B</CODE>", '<font color="red">**12273**</font>'),
        ('Llama3 8B<span class="sr-only"> (opens a window)</span>', "12273<b></b>"),
        ('<b>Llama3 8B</b><sup><a href="#n">1</a></sup>', "<b>12273</b> <sup>2</sup>"),
    ],
)
def test_html_around_the_text_of_a_markdown_cell_is_markup_like_any(
    model: str, tokens: str
) -> None:
    read = markdown(model, tokens)
    assert () == read.problems
    [one] = read.results
    assert ("llama3-8b", (), 12273.0) == (
        one.case.model, one.case.qualifiers, one.figures.tokens_per_sec_per_gpu,
    )  # fmt: skip
    assert [model, tokens] == [one.raw["Model"], one.raw["Tokens/s/GPU"]]


@pytest.mark.parametrize(
    "tokens", ["<s>400</s>", "<b><del>400</del></b>", '<span class="strike">400</span>']
)
def test_what_is_struck_out_by_html_stays_so(tokens: str) -> None:
    [problem] = markdown("Llama3 8B", tokens).problems
    assert "'~~400~~' is struck out" == problem.message


def test_a_tag_that_html_does_not_have_is_text() -> None:
    """Nobody would know else that something was left open."""
    [problem] = markdown("Llama3 8B", "<TBD>").problems
    assert "'<TBD>' is not a number" == problem.message
    assert "<b>x</b> <y>" == cell_words("<b>x</b> <y>")


def test_a_heading_reads_without_the_html_in_it() -> None:
    assert "DGX-B200 in FP8" == words('<a id="b200"></a>DGX-B200 *in* <small>FP8</small>')


def test_a_row_whose_figure_is_a_table_is_rejected() -> None:
    """A table in a cell that has no field says nothing of the row's figures."""
    [problem] = html("<table><tr><td>12273</td></tr></table>").problems
    assert ("Tokens/s/GPU", "a table stands in the cell") == (problem.field, problem.message)
    [one] = html("12273").results
    assert (12273.0, "as (table)") == (
        one.figures.tokens_per_sec_per_gpu, one.extras["Notes"],
    )  # fmt: skip


COLUMNS = ("Model", "System", "#-GPUs", "GBS", "Sequence Length", "Tokens/s/GPU", "MFU")


def below(spanners: str, rate: str = "Tokens/s/GPU") -> PageRead:
    """A table whose header has a row above its titles, from a page that says BF16."""
    top = (
        "<tr>" + "<th rowspan=2>{}</th>" * 5 + f"{spanners}</tr><tr><th>{{}}</th><th>{{}}</th></tr>"
    )
    row = "<tr><td>Llama3 8B<td>DGX-H100<td>8<td>128<td>8192<td>9500<td>40%</tr>"
    titles = (rate if title == "Tokens/s/GPU" else title for title in COLUMNS)
    text = f"<table><thead>{top.format(*titles)}</thead><tbody>{row}</tbody></table>"
    page = f"<html><body><h1>NeMo 25.09</h1><h2>Pre-training</h2><h3>Precision: BF16</h3>{text}"
    return reader.read("page.html", page, PageContext())


@pytest.mark.parametrize(
    ("spanners", "release", "precision"),
    [
        ("<th colspan=2>Performance</th>", "25.09", "bf16"),
        ("<th></th><th></th>", "25.09", "bf16"),
        ("<th>Throughput (per second, per GPU)</th><th>Utilization (%)</th>", "25.09", "bf16"),
        ("<th colspan=2>Per second</th>", "25.09", "bf16"),
        ("<th colspan=2>Per s, per device</th>", "25.09", "bf16"),
        ("<th colspan=2>Per step</th>", "25.09", "bf16"),
        ("<th colspan=2>FP8</th>", "25.09", "fp8"),
        ("<th>FP8</th><th>FP8</th>", "25.09", "fp8"),
        ("<th colspan=2>NeMo 25.07, FP8-CS</th>", "25.07", "fp8_cs"),
    ],
)
def test_what_stands_above_the_titles_of_all_figures_holds_for_them(
    spanners: str, release: str, precision: str
) -> None:
    found = below(spanners)
    assert () == found.problems
    assert [(release, precision)] == [(r.release.version, r.case.precision) for r in found.results]
    assert 9500.0 == found.results[0].figures.tokens_per_sec_per_gpu


@pytest.mark.parametrize(
    ("spanners", "why"),
    [
        ("<th colspan=2>Projected, FP8</th>", "no measured ones"),
        ("<th colspan=2>Improvement (%)</th>", "no column of a figure that is known"),
        *[
            (f"<th colspan=2>{unit}</th>", "no column of a figure that is known")
            for unit in (
                "Per node",
                "Per server",
                "Per system",
                "Per superchip",
                "Total",
                "Aggregate",
                "All GPUs",
                "x1000",
                "(× 1,000)",
                "in thousands",
                "kTokens",
                "MFLOPs",
            )
        ],
        ("<th>BF16</th><th>NeMo 25.07</th>", "no column of a figure that is known"),
        ("<th>FP8</th><th></th>", None),
        ("<th>Per node</th><th></th>", None),
        ("<th>kTokens</th><th></th>", None),
    ],
)
def test_what_stands_above_a_title_and_is_not_of_it_rejects_the_row_or_keeps_an_extra(
    spanners: str, why: str | None
) -> None:
    found = below(spanners)
    if why:
        assert () == found.results
        assert why in found.problems[0].message
    else:
        assert [None] == [one.figures.tokens_per_sec_per_gpu for one in found.results]
        assert "no field for the columns" in found.notes[0].message


@pytest.mark.parametrize("spanners", ["<th colspan=2>Per GPU</th>", "<th>Per GPU</th><th></th>"])
def test_figures_below_per_gpu_are_no_total(spanners: str) -> None:
    found = below(spanners, "Throughput (tokens per second)")
    assert [None] * len(found.results) == [one.figures.tokens_per_sec for one in found.results]
    assert found.problems or "no field for the columns" in found.notes[0].message


@pytest.mark.parametrize(("value", "stored"), [("-", [None]), ("128", []), ("FP8", [])])
def test_a_cell_across_two_columns_is_the_value_of_neither(
    value: str, stored: list[int | None]
) -> None:
    titles = ("Model", "GPUs", "GBS", "Seq Len", "TP", "PP", "Tokens/s/GPU")
    rows = f"<td>8<td>128<td>8192<td colspan=2 rowspan=2>{value}", "<td>8<td>128<td>8192"
    body = "".join(f"<tr><td>Llama3 8B{row}<td>9500</tr>" for row in rows)
    head = f"<tr><th>{'<th>'.join(titles)}</tr>"
    found = reader.read("p.html", f"<html><table>{head}{body}</table></html>", SAID)
    assert stored * 2 == [one.case.tensor_parallel for one in found.results]
    assert len(found.problems) == 2 - 2 * len(stored)
    assert all("across several columns" in one.message for one in found.problems)


def test_a_cell_across_the_sizes_of_one_group_is_of_each() -> None:
    top = "".join(f"<th rowspan=2>{title}</th>" for title in COLUMNS[:5])
    head = f"<tr>{top}<th colspan=2>Parallelism<th rowspan=2>MFU</tr><tr><th>TP<th>PP</tr>"
    row = "<tr><td>Llama3 8B<td>DGX-H100<td>8<td>128<td>8192<td colspan=2>2<td>40%</tr>"
    found = reader.read("p.html", f"<html><table>{head}{row}</table></html>", SAID)
    assert [(2, 2)] == [
        (one.case.tensor_parallel, one.case.pipeline_parallel) for one in found.results
    ]


@pytest.mark.parametrize(
    ("sizes", "note", "stored"),
    [
        ("<td colspan=2>2<td colspan=2>2", "", [(2, 2, 2, 2)]),
        ("<td colspan=2>2 (1)<td colspan=2>2 (1)", "(1) with offloading", [(2, 2, 2, 2)]),
        ("<td>2<td colspan=2>2<td>2", "", []),
        ("<td>2<td colspan=2>2 (1)<td>2", "(1) with offloading", []),
    ],
)
def test_cells_that_say_the_same_side_by_side_are_two(
    sizes: str, note: str, stored: list[tuple[int, ...]]
) -> None:
    top = "".join(f"<th rowspan=2>{title}</th>" for title in COLUMNS[:5])
    groups = "<th colspan=2>Model parallel<th colspan=2>Other<th rowspan=2>MFU"
    head = f"<tr>{top}{groups}</tr><tr><th>TP<th>PP<th>CP<th>EP</tr>"
    row = f"<tr><td>Llama3 8B<td>DGX-H100<td>8<td>128<td>8192{sizes}<td>40%</tr>"
    text = f"<html><table>{head}{row}</table><p>{note}</p></html>"
    found = [one.case for one in reader.read("p.html", text, SAID).results]
    assert stored == [
        (it.tensor_parallel, it.pipeline_parallel, it.context_parallel, it.expert_parallel)
        for it in found
    ]


def test_a_cell_across_two_results_is_of_both() -> None:
    rows = ("<td>GPUs<td>8<td>16", "<td>GBS<td colspan=2>128", "<td>Seq Len<td colspan=2>8192")
    head = "<th>Model<th>Llama3 8B<th>Llama3 70B"
    text = "".join(f"<tr>{row}</tr>" for row in (head, *rows, "<td>Tokens/s/GPU<td>9500<td>1100"))
    found = reader.read("p.html", f"<html><table>{text}</table></html>", SAID)
    assert () == found.problems
    assert [128, 128] == [one.case.global_batch_size for one in found.results]


@pytest.mark.parametrize("prefix", ["sd-", ""])
def test_the_title_of_a_card_holds_for_the_tables_in_it_alone(prefix: str) -> None:
    head = "<tr><th>Model<th>GPUs<th>GBS<th>Seq Len<th>Tokens/s/GPU</tr>"
    table = f"<table>{head}<tr><td>Llama3 8B<td>{{}}<td>128<td>8192<td>9500</tr></table>"
    card = (
        f'<div class="{prefix}card"><div class="{prefix}card-body"><div class="{prefix}card-title">'
    )
    titled = [(8, "FP8-CS"), (16, "NVFP4 (projected)"), (32, "NVFP4")]
    cards = [f"{card}\n{title}</div>{table.format(gpus)}</div></div>" for gpus, title in titled]
    body = "".join((*cards, table.format(64)))
    found = reader.read("p.html", f"<html><body>{body}</body></html>", SAID)
    assert [(8, "fp8_cs"), (32, "nvfp4"), (64, "bf16")] == [
        (one.case.num_gpus, one.case.precision) for one in found.results
    ]
    assert ["the heading says 'projected'"] == [one.message[:28] for one in found.problems]


CARD = '<div class="sd-card">{}</div>'
TITLE = '<div class="sd-card-title">{}</div>'
TABLE = (
    "<table><tr><th>Model<th>GPUs<th>GBS<th>Seq Len<th>Tokens/s/GPU</tr>"
    "<tr><td>Llama3 8B<td>8<td>128<td>8192<td>9500</tr></table>"
)


def test_the_first_title_of_a_card_is_its_own_and_another_holds_below_it() -> None:
    card = CARD.format("".join(TITLE.format(one) + TABLE for one in ("FP8-CS", "NVFP4")))
    found = reader.read("p.html", f"<html>{card}{TABLE}</html>", SAID)
    assert ["fp8_cs", "nvfp4", "bf16"] == [one.case.precision for one in found.results]


def test_a_card_s_title_is_read_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfdb.pages.html_tabs._MOST", 1)
    cards = "".join(CARD.format(TITLE.format(one) + TABLE) for one in ("FP8-CS", "NVFP4"))
    found = reader.read("p.html", f"<html>{cards}</html>", SAID)
    assert ["fp8_cs", "nvfp4"] == [one.case.precision for one in found.results]
