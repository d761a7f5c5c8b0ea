"""The pages of models and systems: every result in force, the best as bars, what is known."""

from bs4 import BeautifulSoup

from perfdb.audit import Finding, Severity
from perfdb.metrics import METRICS
from perfdb.site import bests, findings, models, subjects, systems
from perfdb.site.contents import Contents
from perfdb.site.data import Audited, Flag, Result
from perfdb.site.history import works_of
from perfdb.site.models import ModelPage
from perfdb.site.subjects import Entries
from perfdb.site.systems import SystemPage
from tests.site.samples import address, published, result

FINDING: dict[str, object] = {
    "rule": "mfu",
    "fields": ("mfu",),
    "expected": "43 %",
    "found": "48 %",
    "message": "it is wrong",
    "suggestion": None,
    "model": "llama3-8b",
    "system": "dgx-h100",
    "release": "0.16.0",
    "source": "page.md",
    "source_line": 1,
    "framework": "megatron-core",
}


def soup(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


def model_page(*results: Result, audited: tuple[Audited, ...] = ()) -> ModelPage:
    pages = models.KIND.pages(Contents(results=results, audited=audited))
    [page] = [page.data for page in pages if isinstance(page.data, ModelPage)]
    return page


def system_page(*results: Result) -> SystemPage:
    pages = systems.KIND.pages(Contents(results=results))
    [page] = [page.data for page in pages if isinstance(page.data, SystemPage)]
    return page


def test_a_models_page_has_every_result_of_it_the_newest_release_first() -> None:
    page = model_page(result(release="0.9.1"), result(), result(task="sft"))
    assert [("pretrain", ["0.16.0", "0.9.1"]), ("sft", ["0.16.0"])] == [
        (task.task, [one.release for one in task.results]) for task in page.tasks
    ]
    links = [str(it["href"]) for it in soup(models.results(page, 0, address).text).select("td a")]
    assert "../performance/megatron-core/0.9.1.html?system=dgx-h100" in links


def test_the_shape_is_that_of_the_published_configuration() -> None:
    """Meta's config.json of Llama 3 8B, and the 8.03 billion that its model card states."""
    made = soup(models.shape(model_page(result()), address).text)
    facts = {row.th.text: row.td.text for row in made.select(".perf-facts tr") if row.th and row.td}
    assert ("32", "4,096", "8") == (
        facts["Layers"],
        facts["Hidden size"],
        facts["Key/value heads"],
    )
    assert facts["Parameters"].startswith("8.030 billion")


def test_a_token_costs_what_each_convention_counts() -> None:
    """6 × 7.504 = 45.03 GFLOP through matrices; attention adds 6 × 32 layers × 2 × 4096 × 8192 =
    12.88, or half of it where the mask is counted."""
    made = soup(models.shape(model_page(result()), address).text)
    rows = [[cell.text for cell in row.select("th, td")] for row in made.select("table.perf tr")]
    counts = {row[0]: row[1] for row in rows}
    assert "at 8,192" == rows[0][1]
    assert ("51.47", "57.91") == (counts["causal"], counts["full"])


def test_a_model_that_the_catalogue_lacks_says_so() -> None:
    page = model_page(result(model="gpt-9", model_title="GPT-9"))
    assert "The catalogue has no such model" in models.shape(page, address).text


def test_the_chart_has_the_best_of_the_newest_releases_only() -> None:
    page = model_page(
        result(release="0.9.1", tokens_per_sec_per_gpu=99_999.0),
        result(),
        result(system="dgx-b200", system_title="DGX-B200", tokens_per_sec_per_gpu=50_000.0),
        result(tokens_per_sec_per_gpu=1.0, tensor_parallel=8),
    )
    title = soup(models.results(page, 0, address).text).select_one("svg desc")
    assert title is not None
    assert title.get_text() == (
        "Tokens/sec/GPU. DGX-B200 · Megatron-Core 0.16.0 · BF16 · 8 GPUs: 50,000; "
        "DGX-H100 · Megatron-Core 0.16.0 · BF16 · 8 GPUs: 32,364."
    )


def test_a_row_with_open_errors_is_no_bar_and_is_counted() -> None:
    """5,611 contradicts itself; the screen reader hears the same as the eye sees."""
    wrong = Flag(said="1 error", kind="error", anchor="result-0")
    page = model_page(
        result(),
        result(system="dgx-gb200", system_title="DGX-GB200", tokens_per_sec_per_gpu=3238.0),
        result(
            system="dgx-b200",
            system_title="DGX-B200",
            tokens_per_sec_per_gpu=5611.0,
            flag=wrong,
        ),
    )
    made = soup(models.results(page, 0, address).text)
    assert made.svg is not None
    assert "DGX-GB200" in made.svg.get_text()
    assert "DGX-B200" not in made.svg.get_text()
    note = made.select_one(".perf-note")
    assert note is not None
    assert "1 row with open errors is left out." in note.get_text()


def test_bars_say_which_convention_they_follow_where_it_is_not_the_same() -> None:
    """Of one convention nothing has to be said."""
    alike = (result(flops_convention="causal"), result(model="b", flops_convention="causal"))
    other = result(model="c", model_title="C", flops_convention="full")
    labels = []
    for results in (alike, (*alike, other, result(model="d", model_title="D"))):
        page = system_page(*(it.model_copy(update={"model_title": it.model}) for it in results))
        desc = soup(systems.results(page, 0, address).text).select_one("svg desc")
        assert desc is not None
        labels.append(desc.get_text())
    assert "causal" not in labels[0]
    assert "b · causal · Megatron-Core" in labels[1]
    assert "c · full · Megatron-Core" in labels[1]
    assert "d · Megatron-Core" in labels[1]


def test_a_chart_of_one_bar_is_no_chart() -> None:
    assert soup(models.results(model_page(result()), 0, address).text).svg is None


def test_the_same_work_over_releases_is_one_line_with_the_best_of_each() -> None:
    results = [
        result(workload_key="w", release=release, tokens_per_sec_per_gpu=rate)
        for release, rate in (("0.9", 1.0), ("0.9", 2.0), ("0.10", 3.0))
    ]
    results += [
        result(workload_key="w", release="main"),
        result(
            workload_key="w",
            release="0.11",
            flag=Flag(said="1 error", kind="error", anchor="result-0"),
        ),
    ]
    other = result(workload_key="x", release="0.9")
    [work] = works_of([*results, other], METRICS["tokens_per_sec_per_gpu"])
    assert {"0.9": 2.0, "0.10": 3.0} == {
        name: one.tokens_per_sec_per_gpu for name, one in work.items()
    }
    made = soup(models.results(model_page(*results), 0, address).text)
    heads = [head.get_text() for head in made.select("table")[0].select("thead th")]
    assert ["System", "Work", "0.9", "0.10"] == heads
    note = made.select_one(".perf-note")
    assert note is not None
    assert "main, which moves on, has no place among them." in note.get_text()
    assert "1 row with open errors is left out." in note.get_text()


def test_a_models_page_leads_to_its_pages_of_scaling() -> None:
    """The same work on 8 and on 16 GPUs is a series."""
    page = model_page(result(), result(num_gpus=16, global_batch_size=256))
    [link] = soup(models.scaling(page, address).text).select("li a")
    assert "Megatron-Core 0.16.0 on DGX-H100" == link.get_text()
    assert "../scaling/megatron-core/0.16.0/dgx-h100.html#llama3-8b" == link["href"]


def test_a_systems_page_leads_to_its_pages_of_scaling() -> None:
    page = system_page(result(), result(num_gpus=16, global_batch_size=256))
    [link] = soup(subjects.scaling(page, address).text).select("li a")
    assert "Megatron-Core 0.16.0" == link.get_text()
    assert "../scaling/megatron-core/0.16.0/dgx-h100.html" == link["href"]


def test_the_list_of_models_has_the_best_rate_on_each_system() -> None:
    """In the order of the catalogue, and of no row with open errors."""
    wrong = Flag(said="1 error", kind="error", anchor="result-0")
    given = (
        result(system="dgx-b200", system_title="DGX-B200", tokens_per_sec_per_gpu=50_000.0),
        result(),
        result(release="0.9.1", tokens_per_sec_per_gpu=1.0),
        result(release="0.9.1", tokens_per_sec_per_gpu=99_999.0, flag=wrong),
    )
    pages = models.KIND.pages(Contents(results=given))
    [index] = [page.data for page in pages if isinstance(page.data, Entries)]
    assert "Pre-training: DGX-H100 32,364 · DGX-B200 50,000" in models.index(index, address).text


def test_a_figure_that_is_withheld_or_unknown_is_in_no_chart() -> None:
    assert bests.figure(result(withheld="the run was cut off"), "mfu") is None
    assert bests.figure(result(mfu=None), "mfu") is None
    assert "tokens_per_sec_per_gpu" == bests.metric_for([result()], bests.OF_A_MODEL).name
    assert "model_tflops_per_sec_per_gpu" == bests.metric_for([published()], bests.OF_A_MODEL).name


def test_a_models_findings_lead_to_their_entries() -> None:
    severities = (Severity.ERROR, Severity.INFO)
    found = [Finding.model_validate(FINDING | {"severity": one}) for one in severities]
    audited = tuple(
        findings.audited(result(), key * 12, [it]) for key, it in zip("ab", found, strict=True)
    )
    made = soup(models.audited(model_page(result(), audited=audited), address).text)
    [entry] = made.select("li")
    assert "it is wrong" in entry.get_text()
    assert "../performance/audit.html#result-aaaaaaaaaaaa" == str(entry.select("a")[0]["href"])
    assert "1 more" in made.get_text()


def test_a_systems_page_says_its_peaks_and_where_each_is_from() -> None:
    """NVIDIA's H100 datasheet prints 1,979 TFLOPS BF16 with sparsity, which is twice the dense."""
    made = soup(systems.specification(system_page(result()), address).text)
    rows = [[cell.text for cell in row.select("th, td")] for row in made.select("table.perf tr")]
    assert ["BF16", "989"] == rows[1][:2]
    assert "datasheet" in rows[1][2]


def test_a_systems_chart_compares_models_by_their_flops() -> None:
    page = system_page(result(), result(model="llama3-70b", model_title="Llama 3 70B"))
    made = soup(systems.results(page, 0, address).text)
    desc = made.select_one("svg desc")
    assert desc is not None
    assert desc.get_text().startswith("Model TFLOP/sec/GPU. Llama 3 70B")


def test_a_system_that_the_catalogue_lacks_says_so() -> None:
    page = system_page(result(system="abacus", system_title="Abacus"))
    assert "The catalogue has no such system" in systems.specification(page, address).text


def test_the_lists_count_results_releases_and_systems() -> None:
    contents = Contents(results=(result(), result(release="0.9.1", system="dgx-b200"), published()))
    [index] = [page.data for page in models.KIND.pages(contents) if page.name == "models/index"]
    assert isinstance(index, Entries)
    assert [("models/llama3-8b", 2, 2, 2, 2), ("models/wan2.1-14b", 1, 0, 1, 1)] == [
        (it.document, it.results, it.measured, it.releases, it.beside) for it in index.entries
    ]
    [listed] = [page.data for page in systems.KIND.pages(contents) if page.name == "systems/index"]
    assert isinstance(listed, Entries)
    assert ["systems/dgx-h100", "systems/dgx-b200", "systems/dgx-gb300"] == [
        it.document for it in listed.entries
    ]
