"""The newest release against the one before: matches, verdicts, what only one of them has."""

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from sqlalchemy import URL

from perfdb.compare import Verdict, comparison, marked
from perfdb.record import Figures, Release
from perfdb.site import changes, overview, read
from perfdb.site.change_chart import signed
from perfdb.site.contents import Contents, ReleasePair
from perfdb.site.pairs import disagreement
from perfdb.site.rows import row_id
from tests.factories import TEN_STEPS, case, published, release, stored, write_run
from tests.site.samples import address, result


def rows(html: str) -> list[list[str]]:
    made = BeautifulSoup(html, "html.parser")
    return [
        [cell.get_text(" ", strip=True) for cell in row.find_all(["th", "td"])]
        for row in made.select("table tr")
    ]


@pytest.fixture
def contents(store: URL, tmp_path: Path) -> Contents:
    """Rows of NeMo 25.02, 25.04 and 25.07, and a run of Megatron-Core."""
    pages = [
        published(line, case=case(framework="nemo", **work), release=nemo(version), figures=figures)
        for version, line, work, figures in (
            ("25.02", 1, {}, rate(9000)),
            ("25.04", 2, {}, rate(10_000)),
            ("25.07", 3, {}, rate(10_500)),
            ("25.04", 4, {"num_gpus": 16}, rate(10_000)),
            ("25.07", 5, {"num_gpus": 16}, rate(9800)),
            ("25.04", 6, {"model": "llama3-70b"}, rate(1000)),
            ("25.07", 7, {"model": "mixtral-8x7b"}, rate(2000)),
        )
    ]
    for number, page in enumerate(pages):
        stored(store, page, page=f"page-{number}.md")
    stored(store, write_run(tmp_path, run_id="one"))
    return read.stored(store)


def nemo(version: str) -> Release:
    return release(version, framework="nemo")


def rate(tokens: float) -> Figures:
    return Figures(tokens_per_sec_per_gpu=tokens)


def pair_of(contents: Contents) -> ReleasePair:
    [pair] = [pair for pair in contents.pairs if pair.is_newest]
    return pair


def test_the_newest_release_is_compared_with_the_one_before_it(contents: Contents) -> None:
    pair = pair_of(contents)
    assert ("nemo", "25.04", "25.07") == (pair.framework, pair.before, pair.after)


def test_each_match_has_both_figures_the_change_and_the_verdict(contents: Contents) -> None:
    """10,500 ÷ 10,000 is 5 % more; 9,800 ÷ 10,000 is 2 % less."""
    head, *matches = rows(changes.matched(pair_of(contents), address).text)
    assert ["25.04 Tokens/s/GPU", "25.07 Tokens/s/GPU", "Change"] == head[2:5]
    assert [
        ["10,000", "9,800", "−2.0%", "–", "slower"],
        ["10,000", "10,500", "+5.0%", "–", "faster"],
    ] == [row[2:7] for row in matches]


def test_figures_have_the_digits_of_their_pages(store: URL) -> None:
    """3332.5 is not rounded to the even 3,332, and 3,400 has no decimals."""
    for number, (version, text) in enumerate((("25.04", "3332.5"), ("25.07", "3,400"))):
        raw = {"Tokens / sec / GPU": text}
        figures = rate(float(text.replace(",", "")))
        row = published(release=nemo(version), figures=figures, raw=raw)
        stored(store, row, page=f"{number}.md")
    _, match = rows(changes.matched(pair_of(read.stored(store)), address).text)
    assert ["3,332.5", "3,400"] == match[2:4]


def test_a_narrow_screen_has_the_figures_the_change_and_the_verdict_beside_the_model(
    contents: Contents,
) -> None:
    made = BeautifulSoup(changes.matched(pair_of(contents), address).text, "html.parser")
    near = [head.get_text() for head in made.select("thead th[data-falling]")]
    rates = [f"{release} Tokens/s/GPU" for release in ("25.04", "25.07")]
    assert [*rates, "Change", "B\u00a0is"] == near


def test_a_figure_has_a_column_of_names_where_it_is_not_the_same_in_all_rows(store: URL) -> None:
    """Two works with tokens/s/GPU and the step time; one of them alone, and it is in the head."""
    seconds = [Figures(step_time_s=it) for it in (10.0, 8.0)]
    timed = [("25.04", {"num_gpus": 16}, seconds[0]), ("25.07", {"num_gpus": 16}, seconds[1])]
    rated = [("25.04", {}, rate(9000)), ("25.07", {}, rate(9900))]
    [pair] = pairs_of(store, *rated, *timed)
    head, *matches = rows(changes.matched(pair, address).text)
    assert ["Figure", "25.04", "25.07"] == head[2:5]
    assert {"Step time (s)", "Tokens/s/GPU"} == {row[2] for row in matches}


def test_figures_lead_to_their_rows_on_the_pages_of_both_releases(contents: Contents) -> None:
    """Also those that only one of them has."""
    made = {page.name: page for page in changes.KIND.pages(contents)}
    pair = made["changes/nemo"].data
    assert isinstance(pair, ReleasePair)
    links = [
        str(link["href"])
        for part in (changes.matched(pair, address), changes.unmatched(pair, 0, address))
        for link in BeautifulSoup(part.text, "html.parser").select("a.e")
    ]
    rows = {
        f"../performance/nemo/{one.release}.html#{row_id(one)}": one for one in contents.results
    }
    assert [
        ("25.04", "llama3-8b", 16), ("25.07", "llama3-8b", 16), ("25.04", "llama3-8b", 8),
        ("25.07", "llama3-8b", 8), ("25.04", "llama3-70b", 8),
    ] == [(rows[it].release, rows[it].model, rows[it].num_gpus) for it in links]  # fmt: skip


def test_what_only_one_release_has_is_listed_by_release(contents: Contents) -> None:
    pair = pair_of(contents)
    models = [rows(changes.unmatched(pair, number, address).text)[1][0] for number in (0, 1)]
    assert ["Llama 3 70B", "Mixtral 8x7B"] == models


def test_the_chart_draws_changes_and_says_which_are_gains(contents: Contents) -> None:
    made = changes.matched(pair_of(contents), address).text
    assert "var(--perf-good" in made
    assert "var(--perf-bad" in made
    assert "The 2 changes are drawn" in made


def test_a_framework_of_one_release_says_that_there_is_nothing_to_compare(
    contents: Contents,
) -> None:
    [index] = [page for page in changes.KIND.pages(contents) if page.name == "changes/index"]
    assert isinstance(index.data, changes.ChangesIndex)
    assert ("Megatron-Core has one release: there is nothing to compare it with.",) == (
        index.data.alone
    )
    assert "Megatron-Core has one release" in changes.index(index.data, address).text


@pytest.mark.parametrize(
    ("releases", "why"),
    [
        ((("main", "dgx-h100"), ("dev", "dgx-h100")), "has rolling branches only, which have no"),
        ((("0.15.0", "dgx-h100"), ("0.16.0", "cpu")), "has one release that is not a trial"),
    ],
)
def test_a_framework_without_a_comparison_says_why(
    releases: tuple[tuple[str, str], ...], why: str
) -> None:
    """The second has two releases of which one was tried on a laptop: no work is in both."""
    results = tuple(result(release=version, system=system) for version, system in releases)
    index = next(iter(changes.KIND.pages(Contents(results=results)))).data
    assert isinstance(index, changes.ChangesIndex)
    [said] = index.alone
    assert f"Megatron-Core {why}" in said


def test_an_empty_list_says_what_is_missing() -> None:
    """A store of results whose release nobody named is not empty."""
    texts = [
        page.text
        for given in ((), (result(release=None),))
        for page in changes.KIND.pages(Contents(results=given))
    ]
    assert ["no-data" in (text or "") for text in texts] == [True, False]
    assert "no release with a version yet" in (texts[1] or "")


def test_people_read_display_names_and_never_the_names_of_the_store(contents: Contents) -> None:
    pair = pair_of(contents)
    made = changes.matched(pair, address).text + changes.unmatched(pair, 0, address).text
    text = BeautifulSoup(made, "html.parser").get_text(" ")
    assert "Pre-training · BF16 · 8 × DGX-H100" in text
    assert "Llama 3 8B · DGX-H100 · BF16 · 16 GPUs: −2.0%" in text
    assert not {"pretrain", "bf16"} & set(re.findall(r"[\w-]+", text))


def test_bars_of_several_tasks_say_which_they_are_of(store: URL) -> None:
    """Else those of the same model would seem to be alike."""
    works: list[tuple[str, dict[str, object], Figures]] = [
        (version, {"task": task}, rate(tokens))
        for task in ("sft", "lora")
        for version, tokens in (("25.04", 1000), ("25.07", 1100))
    ]
    [pair] = pairs_of(store, *works)
    desc = BeautifulSoup(changes.matched(pair, address).text, "html.parser").select_one("svg desc")
    assert desc is not None
    for task in ("SFT", "LoRA"):
        assert f"Llama 3 8B · {task} · DGX-H100 · BF16 · 8 GPUs: +10.0%" in desc.get_text()


def test_bars_of_two_sequence_lengths_say_theirs(store: URL) -> None:
    works: list[tuple[str, dict[str, object], Figures]] = [
        (version, {"sequence_length": length}, rate(tokens))
        for length in (4096, 8192)
        for version, tokens in (("25.04", 1000), ("25.07", 1100))
    ]
    [pair] = pairs_of(store, *works)
    desc = BeautifulSoup(changes.matched(pair, address).text, "html.parser").select_one("svg desc")
    assert desc is not None
    for length in ("4,096", "8,192"):
        assert (
            f"Llama 3 8B · DGX-H100 · BF16 · 8 GPUs · sequence {length}: +10.0%" in desc.get_text()
        )


def test_bars_of_a_system_without_gpus_count_processes(store: URL) -> None:
    for number, (version, tokens) in enumerate((("25.04", 100), ("25.07", 200))):
        cpu = case(framework="nemo", system="cpu", num_gpus=2)
        page = published(case=cpu, release=nemo(version), figures=rate(tokens))
        stored(store, page, page=f"page-{number}.md")
    made = changes.matched(pair_of(read.stored(store)), address).text
    assert "2 processes: +100.0%" in made


def test_a_comparison_of_runs_has_an_interval(store: URL, tmp_path: Path) -> None:
    """Step times a fifth apart: more than ten per cent of the spread of the steps."""
    slower = [time * 1.2 for time in TEN_STEPS]
    stored(
        store,
        *(
            write_run(tmp_path, run_id=f"{version}-{n}", release=release(version), step_times=times)
            for version, times in (("0.9.1", slower), ("0.16.0", TEN_STEPS))
            for n in range(3)
        ),
    )
    [match] = pair_of(read.stored(store)).comparison.matched
    assert Verdict.FASTER is match.judgement.verdict
    assert match.judgement.low is not None


def test_releases_that_share_no_work_say_why(store: URL) -> None:
    for version, system in (("25.04", "dgx-h100"), ("25.07", "dgx-b200")):
        row = published(case=case(framework="nemo", system=system), release=nemo(version))
        stored(store, row, page=f"{version}.md")
    pair = pair_of(read.stored(store))
    assert "different systems (DGX-H100 / DGX-B200)" in changes.head(pair, address).text
    [_, page] = list(changes.KIND.pages(Contents(results=(result(),), pairs=(pair,))))
    assert page.text is not None
    assert "changes-matched" not in page.text


def pairs_of(store: URL, *rows: tuple[str, dict[str, object], Figures]) -> tuple[ReleasePair, ...]:
    """The comparisons of a store of rows: the release, the work, the figures."""
    for number, (version, work, figures) in enumerate(rows):
        row = published(case=case(framework="nemo", **work), release=nemo(version), figures=figures)
        stored(store, row, page=f"page-{number}.md")
    return read.stored(store).pairs


def ends(pairs: tuple[ReleasePair, ...]) -> list[tuple[str, str]]:
    return [(pair.before, pair.after) for pair in pairs]


def test_a_release_that_shares_no_work_is_skipped_and_the_page_says_why(store: URL) -> None:
    """25.07 has no B200 row in 25.04 to stand against; 25.02 has."""
    b200: dict[str, object] = {"system": "dgx-b200"}
    found = pairs_of(
        store, ("25.02", b200, rate(1)), ("25.04", {}, rate(2)), ("25.07", b200, rate(3))
    )
    assert [("25.02", "25.07")] == ends(found)
    assert [False] == [not pair.is_newest for pair in found]
    text = BeautifulSoup(changes.head(found[0], address).text, "html.parser").get_text(" ")
    assert "25.04 stands between them and is left out." in text
    assert "different systems (DGX-H100 / DGX-B200)" in text


def test_where_nothing_before_shares_work_no_older_release_stands_between(store: URL) -> None:
    """25.02 is older than both 25.04 and 25.07."""
    pair, *_ = pairs_of(
        store, ("25.02", {}, rate(1)), ("25.04", {}, rate(2)), ("25.07", {"num_gpus": 16}, rate(3))
    )
    assert ("25.04", "25.07") == (pair.before, pair.after)
    assert "left out" not in changes.head(pair, address).text


def test_a_trial_without_a_gpu_takes_the_place_of_no_comparison(store: URL) -> None:
    """25.09 and 25.10 were tried on a laptop: these are compared, but neither is the newest."""
    cpu: dict[str, object] = {"system": "cpu", "num_gpus": 1}
    found = pairs_of(
        store, ("25.04", {}, rate(1)), ("25.05", cpu, rate(1)), ("25.07", {}, rate(2)),
        ("25.09", cpu, rate(3)), ("25.10", cpu, rate(4)),
    )  # fmt: skip
    assert [
        ("25.04", "25.07", "changes/nemo"),
        ("25.09", "25.10", "changes/nemo/25.10"),
        ("25.05", "25.09", "changes/nemo/25.09"),
    ] == [(pair.before, pair.after, pair.document) for pair in found]
    assert () == found[0].skipped
    [card] = overview.of_contents(read.stored(store)).cards
    assert card.since is not None
    assert ("25.07", "25.04") == (card.release, card.since.before)


def test_every_release_has_its_comparison_the_newest_first_and_five_at_most(store: URL) -> None:
    """Of seven releases the pairs of the last six are shown."""
    versions = ("25.01", "25.02", "25.03", "25.04", "25.05", "25.06", "25.10")
    found = pairs_of(store, *((version, {}, rate(9)) for version in versions))
    assert [
        ("25.06", "25.10"), ("25.05", "25.06"), ("25.04", "25.05"), ("25.03", "25.04"),
        ("25.02", "25.03"),
    ] == ends(found)  # fmt: skip
    assert ["changes/nemo", "changes/nemo/25.06"] == [pair.document for pair in found[:2]]


def test_a_rolling_branch_is_no_predecessor_and_is_compared_with_the_newest(store: URL) -> None:
    """main moves on: the newest release is that of the highest number."""
    found = pairs_of(store, *((version, {}, rate(9)) for version in ("25.04", "main", "25.07")))
    assert [("25.04", "25.07"), ("25.07", "main")] == ends(found)
    assert [True, False] == [pair.is_newest for pair in found]


def test_figures_that_disagree_are_told_on_the_landing_page_and_in_the_comparison(
    store: URL,
) -> None:
    """The same work takes the same FLOPs per token: 722 cannot become 72,000 at the same rate."""
    for version, tflops in (("25.04", 722), ("25.07", 72_000)):
        row = published(
            case=case(framework="nemo"),
            release=nemo(version),
            figures=Figures(tokens_per_sec_per_gpu=9000, model_tflops_per_sec_per_gpu=tflops),
            raw={"Model TFLOP / sec / GPU": f"{tflops:,}"},
        )
        stored(store, row, page=f"{version}.md")
    contents = read.stored(store)
    said = "tokens/s/GPU 9,000 → 9,000, TFLOP/s/GPU 722 → 72,000"
    assert said in changes.matched(pair_of(contents), address).text
    since = overview.html(overview.of_contents(contents), address).text
    assert "1 compared by tokens/s/GPU: 1 same" in since
    assert "TFLOP/s disagree in 1 of 1" in since
    assert said in since


def test_figures_that_differ_by_their_rounding_do_not_disagree(store: URL) -> None:
    """9,000 to 9,450 is 5 %, and so is 72.2 to 75.8 within a half of the last digits."""
    both = [Figures(tokens_per_sec_per_gpu=tokens, model_tflops_per_sec_per_gpu=tflops)
            for tokens, tflops in ((9000, 72.2), (9450, 75.8))]  # fmt: skip
    [pair] = pairs_of(store, ("25.04", {}, both[0]), ("25.07", {}, both[1]))
    assert [None] == [disagreement(match) for match in pair.comparison.matched]


def with_error(pair: ReleasePair, result_id: int) -> ReleasePair:
    """The comparison of the same results, of which one has an open error."""
    found = pair.comparison
    sides = (
        [*(match.a for match in found.matched), *found.only_a],
        [*(match.b for match in found.matched), *found.only_b],
    )
    of_a, of_b = (marked([it for one in some for it in one.results], {result_id}) for some in sides)
    return pair.model_copy(update={"comparison": comparison(of_a, of_b)})


def test_a_match_with_open_errors_is_marked_and_is_no_extreme(contents: Contents) -> None:
    """The best change rests on a figure that the audit calls wrong; the worst does not."""
    pair = pair_of(contents)
    [best] = [it for it in pair.comparison.matched if it.judgement.verdict is Verdict.FASTER]
    wrong = with_error(pair, best.b.shown.result_id)
    made = changes.matched(wrong, address).text
    assert 1 == made.count('not judged</span> <span class="perf-flag error">⚑ open errors</span>')
    assert 1 == made.count("A: published; B: published, ⚑ open errors")
    assert 1 == made.count("1 not judged (open errors): no bar.")
    desc = BeautifulSoup(made, "html.parser").select_one("svg desc")
    assert desc is not None
    assert "+5.0%" not in desc.get_text()
    of_one = Contents(results=contents.results, pairs=(wrong,))
    since = overview.html(overview.of_contents(of_one), address).text
    assert "best: +5.0%" not in since
    assert "worst: −2.0%" in since


def test_the_landing_page_names_the_best_the_worst_and_the_models(contents: Contents) -> None:
    made = BeautifulSoup(overview.html(overview.of_contents(contents), address).text, "html.parser")
    [since] = [it.get_text(" ", strip=True) for it in made.select(".perf-since")]
    assert "2 compared by tokens/s/GPU: 1 faster, 1 slower" in since
    assert "best: +5.0%" in since
    assert "worst: −2.0%" in since
    assert "new: Mixtral 8x7B" in since
    assert "no longer there: Llama 3 70B" in since


def test_a_larger_change_that_is_only_rounding_hides_no_best_one(store: URL) -> None:
    """1 and 2 are 1.5 to the rounding of both, so the same; 9,000 and 9,450 are not."""
    more: dict[str, object] = {"num_gpus": 16}
    pairs_of(
        store,
        ("25.04", {}, rate(1)),
        ("25.07", {}, rate(2)),
        ("25.04", more, rate(9000)),
        ("25.07", more, rate(9450)),
    )
    since = overview.html(overview.of_contents(read.stored(store)), address).text
    assert "2 compared by tokens/s/GPU: 1 faster, 1 same" in since
    assert "best: +5.0% tokens/s/GPU, Llama 3 8B" in since


def test_the_best_change_of_a_step_time_is_the_largest_fall(store: URL) -> None:
    """10 s to 8 s is 20 % less and the best; 10 s to 12 s is 20 % more and the worst."""
    seconds = [Figures(step_time_s=it) for it in (10.0, 8.0, 12.0)]
    more: dict[str, object] = {"num_gpus": 16}
    pairs_of(
        store,
        ("25.04", {}, seconds[0]),
        ("25.07", {}, seconds[1]),
        ("25.04", more, seconds[0]),
        ("25.07", more, seconds[2]),
    )
    since = overview.html(overview.of_contents(read.stored(store)), address).text
    assert "2 compared by step time: 1 faster, 1 slower" in since
    assert "best: −20.0% step time, Llama 3 8B" in since
    assert "worst: +20.0% step time, Llama 3 8B" in since


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0.05, "+5.0%"), (-0.0199, "−2.0%"), (0.0, "0.0%"), (-0.0001, "0.0%"), (None, "–")],
)
def test_a_change_has_a_sign_unless_it_rounds_to_nothing(fraction: float | None, text: str) -> None:
    assert text == signed(fraction)
