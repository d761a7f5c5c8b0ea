"""A page whose cells hold two values, and columns without a field: each result says its own."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup

from perfdb import ingest
from perfdb.db.session import store_url
from perfdb.pages import reader
from perfdb.pages.base import PageContext
from perfdb.site import (
    addresses,
    changelog,
    markup,
    models,
    overview,
    plain,
    profiles,
    read,
    revisions,
    tables,
)
from perfdb.site.contents import Contents
from perfdb.site.data import ReleasePage, Result
from perfdb.site.pages import all_pages
from perfdb.site.printed import says, text_of
from perfdb.site.profile import Profile
from perfdb.site.releases import release_pages
from tests.site.samples import address, model_page, published

TITLES = "Model|Precision|#-GPUs|GBS|MBS|Sequence Length|VP|Power cap (W)|Cooling"
FIGURES = "Tokens / sec / GPU|Model TFLOP / sec / GPU"
BOTH = "FP8-CS (FP8-MX)"
PAIRS = [
    f"LLAMA3-70B|{BOTH}|64|128|1|8192|0 (1)|1200|air|4121 (3830)|1984 (1844)",
    f"LLAMA3-8B|{BOTH}|8|128|2 (1)|8192|1|1200 (1000)|liquid (40 °C)|33,810 (31,466)|1958 (n/a)",
    f"Nemotron-15B|{BOTH}|64|256|2|4096|1|-|air|18 102 (17 000)|1702",
    "Mixtral-8x22B|FP8-CS|256|64|1|65536|14|1200|air|2790|1030",
    "Mixtral-8x7B|FP8-CS|64|256|2|4096|1|1200|air|20544 (19001)|1703 (1575)",
]  # fmt: skip
"""The last row does not say what its values in brackets are of."""


def page_of(rows: list[str], titles: str = f"{TITLES}|{FIGURES}") -> str:
    lines = [titles, "|".join("-" * len(titles.split("|"))), *rows]
    table = "\n".join(f"| {line.replace('|', ' | ')} |" for line in lines)
    return f"# NeMo\n\n## Pre-training\n\n### System: DGX-GB200\n\n{table}\n"


def stored_in(folder: Path, *texts: str) -> Contents:
    """What a store holds that has read the states of one page, one after the other."""
    url, page = store_url(str(folder / "store.sqlite")), folder / "page.md"
    for text in texts:
        page.write_text(text)
        options = ingest.Options(PageContext(framework="nemo", release="25.07"))
        assert () == ingest.ingest([page], url, options).rejected
    return read.stored(url)


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    return stored_in(tmp_path_factory.mktemp("pairs"), page_of(PAIRS))


def release_of(contents: Contents) -> ReleasePage:
    [release] = release_pages(contents.results)
    return release


def soup(contents: Contents, profile: Profile | None = None) -> BeautifulSoup:
    """The release's tables as they stand on its page, or in the columns of another family."""
    shown = [
        markup.table(
            tables.results_table(
                "R", tab.results, profile or tables.of_results(tab.results), address
            )
        ).text
        for section in release_of(contents).sections
        for tab in section.tabs
    ]
    return BeautifulSoup("".join(shown), "html.parser")


def rows(contents: Contents, *titles: str, profile: Profile | None = None) -> list[str]:
    """The words of some columns, row by row, as a reader sees them."""
    found = []
    for table in soup(contents, profile).select("table"):
        heads = [head.get_text() for head in table.select("thead th")]
        for row in table.select("tbody tr"):
            cells = [cell.get_text().strip() for cell in row.select("th, td")]
            found.append(" ".join(cells[heads.index(title)] for title in titles))
    return sorted(found)


def one(contents: Contents, model: str, precision: str) -> Result:
    [found] = [it for it in contents.results if (it.model, it.precision) == (model, precision)]
    return found


def test_a_release_prints_of_a_cell_with_two_values_each_ones_own(contents: Contents) -> None:
    """As it is spelled: 33,810 and 18 102. A figure without brackets is the first one's alone."""
    assert [
        "LLAMA3-70B FP8-CS 1 0 4121 1984",
        "LLAMA3-70B FP8-MX 1 1 3830 1844",
        "LLAMA3-8B FP8-CS 2 1 33,810 1958",
        "LLAMA3-8B FP8-MX 1 1 31,466 –",
        "Mixtral-8x22B FP8-CS 1 14 2790 1030",
        "Mixtral-8x7B FP8-CS 2 1 19001 1575",
        "Mixtral-8x7B FP8-CS 2 1 20544 1703",
        "Nemotron-15B FP8-CS 2 1 18 102 1702",
        "Nemotron-15B FP8-MX 2 1 17 000 –",
    ] == rows(contents, "Model", "Precision", "MBS", "VP", *FIGURES.split("|"))


def test_every_number_of_a_page_sorts_as_one(contents: Contents) -> None:
    """`18 102` is no number to a browser and has its value beside it."""
    cells = [cell for cell in soup(contents).select("td.n") if cell.get_text() != "–"]
    keys = [str(cell.get("data-sort", cell.get_text())).replace(",", "") for cell in cells]
    assert keys
    assert all(re.fullmatch(r"\d+(\.\d+)?", key) for key in keys), keys
    assert "18102.0" in keys


def test_rows_of_many_pages_print_each_ones_own(contents: Contents) -> None:
    columns = ("Precision", "Tokens/s/GPU", "TFLOP/s/GPU")
    shown = rows(contents, *columns, profile=profiles.OF_MODEL)
    assert {"FP8-CS 4,121 1,984", "FP8-MX 3,830 1,844", "FP8-MX 17 000 –"} <= set(shown)


@pytest.mark.parametrize("made", ["model", "landing", "releases", "models", "published"])
def test_no_place_prints_two_values_for_one_result(contents: Contents, made: str) -> None:
    """1,984 TFLOP/s is the headline of the release, in FP8-CS, and 3,830 a rate of FP8-MX."""
    text = BeautifulSoup(PLACES[made](contents), "html.parser").get_text(" ")
    assert [] == re.findall(r"\d+ \([\d,n/a]+\)", text.replace("1200 (1000)", ""))
    assert re.search(r"1,?984", text) or re.search("4,?121", text)


def model(contents: Contents) -> str:
    page = model_page(*(it for it in contents.results if it.model == "llama3-70b"))
    return models.results(page, 0, address).text


def listed(name: str, contents: Contents) -> str:
    return repr([page.data for page in all_pages(contents) if page.name == name])


PLACES: dict[str, Callable[[Contents], str]] = {
    "model": model,
    "landing": lambda contents: overview.html(overview.of_contents(contents), address).text,
    "releases": partial(listed, addresses.PERFORMANCE),
    "models": partial(listed, addresses.MODELS),
    "published": lambda contents: plain.page(release_of(contents), "markdown"),
}


def test_what_is_published_reads_back_to_the_same_cases_and_figures(contents: Contents) -> None:
    """Of each row with two results there are two rows, and the column without a field is kept."""
    again = reader.read("again.md", plain.page(release_of(contents), "myst"), PageContext())
    assert () == again.problems
    figures = [
        (it.case.model, it.case.precision, it.figures.tokens_per_sec_per_gpu, it.extras)
        for it in again.results
    ]
    assert 9 == len(figures)
    assert ("llama3-70b", "fp8_mx", 3830.0, {"Power cap (W)": "1200", "Cooling": "air"}) in figures
    assert ("llama3-8b", "fp8_mx", 31466.0,
            {"Power cap (W)": "1000", "Cooling": "liquid (40 °C)"}) in figures  # fmt: skip


def test_a_corrected_value_changes_its_own_result_alone(tmp_path: Path) -> None:
    """The other result of the row says what it said before."""
    old, new = PAIRS[0], PAIRS[0].replace("(3830)", "(3900)").replace("(1844)", "(n/a)")
    found = stored_in(tmp_path, page_of([old]), page_of([new]))
    happened = revisions.events(found.revisions, [])
    told = {(it.act, change.said) for it in happened for change in it.changes}
    assert {
        ("corrected", "Tokens / sec / GPU: 3830 → 3900"),
        ("corrected", "Model TFLOP / sec / GPU: 1844 → n/a"),
    } == told
    mx = one(found, "llama3-70b", "fp8_mx").result_id
    assert [mx] == list(revisions.corrections(found.revisions))


def test_a_withdrawn_row_tells_the_value_of_each_of_its_results(tmp_path: Path) -> None:
    found = stored_in(tmp_path, page_of(PAIRS[:2]), page_of(PAIRS[1:2]))
    shown = changelog.changed(changelog.changelog(found.revisions, ()), address).text
    text = BeautifulSoup(shown, "html.parser").get_text(" ")
    assert {"4121", "3830"} == set(re.findall(r"Tokens/s/GPU: (.*?) → –", text))


def test_columns_without_a_field_stand_last_on_the_page_of_a_release(contents: Contents) -> None:
    """Of two numbers each result has its own; words keep their brackets, and stand to the left."""
    heads = [head.get_text() for head in soup(contents).select("thead th")]
    assert ["Origin", "Power cap (W)", "Cooling"] == heads[-3:]
    assert [
        "LLAMA3-8B FP8-CS 1200 liquid (40 °C)",
        "LLAMA3-8B FP8-MX 1000 liquid (40 °C)",
    ] == rows(contents, "Model", "Precision", "Power cap (W)", "Cooling")[2:4]
    assert "– air" in rows(contents, "Power cap (W)", "Cooling")
    cooling = soup(contents).select("thead th")[-1]
    assert "w" in cooling["class"]


def test_a_column_that_has_no_field_on_purpose_is_not_added() -> None:
    """Days to 10T tokens follow from the rate; pages at scale have a place for their own."""
    title = "Est. time to train in days (10T tokens, 1K GPUs)"
    row = published(framework="nemo", extras={title: "7"})
    assert profiles.NEMO == tables.of_results([row])
    assert profiles.DFM == tables.of_results([published()])


@pytest.mark.parametrize(
    ("text", "value", "wanted"),
    [
        ("4121 (3830)", 4121.0, False),
        ("4121 (3830)", 3830.0, False),
        ("about 4121", 4121.0, False),
        ("4,121", 4121.0, True),
        ("4 121", 4121.0, True),
        ("43.1%", 0.431, True),
        ("43.1%", 43.1, False),
        ("16x H100 GPUs", 16, True),
        ("16x H100 GPUs", 32, False),
        ("yes", True, True),
        ("0", True, False),
        ("LLAMA3-70B (FP8)", "llama3-70b", True),
    ],
)
def test_a_text_stands_for_a_value_only_where_it_says_it_and_no_other(
    text: str, value: object, wanted: bool
) -> None:
    assert wanted == says(text, value)


@pytest.mark.parametrize(
    ("title", "text"), [("MFU", "43.15%"), ("MFU (%)", "43.15"), ("MFU", "43.15 %")]
)
def test_a_share_keeps_the_digits_it_was_printed_with(title: str, text: str) -> None:
    row = published(mfu=0.4315, raw={title: text})
    assert "43.15%" == tables.as_printed(profiles.MFU, row).replace(" ", "")


@pytest.mark.parametrize(
    ("title", "cell", "shown"),
    [
        ("Step Time (ms)", "11,369", "11.369"),
        ("Time per Iteration (ms)", "20883.7", "20.8837"),
        ("Step Time (ms)", "16,980", "16.980"),
        ("Step Time (ms)", "-", "-"),
        ("Step Time (s)", "11.3690", "11.3690"),
    ],
)
def test_milliseconds_are_shown_in_seconds_with_the_digits_that_were_printed(
    title: str, cell: str, shown: str
) -> None:
    row = SimpleNamespace(raw={"Model": "Llama3 8B", title: cell}, precision=None, variant=None)
    assert shown == text_of(("step_time_s",), row)
