"""Every chart: the same bytes, colours of the theme, a title for readers, any text as text."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perfdb.site import charts
from perfdb.site.charts import Bar, Line
from perfdb.site.markup import Html
from tests.site.conftest import EVIL

SVG = "{http://www.w3.org/2000/svg}"
LINES = (
    Line("one", ((8, 100.0), (16, 99.0))),
    Line("ideal", ((8, 100.0), (16, 100.0)), ideal=True),
)


def drawings() -> dict[str, Html]:
    return {
        "bars": charts.bars("Title", "axis", (Bar("a", 3.0, "3"), Bar("b", -1.0, "−1"))),
        "gpus": charts.over_gpus("Title", "axis", LINES),
        "releases": charts.over_releases(
            "Title", "axis", ("0.9", "0.10"), (Line("a", ((0, 1.0), (1, 2.0))),)
        ),
    }


KINDS = ("bars", "gpus", "releases")


@pytest.mark.parametrize("kind", KINDS)
def test_a_chart_is_the_same_each_time_and_holds_no_date(kind: str) -> None:
    first = drawings()[kind].text
    assert first == drawings()[kind].text
    assert not re.search(r"20\d\d-\d\d-\d\d", first)


@pytest.mark.parametrize("kind", KINDS)
def test_a_chart_takes_its_colours_from_the_theme(kind: str) -> None:
    assert set() == set(re.findall(r"(?:fill|stroke): *(#\w+)", drawings()[kind].text))


@pytest.mark.parametrize("kind", KINDS)
def test_a_chart_has_a_title_and_its_numbers_in_words(kind: str) -> None:
    svg = ElementTree.fromstring(drawings()[kind].text).find(f"{SVG}svg")
    assert svg is not None
    assert ("img", "Title") == (svg.get("role"), svg.findtext(f"{SVG}title"))
    said = {
        "bars": "axis. a: 3; b: −1.",
        "gpus": "axis by number of GPUs. one: 100.0, 99.00.",
        "releases": "axis by release: 0.9, 0.10. a: 1.000, 2.000.",
    }
    assert said[kind] == svg.findtext(f"{SVG}desc")


@settings(max_examples=15, deadline=None)
@given(st.text(min_size=1, max_size=40))
@example(EVIL)
@example("$x^2$ \\frac{1}{2} $")
@example("_underscore")
@example("\x00\ud83d 言語 \n two lines")
def test_any_label_prints_as_text(label: str) -> None:
    """The SVG is well formed, runs no script, and a label of dollars is no formula."""
    made = charts.bars(label, "axis", (Bar(label, 1.0, label), Bar("b", 2.0, "2")))
    root = ElementTree.fromstring(made.text)
    assert root.find(f".//{SVG}script") is None
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]
    plain = charts.one_line(label)
    if plain and len(plain) <= charts.LONGEST_LABEL:
        assert " ".join(plain.split()) in [" ".join(text.split()) for text in texts]


def test_a_label_that_is_too_long_is_cut_and_the_sentence_has_all_of_it() -> None:
    long = "x" * 80
    made = charts.bars("Title", "axis", (Bar(long, 1.0, "1"),)).text
    assert "x" * (charts.LONGEST_LABEL - 1) + "…" in made
    assert f"{long}: 1." in made
