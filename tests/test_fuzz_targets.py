"""Whatever befalls a file, its reader neither fails nor hangs nor makes up a number."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import seeds
from tests.fuzz.mutations import MUTATIONS, NUMBERS, renumbered
from tests.fuzz.targets import TARGETS, checked

EXAMPLES = {"tree": 6, "page": 20, "archive": 15}
"""Of targets that take long for each; of the others it is 25."""


@st.composite
def damaged(draw: st.DrawFn, name: str) -> bytes:
    """A file that means something to a reader, after up to three accidents."""
    whole = st.sampled_from(seeds.of(name))
    content = draw(whole)
    for mutation in draw(st.lists(st.sampled_from(sorted(MUTATIONS)), min_size=1, max_size=3)):
        chance = Random(draw(st.integers(0, 2**32)))
        content = MUTATIONS[mutation](chance, content, draw(whole))
    return content[: TARGETS[name].most_bytes]


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_damaged_is_read_or_refused_and_never_made_up(name: str) -> None:
    """Cut, flipped, mixed, recoded, stretched, nested: what tests.fuzz.oracles says still holds."""

    @settings(
        max_examples=EXAMPLES.get(name, 25),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(damaged(name))
    def holds(content: bytes) -> None:
        checked(name, content)

    holds()


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in ("tree", "page")])
def test_whole_files_are_read_without_a_fault(name: str) -> None:
    """What the readers are for, among it billions of values behind aliases, and zip bombs."""
    for content in seeds.of(name):
        checked(name, content)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:12].decode())
def test_an_absurd_number_is_never_a_figure(number: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever number of a run directory or of a log it stands for."""
    monkeypatch.setattr("tests.fuzz.mutations.NUMBERS", [number])
    for name in ("run", "nemo2", "megatron_lm", "torchtitan", "automodel_summary", "llmb_config"):
        for content in seeds.of(name)[:2]:
            for seed in range(8):
                checked(name, renumbered(Random(seed), content, b""))
