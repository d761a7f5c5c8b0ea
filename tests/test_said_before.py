"""The same bytes of another path: what was said before holds, --set over it, the rest is filled."""

import pytest

from perfdb import attribute, said_before
from perfdb.attribute import Attributed
from perfdb.pages.base import PageContext
from perfdb.record import Case, Release
from tests import factories

RICH = factories.case(
    framework="nemo", precision="bf16", micro_batch_size=1, tensor_parallel=2,
    pipeline_parallel=1, context_parallel=1, num_gpus=16, global_batch_size=128,
)  # fmt: skip
BARE = RICH.model_copy(
    update=dict.fromkeys(
        ("precision", "micro_batch_size", "tensor_parallel", "pipeline_parallel",
         "context_parallel", "data_parallel", "gradient_accumulation")
    )
)  # fmt: skip
NAMED = Release(framework="nemo", version="25.09", container="nemo:25.09")
NOBODYS = Release(framework="nemo")


def held(now: Attributed, before: Attributed, *settings: str) -> Attributed:
    """What holds where --set says this."""
    return said_before.held(now, before, attribute.said(PageContext(), settings))


@pytest.mark.parametrize(
    ("now", "before"),
    [((BARE, NOBODYS), (RICH, NAMED)), ((RICH, NAMED), (BARE, NOBODYS)),
     ((BARE, NAMED), (RICH, NOBODYS))],
)  # fmt: skip
def test_who_says_less_takes_nothing_away_in_either_order(
    now: tuple[Case, Release], before: tuple[Case, Release]
) -> None:
    holds = held(Attributed(*now), Attributed(*before))
    assert (RICH.key, NAMED) == (holds.case.key, holds.release)


def test_what_was_said_before_holds_over_what_is_said_now_and_is_told() -> None:
    other = RICH.model_copy(update={"precision": "fp8_cs", "tensor_parallel": 4})
    now = Attributed(other, NAMED.model_copy(update={"version": "25.11"}))

    holds = held(now, Attributed(RICH, NAMED))

    assert Attributed(RICH, NAMED) == Attributed(
        holds.case.model_copy(update={"data_parallel": RICH.data_parallel,
                                      "gradient_accumulation": RICH.gradient_accumulation}),
        holds.release,
    )  # fmt: skip
    assert {"precision bf16", "tensor_parallel 2", "release 25.09"} == set(
        said_before.untaken(now, holds)
    )


def test_set_holds_over_what_was_said_before_and_the_rest_stays() -> None:
    """32 GPUs ÷ (2 × 1 × 1) = 16 ranks; 128 ÷ (1 × 16) = 8 steps."""
    now = Attributed(BARE.model_copy(update={"num_gpus": 32}), NOBODYS)
    holds = held(now, Attributed(RICH, NAMED), "num_gpus=32", "release=25.10")
    assert (32, "bf16", 2, 16, 8) == (
        holds.case.num_gpus, holds.case.precision, holds.case.tensor_parallel,
        holds.case.data_parallel, holds.case.gradient_accumulation,
    )  # fmt: skip
    assert ("25.10", "nemo:25.09") == (holds.release.version, holds.release.container)


def test_a_release_of_another_framework_is_not_kept() -> None:
    other = Release(framework="mine", version="1.0")
    now = Attributed(BARE.model_copy(update={"framework": "mine"}), other)
    assert other == held(now, Attributed(RICH, NAMED), "framework=mine").release
