"""The pages of models and systems: every result in force, the best as bars, what is known."""

from perfdb.catalog import titles as system_titles
from perfdb.metrics import METRICS
from perfdb.record import Finding, Severity
from perfdb.site import findings, models, subjects, systems
from perfdb.site.contents import Contents
from perfdb.site.data import Flag
from perfdb.site.history import works_of
from perfdb.site.rows import row_id
from perfdb.site.subjects import Counts, Entries
from tests.site.samples import (
    address,
    finding,
    model_page,
    published,
    result,
    soup,
    system_page,
    words,
)

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


def test_a_models_page_has_every_result_of_it_the_newest_release_first() -> None:
    page = model_page(result(release="0.9.1"), result(), result(task="sft"))
    assert [("pretrain", ["0.16.0", "0.9.1"]), ("sft", ["0.16.0"])] == [
        (task.task, [one.release for one in task.results]) for task in page.tasks
    ]
    links = [str(it["href"]) for it in soup(models.results(page, 0, address).text).select("td a")]
    assert "../performance/megatron-core/0.9.1.html?system=dgx-h100" in links


def test_results_that_were_run_without_a_gpu_come_last() -> None:
    """Megatron-Core would stand before NeMo by its name."""
    page = model_page(result(system="cpu"), result(framework="nemo"))
    assert ["nemo", "megatron-core"] == [one.framework for one in page.tasks[0].results]


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


def test_a_small_models_parameters_are_said_in_millions() -> None:
    """A digit is worth more than the zeros before it; from a tenth of a billion on it is one."""
    for count, said in (
        (213_000, "0.213 million"),
        (99_900_000, "99.9 million"),
        (100_000_000, "0.1000 billion"),
    ):
        page = model_page(result()).model_copy(update={"parameters": count})
        facts = soup(models.shape(page, address).text).select_one(".perf-facts")
        assert facts is not None
        assert f"Parameters\n{said};" in facts.get_text()


def test_a_token_costs_what_each_convention_counts() -> None:
    """6 × 7.504 = 45.03 GFLOP through matrices; attention adds 6 × 32 layers × 2 × 4096 × 8192 =
    12.88, or half of it where the mask is counted."""
    made = soup(models.shape(model_page(result()), address).text)
    rows = [[cell.text for cell in row.select("th, td")] for row in made.select("table.perf tr")]
    counts = {name: row[1] for row in rows for name in row[0].split(", ")}
    assert "at 8,192" == rows[0][1]
    assert ("51.47", "57.91") == (counts["causal"], counts["full"])


def test_conventions_that_count_the_same_share_a_row() -> None:
    """They are the same where they are at every length, not at one of them."""
    counts = (("a", 1, 6e9), ("b", 1, 6e9), ("c", 1, 6e9), ("a", 2, 7e9), ("b", 2, 8e9))
    given = (*counts, ("c", 2, 7e9))
    flops = tuple(
        models.FlopsCount(convention=name, sequence_length=length, flops_per_token=count)
        for name, length, count in given
    )
    page = model_page(result()).model_copy(update={"flops": flops})
    made = soup(models.shape(page, address).text).select("table.perf tbody tr")
    assert [["a, c", "6.000", "7.000"], ["b", "6.000", "8.000"]] == [
        [cell.text for cell in row.select("th, td")] for row in made
    ]


def test_a_model_that_the_catalogue_lacks_says_so() -> None:
    page = model_page(result(model="gpt-9", model_title="GPT-9"))
    assert "The catalogue has no such model" in models.shape(page, address).text


def test_the_same_work_over_releases_is_one_line_with_the_best_of_each() -> None:
    first, second = "0.10+c4d5e6f", "0.10+1a2b3c4"
    figures = (("0.9", 0, 1.0), ("0.9", 0, 2.0), (first, 0, 3.0), (second, 1, 4.0))
    results = [
        result(workload_key="w", release=release, build=build, tokens_per_sec_per_gpu=rate)
        for release, build, rate in figures
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
    assert {"0.9": 2.0, first: 3.0, second: 4.0} == {
        name: one.tokens_per_sec_per_gpu for name, one in work.items()
    }
    made = soup(models.results(model_page(*results), 0, address).text)
    heads = [head.get_text() for head in made.select("table")[0].select("thead th")]
    assert ["System", "Work", "0.9", first, second] == heads
    note = made.select_one(".perf-note")
    assert note is not None
    assert "main, which moves on, has no place among them." in note.get_text()
    assert "1 row with open errors is left out." in note.get_text()


def test_lines_of_alike_work_say_in_what_it_differs_and_figures_lead_to_their_rows() -> None:
    """Of two sequence lengths and one batch the names have the length alone."""
    given = [
        result(workload_key=str(length), case_key=f"{release}-{length}", release=release,
               sequence_length=length)
        for length in (4096, 8192)
        for release in ("0.10", "0.9")
    ]  # fmt: skip
    made = soup(models.results(model_page(*given), 0, address).text)
    [said] = [one.get_text() for one in made.select("svg desc") if "by release" in one.get_text()]
    for length in ("4,096", "8,192"):
        assert f"DGX-H100 · BF16 · 8 GPUs · sequence {length}: 32,36" in said
    assert "GBS" not in said
    targets = [str(link["href"]) for link in made.select("table")[0].select("a.e")]
    assert [
        f"../performance/megatron-core/{one.release}.html#{row_id(one)}"
        for one in (given[1], given[0], given[3], given[2])
    ] == targets


def test_each_system_has_a_drawing_over_the_releases() -> None:
    """One of many rows leaves no other without."""
    given = [
        result(workload_key=f"{system}-{gpus}", release=release, system=system,
               system_title=system_titles.system(system), num_gpus=gpus)
        for system in ("dgx-h100", "dgx-b200")
        for gpus in range(1, 8 if system == "dgx-h100" else 2)
        for release in ("0.10", "0.9")
    ]  # fmt: skip
    made = soup(models.results(model_page(*given), 0, address).text)
    drawn = [one.get_text() for one in made.select("svg desc") if "by release" in one.get_text()]
    assert [(6, 0), (0, 1)] == [(it.count("DGX-H100 ·"), it.count("DGX-B200 ·")) for it in drawn]
    notes = " ".join(note.get_text() for note in made.select(".perf-note"))
    assert "The first 6 rows of each system are drawn, 7 of 8 in all." in notes


def test_each_rate_by_precision_leads_to_its_row_on_the_page_of_its_release() -> None:
    """The table of the model's page, which has the newest releases alone, calls it the same."""
    given = [
        result(workload_key="w", case_key=name, precision=name, tensor_parallel=place)
        for place, name in enumerate(("bf16", "fp8_cs", "nvfp4"), start=1)
    ]
    made = soup(models.results(model_page(*given), 0, address).text)
    titles = [head.get_text() for head in made.select("h3")]
    rate = METRICS["tokens_per_sec_per_gpu"].title
    assert [f"By precision: {rate}", "Results"] == titles
    compared, every = made.select("table")
    targets = [str(link["href"]) for link in compared.select("a.e")]
    page = "../performance/megatron-core/0.16.0.html"
    assert targets == [f"{page}#{row['id']}" for row in every.select("tbody tr")]
    ids = [str(one["id"]) for one in made.select("[id]")]
    assert len(ids) == len(set(ids))


def test_a_task_in_one_precision_has_no_block_of_precisions() -> None:
    page = model_page(result(), result(task="sft", precision="fp8_cs"))
    for number in range(2):
        assert [] == soup(models.results(page, number, address).text).select("h3")


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
    made = soup(models.index(index, address).text)
    heads = [head.get_text() for head in made.select("thead th")]
    assert ["Model", "Best tokens/s/GPU by system", "Results"] == heads[:3]
    cells = [cell.get_text() for cell in made.select("tbody tr > *")]
    best = "Pre-training: DGX-H100 32,364 in BF16 on 8 GPUs · DGX-B200 50,000 in BF16 on 8 GPUs"
    assert ["Llama 3 8B", best, "4"] == cells[:3]


def test_the_list_of_models_says_in_what_else_the_best_of_two_systems_differ() -> None:
    """A sequence of 2,048 on one and 8,192 on the other: not the systems alone are compared."""
    short = result(sequence_length=2048, tokens_per_sec_per_gpu=12_000.0)
    other = result(system="dgx-b200", system_title="DGX-B200", tokens_per_sec_per_gpu=11_000.0)
    pages = models.KIND.pages(
        Contents(results=(result(tokens_per_sec_per_gpu=9000.0), short, other))
    )
    [index] = [page.data for page in pages if isinstance(page.data, Entries)]
    best = (
        "DGX-H100 12,000 in BF16 on 8 GPUs, sequence 2,048 · "
        "DGX-B200 11,000 in BF16 on 8 GPUs, sequence 8,192"
    )
    assert best in models.index(index, address).text


def test_the_list_and_the_bars_are_of_the_same_releases() -> None:
    """The recipe's 132,396 tokens/s on 16 GPUs are 8,275 of each, NeMo 25.04 printed 7,915."""
    nemo: dict[str, object] = {"framework": "nemo", "precision": "fp8"}
    recipe = published(**nemo, release=None, num_gpus=16, tokens_per_sec=132396.0)
    newest = published(**nemo, release="25.04", num_gpus=64, tokens_per_sec_per_gpu=7915.0)
    other = newest.model_copy(update={"num_gpus": 128, "tokens_per_sec_per_gpu": 7000.0})
    for given, listed, lasting in (
        ((recipe, newest, other), "7,915 in FP8 on 64 GPUs", "NeMo Framework 25.04"),
        ((recipe, recipe.model_copy(update={"num_gpus": 32})), "8,275 (computed) in FP8", ""),
    ):
        pages = [page.data for page in models.KIND.pages(Contents(results=given))]
        [index] = [page for page in pages if isinstance(page, Entries)]
        assert f"DGX-GB300 {listed}" in models.index(index, address).text
        made = soup(models.results(model_page(*given), 0, address).text)
        [desc], [note] = made.select("svg desc"), made.select(".perf-note")
        bars = desc.get_text().split("; ")
        assert all((lasting or "(unattributed)") in bar for bar in bars)
        assert ("not drawn" in note.get_text()) == bool(lasting)
        assert not lasting or "1 result of an unattributed release is not" in note.get_text()


def test_a_models_findings_lead_to_their_entries() -> None:
    severities = (Severity.ERROR, Severity.INFO)
    found = [Finding.model_validate(FINDING | {"severity": one}) for one in severities]
    audited = tuple(
        findings.audited(result(), key * 12, [it]) for key, it in zip("ab", found, strict=True)
    )
    made = soup(models.audited(model_page(result(), audited=audited), address).text)
    [entry] = made.select("li")
    assert "it is wrong" in entry.get_text()
    assert "../performance/audit/megatron-core/0.16.0.html#result-aaaaaaaaaaaa" == str(
        entry.select("a")[0]["href"]
    )
    assert "1 more note of the audit, worth knowing before" in made.get_text()


def test_an_error_that_is_explained_stands_beside_what_is_only_worth_knowing() -> None:
    """As it does on the page of the audit, and as the mark of its row says."""
    notes = (finding("info"), finding(acknowledged="as it was run (A. Person, 2026-01-31)"))
    page = model_page(result(), audited=(findings.audited(result(), "a" * 12, notes),))
    [entry] = soup(models.audited(page, address).text).select("li")
    assert "explained" == words(entry.select_one(".perf-badge"))
    assert 0 == page.num_noted


def test_a_systems_page_says_its_peaks_and_where_each_is_from() -> None:
    """NVIDIA's H100 datasheet prints 1,979 TFLOPS BF16 with sparsity, which is twice the dense."""
    made = soup(systems.specification(system_page(result()), address).text)
    rows = [[cell.text for cell in row.select("th, td")] for row in made.select("table.perf tr")]
    assert ["BF16", "989"] == rows[1][:2]
    assert "datasheet" in rows[1][2]


def test_the_list_of_systems_says_the_peaks_the_memory_and_the_headline_of_each() -> None:
    """H100: 989 and 1,979 dense TFLOP/s in BF16 and FP8, 80 GB; B200: 2,250, 4,500, 9,000, 180."""
    b200 = {"system": "dgx-b200", "system_title": "DGX-B200"}
    given = (result(), result(release="0.9.1", model_tflops_per_sec_per_gpu=9999.0))
    contents = Contents(results=(*given, result(**b200, model_tflops_per_sec_per_gpu=None)))
    [index] = [page.data for page in systems.KIND.pages(contents) if page.name == "systems/index"]
    assert isinstance(index, Entries)
    rows = [
        [cell.get_text() for cell in row.select("th, td")]
        for row in soup(systems.index(index, address).text).select("tr")
    ]
    top = "1,665.60 TFLOP/s/GPU: Llama 3 8B, Pre-training, 8 GPUs, BF16, in Megatron-Core 0.16.0"
    assert [
        ["System", "Highest TFLOP/s", "BF16 peak", "FP8 peak", "FP4 peak", "Memory (GB)"],
        ["DGX-H100", top, "989", "1,979", "–", "80"],
        ["DGX-B200", "–", "2,250", "4,500", "9,000", "180"],
    ] == [row[:6] for row in rows]


def test_a_system_that_the_catalogue_lacks_says_so() -> None:
    page = system_page(result(system="abacus", system_title="Abacus"))
    assert "The catalogue has no such system" in systems.specification(page, address).text


def test_the_lists_count_results_releases_and_systems() -> None:
    contents = Contents(results=(result(), result(release="0.9.1", system="dgx-b200"), published()))
    [index] = [page.data for page in models.KIND.pages(contents) if page.name == "models/index"]
    assert isinstance(index, Entries)
    assert [
        ("models/llama3-8b", Counts(results=2, measured=2, releases=2, beside=2)),
        ("models/wan2.1-14b", Counts(results=1, measured=0, releases=1, beside=1)),
    ] == [(it.document, it.counts) for it in index.entries]
    [listed] = [page.data for page in systems.KIND.pages(contents) if page.name == "systems/index"]
    assert isinstance(listed, Entries)
    assert ["systems/dgx-h100", "systems/dgx-b200", "systems/dgx-gb300"] == [
        it.document for it in listed.entries
    ]
