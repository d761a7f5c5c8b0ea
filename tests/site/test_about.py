"""What a page says of itself, in the front matter of its text."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import URL

from perfdb.site import about, read
from perfdb.site.files import MARK
from perfdb.site.page import LONGEST, document
from perfdb.site.pages import all_pages
from tests.site.samples import published, result

Front = dict[str, object]


def front(text: str) -> Front:
    """The front matter of a page, read without perfdb."""
    found = yaml.safe_load(text.split("---\n")[1])
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def fronts(full_store: URL) -> dict[str, Front]:
    """The front matter of every page that is made from the store."""
    pages = all_pages(read.stored(full_store))
    return {page.name: front(page.text) for page in pages if page.text is not None}


def test_every_page_says_what_it_holds(fronts: dict[str, Front]) -> None:
    """On one line, in a sentence that a list of search results has room for."""
    kinds = {name.partition("/")[0] for name in fronts}
    assert kinds == {
        "changes", "models", "performance", "recipes", "runs", "scaling", "sources", "systems",
    }  # fmt: skip
    for said in fronts.values():
        sentence = str(said["description"])
        assert 20 < len(sentence) <= 160
        assert sentence.endswith((".", "…"))
        assert "\n" not in sentence
        assert ["performance", "benchmarks", "throughput", "gpu"] == said["tags"]
        assert ["reference"] == said["categories"]


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        # Two systems in two precisions; of the two runs of each the tables have one.
        ("performance/megatron-core/0.9.1",
         "Megatron-Core 0.9.1: 4 measured results of 1 model on DGX-H100 and DGX-B200."),
        ("performance/nemo/25.04",
         "NeMo Framework 25.04: 1 published result of 1 model on DGX-H100."),
        ("performance/dfm/main", "NeMo DFM main: 5 published results of 1 model on DGX-H100, "
         "DGX-GB200 and DGX-GB300."),
        ("models/llama3.1-405b",
         "Llama 3.1 405B: 1 measured result of Megatron-Core 0.16.0."),
        # The median of eight steps; and none, where it ran out of memory.
        ("runs/dgx-h100-bf16-0.16.0-0",
         "Llama 3 8B, Pre-training, 8 GPUs, BF16 on DGX-H100: finished, 12.15 s/step."),
        ("runs/out-of-memory",
         "Llama 3.1 405B, Pre-training, 8 GPUs, BF16 on DGX-H100: out of memory."),
        # Eight of each release, two of fine-tuning, one of evil names and one out of memory.
        ("runs/index", "20 runs with the case, the outcome and the figures of each."),
    ],
)  # fmt: skip
def test_the_sentence_is_of_the_page(fronts: dict[str, Front], page: str, sentence: str) -> None:
    assert sentence == fronts[page]["description"]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_names_are_told_as_they_are(name: str) -> None:
    """In one line of YAML that holds no markup, cut where they are long."""
    text = document("Title", name)
    assert text.splitlines()[1] == MARK
    assert "<" not in text.partition("# Title")[0]
    whole, told = " ".join(name.split()), str(front(text)["description"])
    if len(whole) <= LONGEST:
        assert whole == told
    else:
        assert len(told) <= LONGEST
        assert whole.startswith(told.removesuffix("…"))


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ("p", "1 published result"),
        ("m", "1 measured result"),
        ("pp", "2 published results"),
        ("mp", "1 published and 1 measured result"),
        ("m" * 1200 + "p", "1 published and 1,200 measured results"),
    ],
)
def test_results_are_counted_by_origin(kinds: str, said: str) -> None:
    of = {"p": published(), "m": result()}
    assert said == about.results([of[kind] for kind in kinds])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("", ""),
        ("A", "A"),
        ("ABA", "A and B"),
        ("ABCD", "A, B, C and D"),
        ("ABCDE", "A, B, C, D and 1 more"),
        ("ABCDEFGA", "A, B, C, D and 3 more"),
    ],
)
def test_names_are_listed_once_and_the_last_are_counted(names: str, said: str) -> None:
    assert said == about.names(names)
