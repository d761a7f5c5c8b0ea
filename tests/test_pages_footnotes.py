"""Footnotes of pages: which texts are kept with which results."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perfdb.normalize import published_row

from perfdb.pages import reader
from perfdb.pages.base import PageContext, PageRead

HEAD = "# NeMo DFM\n\n## Pre-training\n\n### System: DGX-H100, Precision: BF16{}\n\n"
TITLES = (
    "| Model | #-GPUs | GBS | Sequence Length | Tokens / sec / GPU{} |\n|---|---|---|---|---|\n"
)
ROWS = "| Llama3 8B | 8 | 128 | 8192 | 12,273{} |\n| Llama3 70B | 64 | 128 | 8192 | 1,549{} |\n"


def read(
    heading: str = "", header: str = "", marks: tuple[str, str] = ("", ""), end: str = ""
) -> PageRead:
    """A page with two rows, with marks in it and a text at its end."""
    text = HEAD.format(heading) + TITLES.format(header) + ROWS.format(*marks) + end
    return reader.read("page.md", text, PageContext())


def notes(found: PageRead) -> list[tuple[str, ...]]:
    assert () == found.problems
    assert [12273.0, 1549.0] == [one.figures.tokens_per_sec_per_gpu for one in found.results]
    return [one.notes for one in found.results]


@pytest.mark.parametrize(
    ("mark", "line"),
    [
        ("[^a]", "\n[^a]: Without the loss.\n"),
        ("[^1]", "\n[^1]: Without the\n    loss.\n"),
        ("†", "† Without the loss.\n"),
        ("\\*", "\\* Without the loss.\n"),
        ("\\*", "\n* Without the loss.\n"),
        (" ‡", "\n‡ Without the\nloss.\n"),
        ("¹", "¹ Without the loss.\n"),
        ("¹", "[1] Without the loss.\n"),
        ("[1]", "[1]: Without the loss.\n"),
        ("<sup>2</sup>", "<sup>2</sup> Without the loss.\n"),
        ("§ (11,000)", "§ Without the loss.\n"),
    ],
)  # fmt: skip
def test_a_row_has_the_text_of_its_mark_and_the_others_have_not(mark: str, line: str) -> None:
    """Whatever the mark looks like; the figure before it is read all the same."""
    found = read(marks=("", ""), end=line)
    assert [(), ()] == notes(found)
    found = read(marks=(mark, ""), end=line)
    first, *others = [one.notes for one in found.results]
    assert ("Without the loss.",) == first
    assert () == others[-1]
    assert 12273.0 == found.results[0].figures.tokens_per_sec_per_gpu
    assert not [note for note in found.notes if "footnote" in note.message]


@pytest.mark.parametrize("place", ["heading", "header"])
def test_a_mark_in_a_heading_or_a_column_title_is_of_all_rows(place: str) -> None:
    found = read(**{place: "[^a]"}, end="\n[^a]: Mock data.\n")
    assert [("Mock data.",)] * 2 == notes(found)
    assert () == found.notes


@pytest.mark.parametrize(
    "line", ["Note: mock data.\n", "\n**Note:** mock data.\n", "Notes: mock\ndata.\n"]
)
def test_a_note_right_under_a_table_is_of_all_its_rows(line: str) -> None:
    assert [("mock data.",)] * 2 == notes(read(end=line))


@pytest.mark.parametrize(
    ("end", "text"),
    [
        ("Note: Power | 700 W\n", "Power | 700 W"),
        ("**Note:** A | B | C\n", "A | B | C"),
        ("Note: the power\ncap | 700 W\n", "the power cap | 700 W"),
        ("Note: cap | 700 W\nof all nodes\n", "cap | 700 W of all nodes"),
        ("Note: A | B\nC | D\n", "A | B C | D"),
        ("> [!NOTE]\n> Power | 700 W\n", "Power | 700 W"),
        (":::{note}\nPower | 700 W\n:::\n", "Power | 700 W"),
        (":::{note}\nA | B | C\nD | E | F\n:::\n", "A | B | C D | E | F"),
        ("<Note>\nPower | 700 W\n</Note>\n", "Power | 700 W"),
        ("<Note>A | B | C</Note>\n", "A | B | C"),
    ],
)
def test_a_pipe_in_a_note_is_a_sign_like_others(end: str, text: str) -> None:
    assert [(text,)] * 2 == notes(read(end=f"\n{end}"))


def test_a_mark_s_text_may_hold_a_pipe() -> None:
    found = read(marks=(" †", ""), end="\n† Power | 700 W\n")
    assert [("Power | 700 W",), ()] == notes(found)
    assert () == found.notes


def test_a_note_with_a_pipe_hides_no_table_and_no_row() -> None:
    """A table may begin in its paragraph; a row that a blank line cuts off is still told."""
    table = TITLES.format("") + ROWS.format("", "")
    found = read(end=f"\nNote: A | B\n{table}")
    assert [("A | B",), ("A | B",), (), ()] == [one.notes for one in found.results]
    [problem] = read(marks=("", " <Note>old</Note>"), end="\n<Note>A | B</Note>\n").problems
    assert "'1,549 old' is not a number" in problem.message
    [problem] = read(end="\n[x] | 16 | 128 | 8192 | 12,000\n").problems
    assert "the row is not part of a table" in problem.message


BOXES = (
    ":::{{note}}\n{}\n:::\n", "```{{warning}}\n{}\n```\n", ":::note\n\n{}\n\n:::\n",
    "> [!IMPORTANT]\n> {}\n", "<Note>{}</Note>\n",
    '<div class="admonition note"><p class="admonition-title">Note</p><p>{}</p></div>\n',
)  # fmt: skip
"""A note as MyST, Docusaurus, GitHub, Mintlify and a built page have it."""


@pytest.mark.parametrize("box", BOXES)
def test_a_note_in_a_box_right_under_a_table_is_of_all_its_rows(box: str) -> None:
    assert [("mock data.",)] * 2 == notes(read(end="\n" + box.format("mock data.")))


def test_a_box_that_is_no_note_or_stands_elsewhere_is_of_no_row() -> None:
    """Text or a heading ends what belongs to a table; a table in a box makes it no footnote."""
    box = ":::{note}\nmock data.\n:::\n"
    assert [(), ()] == notes(read(end="\n:::{dropdown} More\nmock data.\n:::\n"))
    assert [(), ()] == notes(read(end=f"\nThese are figures.\n\n{box}"))
    assert [(), ()] == notes(read(end=f"\n## Next\n\n{box}"))
    found = read(end=f"\n:::{{note}}\nmock data.\n\n{TITLES.format('')}{ROWS.format('', '')}:::\n")
    assert [()] * 4 == [one.notes for one in found.results]


def test_a_list_in_a_note_is_one_text_and_two_notes_are_two() -> None:
    boxes = "\n:::{note}\nMock data.\n\n- No clipping.\n:::\n\n:::{warning}\nOld driver.\n:::\n"
    assert [("Mock data. No clipping.", "Old driver.")] * 2 == notes(read(end=boxes))


def test_a_note_further_down_or_under_another_table_is_of_none() -> None:
    """Text between, or a heading, ends what belongs to a table."""
    assert [(), ()] == notes(read(end="\nThese are figures.\n\nNote: of the page.\n"))
    assert [(), ()] == notes(read(end="\n## Next\n\nNote: of the section.\n"))


def test_several_texts_stand_in_the_order_of_their_marks_each_once() -> None:
    end = "\nNote: all.\n\n[^a]: One.\n\n[^b]: Two.\n"
    found = read(heading="[^b]", marks=("[^a][^b]", "[^b]"), end=end)
    assert [("One.", "Two.", "all."), ("Two.", "all.")] == notes(found)


def test_a_mark_without_a_text_is_told() -> None:
    """In a cell with the row's line, in a title with the header's; the row is read all the same."""
    found = read(header=" †", marks=("", "[^x]"))
    assert [(), ()] == notes(found)
    assert [
        "page.md:7: the footnote mark '†' has no text on the page; say below the table what it "
        "means, or remove it",
        "page.md:10: the footnote mark 'x' has no text on the page; say below the table what it "
        "means, or remove it",
    ] == [str(note) for note in found.notes]


def test_a_table_on_its_side_has_its_footnotes_by_column() -> None:
    """A mark beside a metric is of all results, one in a cell of its column's."""
    text = (
        HEAD.format("") + "| Model | Llama3 8B | Llama3 70B |\n|---|---|---|\n| #-GPUs | 8 | 64 |\n"
        "| GBS | 128 | 128 |\n| Sequence Length | 8192 | 8192 |\n"
        "| Tokens / sec / GPU† | 12,273[^a] | 1,549 |\n\n† All.\n\n[^a]: One.\n"
    )
    found = reader.read("page.md", text, PageContext())
    assert [("One.", "All."), ("All.",)] == notes(found)


def test_notes_are_stored_and_a_changed_note_is_another_revision() -> None:
    one, other = (
        published_row(read(end=f"Note: {text}\n").results[0]) for text in ("mock.", "real.")
    )
    assert ("mock.",) == one.notes
    assert one.key == other.key
    assert one.content_hash != other.content_hash


def test_a_long_text_under_a_table_takes_no_time() -> None:
    """The test suite's time limit is the judge: it would run for minutes if it were quadratic."""
    lines = "A line of a text that goes on.\n" * 20_000
    assert [(), ()] == notes(read(end=f"\n{lines}"))
    first, _ = notes(read(end=f"\nNote: {lines}"))
    assert 600_000 < len(first[0])


@given(st.text(st.characters(blacklist_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=20))
@settings(deadline=None)
def test_no_text_under_a_table_changes_what_its_rows_say(end: str) -> None:
    """It may add a note, and nothing else; a pipe would make it part of the table."""
    found = read(end=f"\n{end.replace('|', '').strip()}\n")
    assert [12273.0, 1549.0] == [one.figures.tokens_per_sec_per_gpu for one in found.results]
    assert () == found.problems


@pytest.mark.parametrize("mark", ["(1)", "(a)"])
def test_a_bracket_is_a_mark_where_a_text_under_the_table_begins_with_it(mark: str) -> None:
    """In a title and in a cell; the figures before it are read, and no second one is."""
    end = f"\n{mark} Mean of 100 steps.\n[1] Another one.\n"
    assert [(), ()] == notes(read(end=end))
    assert [("Mean of 100 steps.",), ()] == notes(read(marks=(f" {mark}", ""), end=end))
    assert [("Mean of 100 steps.",)] * 2 == notes(read(header=f" {mark}", end=end))


def test_a_bracket_is_a_mark_in_a_list_of_restructuredtext_too() -> None:
    rows = (
        ("Model", "#-GPUs", "GBS", "Sequence Length", "Tokens / sec / GPU"),
        ("Llama3 8B", "8", "128", "8192", "12,273 (2)"),
        ("Llama3 70B", "64", "128", "8192", "1,549"),
    )
    rule = " ".join(["=" * 20] * 5)
    lines = [" ".join(f"{text:<20}" for text in row).rstrip() for row in rows]
    table = "\n".join((rule, lines[0], rule, *lines[1:], rule))
    said = PageContext(framework="dfm", system="dgx-h100")
    found = reader.read("page.rst", f"{table}\n\n(2) Causal.\n", said)
    assert [("Causal.",), ()] == notes(found)


@pytest.mark.parametrize("second", ["3", "6,000", "24,600"])
def test_a_value_in_brackets_that_nobody_explains_is_near_its_partner(second: str) -> None:
    """Beyond half of it and twice as much it may be a mark, or anything: the row is rejected."""
    found = read(marks=(f" ({second})", ""))
    assert [1549.0] == [one.figures.tokens_per_sec_per_gpu for one in found.results]
    (problem,) = found.problems
    assert ("Tokens / sec / GPU", 9) == (problem.field, problem.line)
    assert "say below the table" in (problem.remedy or "")


def test_a_value_in_brackets_that_is_near_its_partner_is_a_second_result() -> None:
    found = read(marks=(" (6,137)", " (3,098)"))
    figures = [one.figures.tokens_per_sec_per_gpu for one in found.results]
    assert ([12273.0, 6137.0, 1549.0, 3098.0], ()) == (figures, found.problems)


def test_a_letter_in_brackets_is_a_unit_in_a_title_and_a_mark_where_it_has_a_text() -> None:
    """Thousands of tokens are not known: the table is refused, and no title is suggested."""
    found = read(header=" [k]")
    assert () == found.results
    messages = {(one.message, one.remedy) for one in found.problems}
    ((message, remedy),) = messages
    assert "not known: 'Tokens / sec / GPU [k]'" in message
    assert "did you mean" not in (remedy or "")
    assert () == tuple(one for one in found.notes if "footnote" in one.message)
    explained = read(header=" [k]", end="\n[k] Of the kernel.\n")
    assert [("Of the kernel.",)] * 2 == notes(explained)


def test_a_step_time_may_have_its_unit_in_square_brackets() -> None:
    text = HEAD.format("") + TITLES.format("").replace("Tokens / sec / GPU", "Step Time [s]")
    found = reader.read("page.md", f"{text}| Llama3 8B | 8 | 128 | 8192 | 10.7 |\n", PageContext())
    assert [10.7] == [one.figures.step_time_s for one in found.results]
    assert () == found.notes


def test_a_mark_with_a_name_of_restructuredtext_has_its_text() -> None:
    titles = "Model, #-GPUs, GBS, Sequence Length, Tokens / sec / GPU"
    row = "   Llama3 70B, 64, 128, 8192, 4452 [#cap]_\n"
    table = f".. csv-table:: System: DGX-H100, Precision: BF16\n   :header: {titles}\n\n{row}"
    text = f"Pre-training\n============\n\n{table}\n.. [#cap] Power cap at 1 kW.\n"
    found = reader.read("page.rst", text, PageContext(framework="dfm"))
    assert [("Power cap at 1 kW.",)] == [one.notes for one in found.results]
    assert () == found.notes
