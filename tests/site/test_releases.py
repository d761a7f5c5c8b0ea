"""The lists of releases: in which order they stand, and what is said beside their names."""

import re
from datetime import date

import pytest

from perfdb.site import addresses, headline, overview, releases, systems
from perfdb.site.contents import Contents
from perfdb.site.data import Result
from perfdb.site.overview import of_contents
from perfdb.site.pages import all_pages
from perfdb.site.releases import release_pages
from perfdb.site.rows import row_id
from perfdb.site.subjects import Entries
from tests.site.samples import address, published, result, soup


def test_the_newest_release_of_a_framework_comes_first() -> None:
    pages = release_pages([result(release=version) for version in ("0.9.1", "0.16.0", None)])
    assert ["0.16.0", "0.9.1", None] == [page.release for page in pages]


def test_a_rolling_branch_is_not_the_newest_release_and_stands_first() -> None:
    """main has no number: it is the newest only where nothing has one."""
    versions = ("25.04", "main", None, "25.11")
    pages = release_pages([result(release=version) for version in versions])
    assert ["main", "25.11", "25.04", None] == [page.release for page in pages]
    cards = of_contents(Contents(results=tuple(pages[0].results + pages[1].results))).cards
    assert ["25.11"] == [card.release for card in cards]
    made = all_pages(Contents(results=tuple(map(one_of, versions))))
    [data] = [page.data for page in made if page.name == addresses.ARCHIVE]
    assert isinstance(data, releases.ReleaseList)
    shown = releases.archive(data, 0, address).text
    assert "main</a><small>, rolling</small>" in shown
    assert "25.11</a><small>, newest</small>" in shown


def test_the_newest_of_builds_that_a_hash_tells_apart_is_the_last_of_them() -> None:
    given = (result(release="1.0+c4d5e6f"), result(release="1.0+1a2b3c4", build=1))
    [data] = [it.data for it in all_pages(Contents(results=given)) if it.name == addresses.ARCHIVE]
    assert isinstance(data, releases.ReleaseList)
    assert "1.0+1a2b3c4</a><small>, newest</small>" in releases.archive(data, 0, address).text


def one_of(version: str | None) -> Result:
    return result(release=version)


def test_what_was_run_without_a_gpu_comes_last_in_every_list_and_says_so() -> None:
    """AutoModel's trial would be the first by its name; a release of a trial is none on GPUs."""
    trial = result(framework="automodel", system="cpu", num_gpus=1)
    beside = result(framework="nemo", release="25.04", system="cpu", num_gpus=1)
    given = (trial, published(), beside, result(framework="nemo", release="25.02"))
    made = {page.name: page for page in all_pages(Contents(results=given))}
    names = ["NeMo DFM", "NeMo Framework", "NeMo AutoModel"]
    for name, listed in (
        (addresses.PERFORMANCE, releases.release_list),
        (addresses.ARCHIVE, releases.archive),
    ):
        page = made[name]
        assert names == re.findall("^## (.*)$", page.text or "", re.MULTILINE)
        assert isinstance(page.data, releases.ReleaseList)
        shown = [listed(page.data, number, address).text for number in range(3)]
        assert [0, 1, 1] == [text.count("a trial without a GPU</small>") for text in shown]


def test_a_trial_without_a_gpu_is_not_the_newest_release_and_stands_last() -> None:
    """0.16.1 was tried on a laptop; where a framework has nothing else, that is its newest."""
    trial = result(release="0.16.1", system="cpu", num_gpus=1, model_tflops_per_sec_per_gpu=0.006)
    others = (result(release="0.15.0"), result())
    contents = Contents(results=(trial, *others))
    assert ["0.16.0", "0.15.0", "0.16.1"] == [it.release for it in release_pages(contents.results)]
    [card] = of_contents(contents).cards
    assert ("0.16.0", [1665.6]) == (
        card.release,
        [one.model_tflops_per_sec_per_gpu for one in card.best],
    )
    [data] = [page.data for page in all_pages(contents) if page.name == addresses.ARCHIVE]
    assert isinstance(data, releases.ReleaseList)
    shown = releases.archive(data, 0, address).text
    assert "0.16.0</a><small>, newest</small>" in shown
    assert "0.16.1</a><small>, a trial without a GPU</small>" in shown
    [alone] = of_contents(Contents(results=(trial,))).cards
    assert "0.16.1" == alone.release


def test_versions_are_sorted_as_versions_and_not_as_numbers() -> None:
    """A script sorts 0.10 as the number that it is; as words, 0.9 comes before 0.10."""
    contents = Contents(results=(one_of("0.9"), one_of("0.10")))
    [data] = [page.data for page in all_pages(contents) if page.name == addresses.PERFORMANCE]
    assert isinstance(data, releases.ReleaseList)
    rows = soup(releases.release_list(data, 0, address).text).select("tbody th")
    assert ["Megatron-Core 0.10", "Megatron-Core 0.9"] == [row["data-sort"] for row in rows]


@pytest.mark.parametrize("given", [(), (result(),)], ids=["empty", "results"])
def test_other_pages_refer_to_the_list_of_releases_by_its_label(given: tuple[Result, ...]) -> None:
    made = {page.name: page.text for page in all_pages(Contents(results=given))}
    assert "\n(ref-performance)=\n# Performance\n" in (made[addresses.PERFORMANCE] or "")


def rated(tflops: float | None, **changed: object) -> Result:
    return result(model_tflops_per_sec_per_gpu=tflops, **changed)


LORA = rated(423, task="lora", num_gpus=1)
WORK = "TFLOP/s/GPU: Llama 3 8B, Pre-training, 8 GPUs, BF16 on DGX-H100"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((LORA, rated(389)), f"389.00 {WORK}"),
        ((rated(500, system="dgx-b200", task="lora"), rated(389)), f"389.00 {WORK}"),
        ((LORA, rated(None)), "423.00 TFLOP/s/GPU: Llama 3 8B, LoRA, 1 GPU, BF16 on DGX-H100"),
        ((rated(None),), ""),
    ],
)
def test_the_headline_is_of_pre_training_where_it_states_any(
    given: tuple[Result, ...], said: str
) -> None:
    """A fine-tuning figure on one GPU is no headline of a release that states one of 64."""
    made = all_pages(Contents(results=given))
    [data] = [page.data for page in made if page.name == addresses.PERFORMANCE]
    assert isinstance(data, releases.ReleaseList)
    shown = [one.highest for one in data.frameworks[0]]
    assert [said] == [f"{it.figure} {it.work}" if it else "" for it in shown]


def test_a_headline_leads_to_its_row_on_the_page_of_its_release() -> None:
    """On the landing page, in the list of releases and in that of systems."""
    top = rated(389, case_key="top")
    contents = Contents(results=(rated(123, case_key="other"), top))
    data = {page.name: page.data for page in all_pages(contents)}
    listed, on = data[addresses.PERFORMANCE], data[addresses.SYSTEMS]
    assert isinstance(listed, releases.ReleaseList)
    assert isinstance(on, Entries)
    for made in (
        overview.html(of_contents(contents), address),
        releases.release_list(listed, 0, address),
        systems.index(on, address),
    ):
        [link] = [one for one in soup(made.text).select("a") if "389.00" == one.get_text()]
        assert f"../performance/megatron-core/0.16.0.html#{row_id(top)}" == link["href"]


def test_headlines_are_sorted_by_their_figures_and_not_by_their_digits() -> None:
    """1,665.60 is more than 389.00, and '1' is before '3'."""
    given = Contents(
        results=(rated(389, release="0.15.0"), rated(1665.6), rated(None, release="0.9"))
    )
    [data] = [page.data for page in all_pages(given) if page.name == addresses.PERFORMANCE]
    assert isinstance(data, releases.ReleaseList)
    last = soup(releases.release_list(data, 0, address).text).select("td:last-child")
    assert ["1665.6", "389.0", None] == [cell.get("data-sort") for cell in last]


def test_each_system_has_a_headline_of_its_own() -> None:
    """One that was fine-tuned on alone has that."""
    given = (LORA, rated(389), rated(500, system="dgx-b200", task="lora"))
    assert [("dgx-h100", 389), ("dgx-b200", 500)] == [
        (one.system, one.model_tflops_per_sec_per_gpu) for one in headline.of_systems(given)
    ]


@pytest.mark.parametrize(
    ("given", "day"),
    [
        ((published(release="1", published_on=date(2026, 4, 17)),), "2026-04-17"),
        ((published(release="1"),), "–"),
        ((result(release="1"),), "2026-01-02"),
    ],
)
def test_a_release_has_the_day_of_its_newest_page_or_run(
    given: tuple[Result, ...], day: str
) -> None:
    for page in all_pages(Contents(results=given)):
        if isinstance(page.data, releases.ReleaseList):
            cells = soup(releases.archive(page.data, 0, address).text).select("tbody td")
            assert day == cells[0].get_text()


def test_the_archive_says_where_withdrawn_releases_are() -> None:
    made = all_pages(Contents(results=(result(),)))
    [text] = [page.text for page in made if page.name == addresses.ARCHIVE]
    assert "withdrawn ones are in the [changelog of the data](/performance/changelog.md)" in (
        text or ""
    )


def test_a_container_that_not_all_rows_state_is_told_with_how_many_do() -> None:
    def said(*containers: str | None) -> str:
        given = [result(container=one, num_gpus=8 + n) for n, one in enumerate(containers)]
        [page] = release_pages(given)
        return soup(releases.head(page, address).text).get_text()

    assert "Container: nemo:1\nMeasured" in said("nemo:1", "nemo:1")
    assert "Container: nemo:1 (1 of 2 rows)\nMeasured" in said("nemo:1", None)
    assert "Container: nemo:1 (1 of 2 rows), nemo:2 (1 of 2 rows)" in said("nemo:1", "nemo:2")


def test_measured_rows_stand_by_model_precision_and_size_behind_the_published_ones() -> None:
    """The store has them by the hash of the case, which says nothing to a reader."""
    same = {"framework": "megatron-core", "release": "0.16.0", "system": "dgx-h100"}
    printed = [published(**same, variant=None, source_line=line) for line in (9, 8)]
    works = (("70B", 64, 1), ("8B", 256, 2), ("8B", 256, 1), ("8B", 64, 4))
    measured = [
        result(model_title=f"Llama 3 {size}", num_gpus=gpus, tensor_parallel=tp)
        for size, gpus, tp in works
    ]
    [page] = release_pages([*measured, *printed])
    assert (8, 9) == tuple(one.source_line for one in page.results[:2])
    assert tuple(reversed(measured)) == page.results[2:]
