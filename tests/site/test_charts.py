"""Every chart: the same bytes, colours of the theme, a title for readers, any text as text."""

import hashlib
import os
import re
import subprocess
import sys
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from perfdb.site import charts, palette, svg
from perfdb.site.charts import Bar, Line
from perfdb.site.markup import Html
from tests.site.conftest import EVIL
from tests.site.samples import run_page

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
LINES = (
    Line("one", ((8, 100.0), (16, 99.0)), ("100.0", "99.0")),
    Line("ideal", ((8, 100.0), (16, 100.0)), ideal=True),
)
STEP = "var(--perf-step, #0072b2)"
RULE = "var(--pst-color-border, #ccc)"
KINDS = ("steps", "bars", "gpus", "releases")

STRANGER = """
import sys
import perfdb.site.directives
assert "matplotlib" not in sys.modules
from tests.site.test_charts import KINDS, digest
print(*(digest(kind) for kind in reversed(KINDS)))
"""
"""What another process does that draws the same, in another order."""


def drawing(kind: str) -> Html:
    """A chart of a kind."""
    if kind == "bars":
        return charts.bars("Title", "axis", (Bar("a", 3.0, "3"), Bar("b", -1.0, "−1")))
    if kind == "gpus":
        return charts.over_gpus("Title", "axis", LINES)
    if kind == "releases":
        lines = (Line("a", ((0, 1.0), (1, 2.0)), ("1", "2")),)
        return charts.over_releases("Title", "axis", ("0.9", "0.10"), lines)
    made = charts.step_times(run_page(9.0, 5.0, 4.1, 4.0))
    assert made is not None
    return made


def root_of(made: Html) -> ElementTree.Element:
    found = ElementTree.fromstring(made.text).find(f"{SVG}svg")
    assert found is not None
    return found


def texts(made: Html) -> dict[str, tuple[float, float]]:
    """Each text of a drawing with its place."""
    return {
        text.text or "": (float(text.attrib["x"]), float(text.attrib["y"]))
        for text in root_of(made).iter(f"{SVG}text")
    }


def paths(made: Html, colour: str) -> list[list[tuple[float, float]]]:
    """The points of the lines that are drawn in a colour."""
    return [
        [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path.attrib["d"])]
        for path in root_of(made).findall(f"{SVG}path")
        if f"stroke: {colour}" in path.get("style", "")
    ]


def digest(kind: str) -> str:
    return hashlib.sha256(drawing(kind).text.encode()).hexdigest()


@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(1, 16), max_size=3))
def test_a_chart_is_the_same_whatever_was_drawn_before(others: list[int]) -> None:
    """The axes are used again; nothing of an earlier chart is left on them."""
    expected = [drawing(kind) for kind in KINDS]
    for count in others:
        charts.bars("Title", "much", [Bar(f"{place}", -1.0 * place, "") for place in range(count)])
        charts.step_times(run_page(*[1.0] * count))
        line = Line("long", tuple((2.0**place, 1e5) for place in range(count)))
        charts.over_gpus("Title", "many", [line] * count)
        charts.over_releases("Title", "many", [EVIL] * count, [Line(EVIL, ((0, 1e5),))] * count)
    assert expected == [drawing(kind) for kind in KINDS]


def test_a_chart_is_the_same_on_a_machine_with_settings_of_its_own(tmp_path: Path) -> None:
    """And where nothing has been drawn, nor can be kept: fonts are looked for without a word."""
    own = tmp_path / "matplotlibrc"
    own.write_text("font.size: 30\npath.sketch: 1, 100, 2\naxes.grid: no\n")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", STRANGER],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": "/dev/null", "MATPLOTLIBRC": str(own)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "" == done.stderr
    assert [digest(kind) for kind in reversed(KINDS)] == done.stdout.split()


@pytest.mark.parametrize("kind", KINDS)
def test_a_chart_holds_no_date_and_nothing_but_what_is_seen(kind: str) -> None:
    """No metadata, no style that would hold for the whole page."""
    assert not re.search(r"20\d\d-\d\d-\d\d", drawing(kind).text)
    kinds = {element.tag.removeprefix(SVG) for element in root_of(drawing(kind)).iter()}
    assert kinds <= {"svg", "title", "desc", "path", "text", "defs", "use"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_chart_takes_its_colours_and_its_font_from_the_page(kind: str) -> None:
    made = drawing(kind).text
    assert set() == set(re.findall(r"(?:fill|stroke): *(#\w+)", made))
    assert "var(--p" in made
    assert "DejaVu" not in made


def test_no_two_charts_of_a_page_share_an_id_and_each_finds_its_own() -> None:
    """Alike but for a title, the marks of two charts have other names."""
    made = [charts.over_gpus(title, "axis", LINES).text for title in ("Title", "Other")]
    named = [set(re.findall(r' id="(.+?)"', one)) for one in made]
    assert not named[0] & named[1]
    assert named == [set(re.findall(r'href="#(.+?)"', one)) for one in made]
    assert named[0]


@pytest.mark.parametrize(
    ("kind", "title", "said"),
    [
        ("bars", "Title", "axis. a: 3; b: −1."),
        ("gpus", "Title", "axis by number of GPUs. one: 100.0, 99.0."),
        ("releases", "Title", "axis by release: 0.9, 0.10. a: 1, 2."),
    ],
)
def test_a_chart_has_a_title_and_its_numbers_in_words(kind: str, title: str, said: str) -> None:
    root = root_of(drawing(kind))
    assert ("img", title) == (root.get("role"), root.findtext(f"{SVG}title"))
    assert said == root.findtext(f"{SVG}desc")


@settings(max_examples=15, deadline=None)
@given(st.text(min_size=1, max_size=40))
@example(EVIL)
@example("$x^2$ \\frac{1}{2} $")
@example("_underscore")
@example("#000001 url(#m)")
@example("\x00\ud83d 言語 \n two lines")
def test_any_label_prints_as_text(label: str) -> None:
    """The SVG is well formed, runs no script, and a label of dollars is no formula."""
    made = (
        charts.bars(label, label, (Bar(label, 1.0, label), Bar("b", 2.0, "2"))),
        charts.over_gpus(label, label, (Line(label, ((8.0, 1.0), (16.0, 2.0))),)),
        charts.over_releases(label, label, (label, "b"), (Line(label, ((0, 1.0), (1, 2.0))),)),
    )
    plain = printed(label)
    for one in made:
        assert root_of(one).find(f".//{SVG}script") is None
        if len(label) < 9:
            assert plain in {printed(text) for text in (*texts(one), "")}


def printed(words: str) -> str:
    """What can be seen of a text."""
    return "".join(letter for letter in words if letter.isprintable() and letter != " ")


WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=70)
FONT = FontProperties(family="DejaVu Sans", size=12)


def wide(said: str) -> float:
    """How wide a text is, as matplotlib measures it as a whole."""
    return text_to_path.get_text_width_height_descent(said, FONT, ismath=False)[0]


@cache
def advance(letter: str) -> float:
    """How wide a letter is that no neighbour moves."""
    return wide(f"|{letter}|") - wide("||")


def box(text: ElementTree.Element) -> tuple[float, float, float]:
    """The height of a text and where it starts and ends."""
    across = wide(text.text or "")
    before = {"start": 0.0, "middle": across / 2, "end": across}
    [anchor] = re.findall("text-anchor: (.+?)(?:;|$)", text.attrib["style"])
    start = float(text.attrib["x"]) - before[anchor]
    return float(text.attrib["y"]), start, start + across


@given(WORDS, st.floats(20, 400))
@example("0000000AA\\ACKRTV.*!00", 148.75)
def test_a_text_is_shortened_to_its_room_and_no_more(words: str, room: float) -> None:
    """A letter more, of those that it is made of, would not fit."""
    said = svg.shortened(words, room)
    assert words.startswith(said.removesuffix("…"))
    assert wide(said) <= room
    assert said == words or sum(map(advance, f"{words[: len(said)]}…")) > room - 0.5


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("Llama 3 8B · FP8", ["Llama 3 8B · FP8"]),
        ("x" * 20 + " · BF16 · 8 GPUs", ["x" * 20 + " ·", "BF16 · 8 GPUs"]),
        ("FP8 · 8 GPUs · " + "x" * 20, ["FP8 · 8 GPUs ·", "x" * 20]),
    ],
)
def test_a_label_goes_on_below_where_its_first_line_is_full(words: str, lines: list[str]) -> None:
    """Between two of its parts, so that what tells bars apart at its end is not cut."""
    assert lines == svg.wrapped(words, wide("x" * 20 + " ·") + 1)


def test_a_label_that_is_too_long_is_cut_and_the_sentence_has_all_of_it() -> None:
    made = charts.bars("Title", "axis", (Bar("xy" * 80, 1.0, "1"),))
    [label] = [text for text in texts(made) if text.endswith("…")]
    assert "xy" * 10 == label[:20]
    assert f"{'xy' * 80}: 1." in made.text


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(WORDS, st.floats(0, 1e6)), min_size=2, max_size=6))
@example([("x" * 40, 1.0), ("y" * 30, 1e6)])
@example([("0", 5e5), ("0", 1e6)])
def test_no_text_runs_off_a_drawing_or_over_another(named: list[tuple[str, float]]) -> None:
    """Labels of every length; bars to both sides; lines that end at the same height."""
    names = [name for name, _ in named]
    lines = [Line(f"{name} · {name}", ((0, 1.0), (1, value))) for name, value in named]
    given = [Bar(f"{name} · {name}", value - 5e5, name) for name, value in named]
    for made in (
        charts.bars("T", names[0], given),
        charts.over_releases("T", names[0], names, lines),
    ):
        boxes = [box(text) for text in root_of(made).iter(f"{SVG}text")]
        deep = float(root_of(made).attrib["viewBox"].split()[3])
        assert all(-0.01 < start and end < svg.WIDTH + 0.01 for _, start, end in boxes)  # rounded
        assert all(svg.FONT_SIZE * 0.8 < y < deep - 3 for y, _, _ in boxes)
        for (y, start, end), (other_y, other_start, other_end) in combinations(boxes, 2):
            assert abs(y - other_y) > 10 or end <= other_start or other_end <= start


def test_a_bar_has_its_label_above_it_and_its_value_at_its_end() -> None:
    """Labels start at the left, on either side of zero; the value is beside the bar, not on it."""
    made, said = drawing("bars"), texts(drawing("bars"))
    (right, left), (x, y), (other_x, _) = paths(made, STEP), said["a"], said["b"]
    assert 0 <= x == other_x < svg.WIDTH / 20
    assert y < right[0][1] - svg.FONT_SIZE / 2
    assert right[1][0] < said["3"][0]
    assert said["−1"][0] < left[1][0]
    assert said["3"][1] == pytest.approx(right[0][1], abs=svg.FONT_SIZE / 2)


def test_many_bars_are_two_drawings_of_one_scale() -> None:
    """13 are seven and six, in their order; one as long as another is drawn as long."""
    values = [*range(13, 1, -1), -4]
    bars = [Bar(f"b{value}", float(value), str(value)) for value in values]
    made = charts.bars("Title", "axis", bars)
    drawn = [Html(part) for part in re.findall("(?s)<figure.*?</figure>", made.text)]
    assert [7, 6] == [len(paths(one, STEP)) for one in drawn]
    assert "axis. b6: 6; b5: 5; b4: 4; b3: 3; b2: 2; b-4: -4." == root_of(drawn[1]).findtext(
        f"{SVG}desc"
    )
    (first, _), (last, _) = (
        [abs(one[1][0] - one[0][0]) for one in paths(it, STEP)][:2] for it in drawn
    )
    assert first / last == pytest.approx(13 / 6, abs=0.01)
    assert 1 == len(re.findall("<svg", charts.bars("Title", "axis", bars[:12]).text))


def test_no_grid_line_of_bars_runs_through_a_label() -> None:
    """Each is cut where a label is: beside three bars it is in three pieces, at 0, 10, 20, 30."""
    bars = [Bar(f"{name} · {name * 30}", 10.0 * place, name) for place, name in enumerate("abc", 1)]
    made = charts.bars("Title", "axis", bars)
    labels = [y for text, (_, y) in texts(made).items() if len(text) > 20]
    for colour, ticks in ((RULE, 4), ("var(--pst-color-text-muted, #666)", 1)):
        [points] = paths(made, colour)
        pieces = list(zip(points[::2], points[1::2], strict=True))
        assert ticks * len(bars) == len(pieces)
        for (x, upper), (other_x, lower) in pieces:
            assert x == other_x
            assert 0 < lower - upper < 20
            # a letter reaches 0.76 of its size above its line and 0.24 below
            assert not any(upper < y + 2.9 and y - 9.1 < lower for y in labels)


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2.2 of a colour such as #0072b2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return sum(share * one for share, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(("theme", "ground"), [("light", "#ffffff"), ("dark", "#111111")])
def test_bars_stand_out_from_the_ground_in_light_and_in_dark(theme: str, ground: str) -> None:
    """By 3 to 1, as WCAG 2.2 asks of graphics (1.4.11); the grounds are those of the theme."""
    css = (ROOT / "perfdb" / "site" / "static" / "perfdb.css").read_text()
    both = re.findall(r"(--perf-\w+): light-dark\((#\w{6}), (#\w{6})\);", css)
    colours = {name: dark if theme == "dark" else light for name, light, dark in both}
    for colour in palette.OF_PEAKS.values():
        [name] = re.findall(r"var\((--perf-\w+)", colour)
        low, high = sorted((luminance(colours[name]), luminance(ground)))
        assert (high + 0.05) / (low + 0.05) >= 3


def test_names_of_lines_stand_below_in_the_order_in_which_the_lines_end() -> None:
    """Below the axis and its ticks, each on a row of its own: the first is what ends highest."""
    lines = [
        Line(name, ((0, 5.0), (1, end))) for name, end in (("low", 1), ("high", 3), ("mid", 2))
    ]
    said = texts(charts.over_releases("Title", "axis", ("0.9", "0.10"), lines))
    heights = [said[name][1] for name in ("0.10", "high", "mid", "low")]
    assert heights == sorted(set(heights))
    assert said["high"][0] == said["mid"][0] == said["low"][0] < svg.WIDTH / 4


def test_a_negative_bar_goes_left_from_where_a_positive_one_starts() -> None:
    """Three times as long is drawn three times as long."""
    [[(zero, _), (right, _)], [(also_zero, _), (left, _)]] = paths(drawing("bars"), STEP)
    assert zero == also_zero
    assert right - zero == pytest.approx(3 * (zero - left), abs=0.05)


@pytest.mark.parametrize(("kind", "share"), [("gpus", 99 / 100), ("steps", 5 / 9)])
def test_lines_are_drawn_from_zero(kind: str, share: float) -> None:
    """What is one per cent less is drawn one per cent lower: a small change looks small."""
    [(_, first), (_, second), *_] = paths(drawing(kind), STEP)[0]
    ground = max(y for [(_, y), _] in paths(drawing(kind), RULE))
    assert share == pytest.approx((ground - second) / (ground - first), abs=1e-4)


def test_numbers_of_gpus_are_as_far_apart_as_they_double() -> None:
    """From 8 to 16 it is once, from 16 to 64 twice, from 64 to 1,024 four times."""
    points = tuple((gpus, 1.0) for gpus in (8, 16, 64, 1024))
    made = charts.over_gpus("Title", "axis", [Line("one", points)])
    places = [x for x, _ in paths(made, STEP)[0]]
    once, twice, often = [after - before for before, after in pairwise(places)]
    assert (2 * once, 4 * once) == pytest.approx((twice, often), abs=0.05)
    assert {"8", "16", "64", "1,024"} < set(texts(made))


def test_lines_differ_by_colour_by_dashes_and_by_marks() -> None:
    """The first and the last are both solid: blue dots and grey crosses are told apart."""
    lines = [Line(f"{place}", ((0, 1.0), (1, place + 1.0))) for place in range(6)]
    root = root_of(charts.over_releases("Title", "axis", ("0.9", "0.10"), lines))
    marks = [mark.attrib["d"] for mark in root.findall(f"{SVG}defs/{SVG}path")]
    styles = [path.attrib["style"] for path in root.findall(f"{SVG}path")]
    drawn = [style for style in styles if RULE not in style][:6]
    dashes = [re.findall("stroke-dasharray: (.+?);", style) for style in drawn]
    colours = [re.findall("stroke: (.+?);", style) for style in drawn]
    assert [6, 6, 5] == [len(set(map(str, one))) for one in (marks, colours, dashes)]


def test_the_newest_release_is_named_even_where_there_is_no_room_for_all() -> None:
    names = [f"release-{place:04}" for place in range(20)]
    line = Line("a", tuple((place, 1.0) for place in range(20)))
    shown = set(texts(charts.over_releases("Title", "axis", names, [line]))) & set(names)
    assert names[-1] in shown
    assert len(shown) < 20
