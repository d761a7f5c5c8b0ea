"""The diagram of the store's tables says what their foreign keys say, and can be read."""

from itertools import combinations

import pytest
from bs4 import BeautifulSoup
from sqlalchemy import Column, ForeignKey, Integer, MetaData, Table

from perfdb.db.tables import metadata
from perfdb.site.diagram import BOX_WIDTH, Box, drawing, levels, placed
from perfdb.site.palette import TEXT


def chain() -> MetaData:
    """c refers to b and a, b to a; d stands alone."""
    made = MetaData()
    Table("a", made, Column("id", Integer, primary_key=True))
    Table("d", made, Column("id", Integer, primary_key=True))
    Table(
        "b",
        made,
        Column("id", Integer, primary_key=True),
        Column("a_id", ForeignKey("a.id")),
    )
    Table(
        "c",
        made,
        Column("id", Integer, primary_key=True),
        Column("b_id", ForeignKey("b.id")),
        Column("a_id", ForeignKey("a.id")),
    )
    return made


def test_a_table_stands_right_of_all_that_it_refers_to() -> None:
    """c is two references away from a, although one of its own leads there."""
    assert {"a": 0, "b": 1, "c": 2, "d": 0} == levels(chain().sorted_tables)


def test_boxes_do_not_overlap() -> None:
    """In one column none begins above the end of another."""
    boxes = placed(metadata.sorted_tables).values()
    for one, other in combinations(boxes, 2):
        if one.level == other.level:
            assert one.bottom < other.top or other.bottom < one.top


def test_each_reference_is_drawn_and_said_once() -> None:
    """As many lines as foreign keys, and a sentence for screen readers on each."""
    made = BeautifulSoup(drawing(metadata).text, "html.parser")
    keys = {
        f"{table.name}.{column.name} refers to {key.column.table.name}"
        for table in metadata.sorted_tables
        for column in table.columns
        for key in column.foreign_keys
    }
    assert len(keys) == len(made.select("path"))
    described = made.select_one("svg > desc")
    assert described is not None
    assert keys == set(described.text.split("; "))


def test_each_table_is_named_with_the_number_of_its_other_columns() -> None:
    """Of c, which has three columns, two are references."""
    made = BeautifulSoup(drawing(chain()).text, "html.parser")
    boxes = [[text.text for text in box.select("text")] for box in made.select("g")]
    assert ["c", "b_id", "a_id", "and 1 more"] in boxes
    assert ["d", "1 column"] in boxes


def test_a_line_that_passes_a_column_meets_no_box_in_it() -> None:
    """From c to a the line goes above or below b."""
    boxes = placed(chain().sorted_tables)
    made = BeautifulSoup(drawing(chain()).text, "html.parser")
    passing = [path["d"] for path in made.select("path") if str(path["d"]).count("H") > 2]
    assert 1 == len(passing)
    lane = int(str(passing[0]).split("V")[1].split("H")[0])
    assert not boxes["b"].top <= lane <= boxes["b"].bottom


def test_the_same_tables_make_the_same_bytes() -> None:
    """No date, no random name."""
    assert drawing(metadata) == drawing(metadata)


@pytest.mark.parametrize("name", ["results", "runs"])
def test_a_box_is_as_wide_as_its_longest_line(name: str) -> None:
    """At seven units a character nothing leaves its box."""
    box = placed(metadata.sorted_tables)[name]
    assert isinstance(box, Box)
    assert max(map(len, [name, *box.keys])) * 7 < BOX_WIDTH - 8


def test_colours_come_from_the_theme() -> None:
    """Every colour has a name of the theme, so that it holds in light and in dark."""
    made = BeautifulSoup(drawing(metadata).text, "html.parser")
    colours = {str(one[key]) for key in ("fill", "stroke") for one in made.select(f"[{key}]")}
    assert all(colour == "none" or colour.startswith("var(--p") for colour in colours)
    assert TEXT in colours
