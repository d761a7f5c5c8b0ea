"""What B has in place of work that only A has: a recipe that was changed on purpose."""

import pytest

from perfdb.compare import comparison
from perfdb.compare.match import nearest_text
from perfdb.compare.output import document
from perfdb.record import Case
from tests.factories import case
from tests.test_compare import at


@pytest.mark.parametrize(
    ("others", "said", "values"),
    [
        ([case(global_batch_size=256)], "B has it at GBS 256", {"global_batch_size": [256]}),
        ([case(precision="fp8_mx")], "B has it at FP8-MX", {"precision": ["fp8_mx"]}),
        ([case(precision=None)], "B has it at an unknown precision", {"precision": [None]}),
        ([case(num_gpus=1024)], "B has it at 1,024 GPUs", {"num_gpus": [1024]}),
        ([case(sequence_length=4096)], "B has it at sequence 4,096", {"sequence_length": [4096]}),
        (
            [case(num_gpus=16), case(global_batch_size=256), case(global_batch_size=512)],
            "B has it at GBS 256 or GBS 512 or 16 GPUs",
            {"num_gpus": [16], "global_batch_size": [256, 512]},
        ),
        (  # two layouts of one GBS
            [case(global_batch_size=256, tensor_parallel=size) for size in (1, 2)],
            "B has it at GBS 256",
            {"global_batch_size": [256]},
        ),
        ([case(global_batch_size=256, num_gpus=16)], "", {}),
        ([case(global_batch_size=256, task="sft")], "", {}),
        ([case(model="llama3-70b")], "", {}),
        ([case(system="dgx-b200")], "", {}),
        ([case(framework="nemo")], "", {}),
        ([case(qualifiers=("LoRA",))], "", {}),
        ([], "", {}),
    ],
)
def test_what_differs_in_one_such_field_is_named(
    others: list[Case], said: str, values: dict[str, object]
) -> None:
    found = comparison([at(4.0)], [at(4.0, case=one) for one in others])
    [side] = found.only_a
    [lone] = document(found)["only_a"]
    assert (said, values) == (nearest_text(side, found.only_b), lone["instead_in_b"])


def test_what_b_has_in_both_releases_takes_the_place_of_nothing() -> None:
    """A ran with GBS 128 and 256, B with 256 alone: 128 is missing."""
    both = case(global_batch_size=256)
    found = comparison([at(4.0), at(8.0, case=both)], [at(8.0, case=both)])
    [side] = found.only_a
    assert "" == nearest_text(side, found.only_b)
