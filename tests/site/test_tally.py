"""The numbers of a comparison add up, wherever they stand, and rest on no figure that is wrong."""

import re
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from perfdb.compare import Verdict, comparison
from perfdb.record import Outcome
from perfdb.site import changes, overview
from perfdb.site.contents import Contents, ReleasePair
from perfdb.site.pairs import tally
from tests.factories import case
from tests.site.samples import address, result, soup, words
from tests.test_compare import printed

ENDS = {
    "faster": (100.0, 120.0),
    "slower": (100.0, 90.0),
    "same": (100.0, 100.0),
    "unknown": None,
    "failed": (100.0, None),
}
"""The figures before and after that a verdict follows from."""


def pair_of(*works: tuple[str, bool]) -> ReleasePair:
    """A comparison of works, of each its verdict and whether the audit calls a side wrong."""
    sides: tuple[list, list] = [], []
    for number, (verdict, is_wrong) in enumerate(works):
        its_case = case(framework="nemo", num_gpus=8 * (number + 1))
        for side, version in enumerate(("25.04", "25.07")):
            tokens = (ENDS[verdict] or (None, 100.0))[side]
            flops = {} if tokens else {"model_tflops_per_sec_per_gpu": None, "mfu": None}
            known = {"result_id": 2 * number + side, "release": version, "case": its_case}
            known["has_open_errors"] = is_wrong and side == number % 2
            if verdict == "failed" and side:
                known |= {"outcome": Outcome.OUT_OF_MEMORY, "withheld": "it was out of memory"}
            sides[side].append(printed(tokens, **known, **flops))
    found = comparison(*sides)
    ends = {"framework": "nemo", "before": "25.04", "after": "25.07", "is_newest": True}
    return ReleasePair(**ends, comparison=found)


def contents(pair: ReleasePair) -> Contents:
    return Contents(results=(result(framework="nemo", release="25.07"),), pairs=(pair,))


def landing(pair: ReleasePair) -> str:
    made = overview.html(overview.of_contents(contents(pair)), address)
    return words(soup(made.text).select_one(".perf-since"))


def index_row(pair: ReleasePair) -> dict[str, int]:
    page = next(iter(changes.KIND.pages(contents(pair)))).data
    assert isinstance(page, changes.ChangesIndex)
    made = soup(changes.index(page, address).text)
    heads = [words(one) for one in made.select("thead th")][3:]
    return dict(zip(heads, [int(words(one)) for one in made.select("tbody td")[2:]], strict=True))


def numbers(text: str) -> Counter[str]:
    """'35 compared: 4 faster, 31 same; 1 not judged' as counts by their words."""
    said = re.findall(r"(\d+) (compared|faster|slower|same|unknown|failed|not judged)\b", text)
    return Counter({word: int(count) for count, word in said})


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(ENDS)), st.booleans()), min_size=1, max_size=8))
def test_every_match_is_faster_slower_failed_same_unknown_or_not_judged(
    works: list[tuple[str, bool]],
) -> None:
    """In the list, the head, the table and on the landing page: the same numbers in each."""
    pair = pair_of(*works)
    expected = Counter(
        "not judged" if wrong and verdict != "failed" else verdict for verdict, wrong in works
    )
    table = soup(changes.matched(pair, address).text)
    badges = [words(one) for one in table.select("tbody .perf-badge")]
    assert expected == Counter(badge.partition(":")[0] for badge in badges)
    assert expected["failed"] == badges.count("failed: out of memory")
    compared = len(works) - expected["not judged"]
    if note := table.select_one(".perf-note"):
        drawn = re.findall(r"(\d+) (?:changes? (?:is|are) drawn|more)", words(note))
        assert compared == sum(map(int, drawn))
        assert expected["not judged"] == numbers(words(note))["not judged"]
    for text in (words(soup(changes.head(pair, address).text).select_one("strong")), landing(pair)):
        assert expected + Counter(compared=compared) == +numbers(text)
    row = index_row(pair)
    assert len(works) == row["Matched"] == sum(row[name] for name in Verdict)
    assert expected == Counter({name: row[name] for name in expected})


def test_a_tally_reads_in_a_line() -> None:
    works = [("faster", False)] * 2 + [("same", False), ("same", True), ("slower", True)]
    assert (
        "3 compared: 2 faster, 1 same; 2 not judged (open errors)" == tally(pair_of(*works)).said()
    )
    assert "0 compared; 1 not judged (open errors)" == tally(pair_of(("same", True))).said()


def test_what_is_mended_in_a_newer_release_is_no_gain_of_it() -> None:
    """A rate that was mistyped and is no longer: the figures differ, and the work does not."""
    pair = pair_of(("faster", True), ("same", False))
    said = landing(pair)
    assert "1 compared by tokens/s/GPU: 1 same; 1 not judged (open errors)" in said
    assert "faster" not in said


def test_regressions_stand_first_then_gains_each_by_size_then_the_rest() -> None:
    """What is not judged comes last; the same and the unknown stay as they came."""
    works = [("same", False), ("faster", True), ("faster", False), ("unknown", False)]
    works += [("slower", False), ("same", False)]
    rows = soup(changes.matched(pair_of(*works), address).text).select("tbody tr")
    badges = [words(row.select_one(".perf-badge")) for row in rows]
    assert ["slower", "faster", "same", "same", "unknown", "not judged"] == badges
    failed = soup(changes.matched(pair_of(("slower", False), ("failed", False)), address).text)
    assert ["failed: out of memory", "slower"] == list(map(words, failed.select(".perf-badge")))


def test_of_two_changes_the_larger_stands_first() -> None:
    """−20 % before −10 %, and +20 % before +5 %."""
    tokens = (90.0, 105.0, 80.0, 120.0)
    cases = [case(framework="nemo", num_gpus=8 * (one + 1)) for one in range(4)]
    before = [printed(100.0, case=one, release="25.04") for one in cases]
    after = [printed(it, case=one, release="25.07") for it, one in zip(tokens, cases, strict=True)]
    found = comparison(before, after)
    pair = ReleasePair(framework="nemo", before="25.04", after="25.07", comparison=found)
    rows = soup(changes.matched(pair, address).text).select("tbody tr")
    said = [words(row.select("td")[3]) for row in rows]
    assert ["−20.0%", "−10.0%", "+20.0%", "+5.0%"] == said
