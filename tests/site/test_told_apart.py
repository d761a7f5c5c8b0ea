"""No two cases are printed alike: what tells them apart stands in their table or above it."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from perfdb import ingest
from perfdb.compare import Result as Compared
from perfdb.compare import comparison
from perfdb.db.session import store_url
from perfdb.pages import reader
from perfdb.pages.base import PageContext
from perfdb.record import CONFIGURATION_FIELDS, WORKLOAD_FIELDS
from perfdb.site import changes, markup, overview, plain, profiles, read
from perfdb.site.contents import Contents, ReleasePair
from perfdb.site.data import ReleasePage, Result
from perfdb.site.grouping import Grouping, sections
from perfdb.site.profile import Profile
from perfdb.site.profiles import DFM
from perfdb.site.releases import release_pages
from perfdb.site.tables import of_results, results_table
from tests.site.samples import address, published, result, soup
from tests.test_compare import at, printed

Fields = dict[str, object]

OTHER: Fields = {
    "model": "llama3-70b", "qualifiers": "dropless", "task": "sft", "system": "dgx-b200",
    "num_gpus": 16, "precision": "fp8_mx", "sequence_length": 4096, "global_batch_size": 256,
    "micro_batch_size": 4, "local_batch_size": 4, "tensor_parallel": 4, "pipeline_parallel": 4,
    "context_parallel": 4, "expert_parallel": 4, "expert_tensor_parallel": 4,
    "virtual_pipeline": 4, "fsdp_enabled": True, "fsdp_size": 4, "sequence_parallel": True,
    "kernels": "TE + CUDA graphs", "variant": "automodel", "options": {"overlap": True},
}  # fmt: skip
"""Another value for each field of a case; a table has the results of one framework."""

TITLES: dict[str, Fields] = {
    "model": {"model_title": "Llama 3 70B"},
    "system": {"system_title": "DGX-B200"},
}
STATED = {
    field: OTHER[field] for field in (*CONFIGURATION_FIELDS, "precision")
    if field not in ("variant", "options")
} | {
    "step_time_s": 4.05, "tokens_per_sec_per_gpu": 1236.0, "model_tflops_per_sec_per_gpu": 230.0,
    "mfu": 0.092,
}  # fmt: skip
"""What a page states in the cells of a row."""

SILENT: Fields = {"raw": {}, "fsdp_enabled": None, "precision": None, "variant": None}
STYLES: Sequence[plain.Style] = ("myst", "markdown")
FRAMEWORKS: dict[str, Fields] = {
    "dfm": {"framework": "dfm"},
    "nemo": {"framework": "nemo"},
    "nemo-fine-tuning": {"framework": "nemo", "task": "lora"},
    "automodel": {"framework": "automodel"},
    "scaling": {"framework": "nemo", "tokens_per_sec": 98550.0},
    "scaling-fine-tuning": {"framework": "nemo", "tokens_per_sec": 98550.0, "task": "lora"},
}


def pair(field: str, *, measured: bool = False, **said: object) -> tuple[Result, Result]:
    """Two results whose cases differ in a field."""
    given = {**SILENT, **said}
    changed = {"case_key": "2", field: OTHER[field], **TITLES.get(field, {})}
    made = result if measured else published
    return made(**given), made(**given | changed)


def rows(profile: Profile, *results: Result) -> list[list[str]]:
    """The words of each row below the lines above the table."""
    soup = BeautifulSoup(
        markup.table(results_table("Results", results, profile, address)).text, "html.parser"
    )
    above = [line.get_text() for line in soup.find_all("p", recursive=False)]
    return [
        [*above, *(cell.get_text(" ", strip=True) for cell in row.find_all(["th", "td"]))]
        for row in soup.select("tbody tr")
    ]


def on_site(release: ReleasePage, group_by: Grouping) -> list[list[str]]:
    """Each row of the page of a release, behind what its section and its tab are called."""
    return [
        [one.task, str(one.variant), tab.title, *row]
        for one in sections(release.results, group_by)
        for tab in one.tabs
        for row in rows(of_results(tab.results), *tab.results)
    ]


def as_text(release: ReleasePage, style: plain.Style) -> list[list[str]]:
    """The same of the page that is published, with what stands above each table."""
    found, section = [], ""
    for block in re.split(r"\n(?=##+ |:::\{tab-item)", plain.page(release, style)):
        above, rule, below = block.partition("\n| ---")
        section = block.splitlines()[0] if block.startswith("## ") else section
        lines = below.splitlines()[1:] if rule else []
        found += [[section, above, line] for line in lines if line.startswith("| ")]
    return found


def test_every_field_of_a_case_is_tried() -> None:
    assert OTHER.keys() == {*WORKLOAD_FIELDS, *CONFIGURATION_FIELDS} - {"framework"}


@pytest.mark.parametrize("measured", [True, False], ids=["measured", "published"])
@pytest.mark.parametrize("field", OTHER)
@pytest.mark.parametrize("profile", profiles.NAMED.values(), ids=profiles.NAMED)
def test_two_cases_of_a_table_have_different_rows(
    profile: Profile, field: str, *, measured: bool
) -> None:
    """In the columns of every family, whichever of a release's results a page declares."""
    one, other = rows(profile, *pair(field, measured=measured))
    assert one != other


@pytest.mark.parametrize("field", OTHER)
@pytest.mark.parametrize("said", FRAMEWORKS.values(), ids=FRAMEWORKS)
def test_two_cases_of_a_release_have_different_rows(said: Fields, field: str) -> None:
    """On its page, with a tab for each system or model, and where it is published."""
    [release] = release_pages(pair(field, **said))
    for shown in (
        on_site(release, "system"),
        on_site(release, "model"),
        as_text(release, "myst"),
        as_text(release, "markdown"),
    ):
        one, other = shown
        assert one != other


@pytest.mark.parametrize("field", STATED)
@pytest.mark.parametrize("said", FRAMEWORKS.values(), ids=FRAMEWORKS)
def test_what_a_row_states_is_shown_where_it_has_no_other_beside_it(
    said: Fields, field: str
) -> None:
    silent = published(**{**SILENT, **said, "model_tflops_per_sec_per_gpu": None})
    stated = silent.model_copy(update={field: STATED[field]})
    assert rows(of_results([silent]), silent) != rows(of_results([stated]), stated)


def test_one_precision_of_all_rows_stands_once_above_a_table_whose_family_names_none() -> None:
    """The columns stay those of the family; rows without a precision are not said to have it."""
    bf16, fp8, silent = (published(precision=it, raw={}) for it in ("bf16", "fp8_mx", None))
    assert ["Precision: BF16", "Precision: BF16"] == [row[0] for row in rows(DFM, bf16, bf16)]
    assert [["WAN 2.1 14B", "BF16"], ["WAN 2.1 14B", "FP8-MX"], ["WAN 2.1 14B", "–"]] == [
        row[:2] for row in rows(DFM, bf16, fp8, silent)
    ]
    assert ["WAN 2.1 14B", "32"] == rows(DFM, silent)[0][:2]


FIGURES = ("model_tflops_per_sec_per_gpu", "step_time_s", "mfu")
HEADS = {
    "dfm": "## Pre-training\n\n### System: DGX-GB300\n",
    "nemo": "## Pre-training\n\n### System: DGX-H100, Precision: BF16\n",
}
TABLES = {
    "dfm": [
        "Model|Precision|#-GPUs|GBS|Sequence Length|TP|Step Time (s)|Model TFLOP / sec / GPU|MFU",
        "WAN 2.1 14B|BF16|64|64|37440|2|30.3|230|9.2%",
        "WAN 2.1 14B|FP8|64|64|37440|2|20.3|343|6.9%",
    ],
    "nemo": [
        "Model|#-GPUs|GBS|LBS|Sequence Length|TP|DP|SP|ETP|Kernels|Model TFLOP / sec / GPU",
        "LLAMA3-8B|8|128|1|8192|1|8|0|1|TE|490",
        "LLAMA3-8B|8|128|1|8192|1|8|0|1|TE + CUDA graphs|510",
        "LLAMA3-8B|8|128|1|8192|1|8|0|1||469",
        "LLAMA3-8B|8|128|1|8192|1|8|1|1||471",
        "LLAMA3-8B|8|128|2|8192|1|8|0|1||473",
        "LLAMA3-8B|8|128|1|8192|1|8|0|2||475",
    ],
}  # fmt: skip


@pytest.mark.parametrize("framework", TABLES)
def test_rows_that_a_page_tells_apart_are_published_so_that_they_read_back(
    tmp_path: Path, framework: str
) -> None:
    """`perfdb ingest` rejects two rows of one case with other figures."""
    head, *body = TABLES[framework]
    lines = [head, re.sub(r"[^|]+", "---", head), *body]
    text = "\n".join((HEADS[framework], *(f"| {line} |" for line in lines)))
    page, url = tmp_path / "page.md", store_url(str(tmp_path / "store.sqlite"))
    page.write_text(f"---\nperfdb:\n  framework: {framework}\n  release: '25.11'\n---\n{text}\n")
    ingest.ingest([page], url, ingest.Options())
    [release] = release_pages(read.stored(url).results)
    assert len(body) == len(release.results)
    for style in STYLES:
        again = reader.read("again.md", plain.page(release, style), PageContext())
        assert () == again.problems
        assert [
            (one.case_key, one.model_tflops_per_sec_per_gpu, one.step_time_s, one.mfu)
            for one in release.results
        ] == [(it.case.key, *map(vars(it.figures).get, FIGURES)) for it in again.results]


def compared(before: Sequence[Compared], after: Sequence[Compared]) -> tuple[list[str], list[str]]:
    """What each bar of a comparison is of, and the best and the worst change of a card."""
    found = comparison(before, after)
    ends: Fields = {"framework": "nemo", "before": "25.04", "after": "25.07", "is_newest": True}
    pair = ReleasePair(**ends, comparison=found)
    [desc] = soup(changes.matched(pair, address).text).select("svg desc")
    contents = Contents(results=(result(framework="nemo", release="25.07"),), pairs=(pair,))
    card = soup(overview.html(overview.of_contents(contents), address).text).select(".perf-since p")
    said = [line.get_text() for line in card if line.get_text().startswith(("best", "worst"))]
    bars = re.findall(r"(LLAMA3-8B.*?): [+−]", desc.get_text())
    return bars, [line.partition(", ")[2] for line in said]


def of_cases(tokens: float, other: float, **said: object) -> list[Compared]:
    """Two rows of one work whose cases differ in what is said of the other."""
    return [printed(tokens, case_key="1"), printed(other, case_key="2", **said)]


@pytest.mark.parametrize("field", CONFIGURATION_FIELDS)
def test_changes_of_two_cases_have_different_names(field: str) -> None:
    """One that got faster, one that got slower, and the best of each where it differs."""
    said = {field: OTHER[field]}
    bars, extremes = compared(of_cases(1000, 1010, **said), of_cases(1100, 900, **said))
    assert 3 == len(set(bars))
    assert 2 == len(set(extremes))


def test_changes_are_named_by_what_not_all_of_the_same_work_have() -> None:
    """Whose figures they are, and their layouts; what is alone keeps the name of its work."""
    work = "LLAMA3-8B · DGX-H100 · BF16 · 8 GPUs"
    parallel: Fields = {"tensor_parallel": 2, "variant": "fsdp"}
    before, after = of_cases(1000, 900, **parallel), of_cases(1100, 880, **parallel)
    bars, extremes = compared(before, after)
    assert [f"{work} · TP 1", f"{work} · TP 2, variant fsdp"] == bars
    assert ["TP 1", "TP 2, variant fsdp"] == [line.rpartition(" · ")[2] for line in extremes]
    bars, extremes = compared([before[0], at(4.0)], [after[0], at(4.4)])
    assert [f"{work} · published", f"{work} · measured"] == bars
    assert ["published", "measured"] == [line.rpartition(" · ")[2] for line in extremes]
    bars, [only] = compared(before[:1], after[:1])
    assert ([work], "GBS 128") == (bars, only.rpartition(" · ")[2])
