"""Published pages, whatever they hold: every value reads back, and no text is too strange."""

import re

from hypothesis import given
from hypothesis import strategies as st

from perfdb.errors import Diagnostic
from perfdb.pages import reader
from perfdb.pages.base import PageContext

HEAD = """# NeMo DFM

## Pre-training

### System: DGX-H100, Precision: BF16

"""
TITLES = (
    "Model",
    "#-GPUs",
    "GBS",
    "MBS",
    "Sequence Length",
    "TP",
    "SP",
    "VP",
    "Tokens / sec / GPU",
)


def lines_of(problem: Diagnostic) -> list[int]:
    """The lines that a diagnostic is of: its own, and those that it names."""
    also = re.search(r"\((?:also on|[0-9]+ rows refused,) lines? ([0-9, -]+)\)", problem.message)
    spans = [one.split("-") for one in also[1].split(", ")] if also else []
    others = [line for span in spans for line in range(int(span[0]), int(span[-1]) + 1)]
    return [problem.line or 0, *others]


sizes = st.integers(min_value=1, max_value=2**31 - 1)
rates = st.decimals(min_value="0.01", max_value=10**7, places=2)
separators = st.sampled_from(["", ",", "_", "'", " ", "\u00a0", "\u202f"])
dresses = st.sampled_from(["{}", "**{}**", "***{}***", "_{}_", "[{}](https://example.org)", "`{}`"])
paddings = st.sampled_from(["", " ", "   ", "\t"])
absent = st.sampled_from(["", "-", "–", "n/a", "NA", "None"])
# Line ends would end the row; control characters are no text of a page.
texts = st.text(st.characters(blacklist_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=12)


def table(*rows: str) -> str:
    return f"{HEAD}| {' | '.join(TITLES)} |\n|{'---|' * len(TITLES)}\n" + "".join(rows)


@st.composite
def printed(draw: st.DrawFn, number: object) -> str:
    """A number in any dress that a page may give it."""
    text = f"{number:,}".replace(",", draw(separators))
    padding = draw(paddings)
    return padding + draw(dresses).format(text) + padding


@given(st.data(), st.lists(sizes, min_size=5, max_size=5), rates, st.booleans())
def test_a_row_reads_back_to_the_values_it_was_printed_from(data, numbers, rate, parallel) -> None:
    """Whatever the separators, the padding and the emphasis."""
    gpus, gbs, mbs, length, tensor = numbers
    cells = [data.draw(printed(number)) for number in numbers]
    cells = [
        "**Llama3 8B**",
        *cells,
        str(int(parallel)),
        data.draw(absent),
        data.draw(printed(rate)),
    ]
    result = reader.read("page.md", table(f"|{'|'.join(cells)}|\n"), PageContext())
    assert () == result.problems
    (one,) = result.results
    case = one.case
    assert [gpus, gbs, mbs, length, tensor] == [
        case.num_gpus, case.global_batch_size, case.micro_batch_size,
        case.sequence_length, case.tensor_parallel,
    ]  # fmt: skip
    assert ("llama3-8b", parallel, None) == (
        case.model,
        case.sequence_parallel,
        case.virtual_pipeline,
    )
    assert float(rate) == one.figures.tokens_per_sec_per_gpu


@given(st.lists(st.lists(texts, min_size=9, max_size=9), min_size=1, max_size=5))
def test_every_row_is_either_read_or_refused(rows: list[list[str]]) -> None:
    """None is dropped in silence, and none is counted twice, whatever its cells hold."""
    # A row of dashes would be the rule of another table; its cells are told apart by a letter.
    lines = ["|x" + "|".join(cell.replace("|", "\\|") for cell in row) + "|\n" for row in rows]
    result = reader.read("page.md", table(*lines), PageContext())
    first = table().count("\n") + 1
    seen = [one.line for one in result.results]
    seen += [line for problem in result.problems for line in lines_of(problem)]
    assert list(range(first, first + len(rows))) == sorted(set(seen))


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    """A text that is no page has no results; nothing is raised."""
    reader.looks_like_page(text)
    reader.read("page.md", text, PageContext())


@given(st.lists(st.sampled_from(
    ["---", "perfdb:", "| Model | GBS | Tokens / sec / GPU |", "|---|---|---|", "| a | 1 | 2 |",
     "| #-GPUs | 8 | 16x H100 |", "| MFU | 1% | 2†", "| GBS/MBS | 8/1 | 8 |", "† a", "Note: a",
     "[^1]: a", "| Size | GPUs | GBS | SeqLen |", "| 15b | 8 | 1 | 2 |", "", "* a",
     ":::{tab-set}", ":::", "```", "# H", "System: X", "GBS |", "---|---", "> ", "- ", "\x01", "\0"]
), max_size=25))  # fmt: skip
def test_any_order_of_a_pages_own_lines_can_be_read(lines: list[str]) -> None:
    """Boxes never closed, tables cut in two, front matter without an end: nothing is raised."""
    reader.read("page.md", "\n".join(lines), PageContext(framework="dfm"))
