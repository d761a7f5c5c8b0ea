"""What is named as a difference between two rows of the same work."""

import pytest

from perfdb.site.differences import differences, names
from tests.site.samples import result

CASES: list[tuple[dict[str, object], list[str], list[str]]] = [
    ({}, [], []),
    ({"tensor_parallel": 2}, ["TP 2 against –"], ["TP"]),
    ({"sequence_parallel": True}, ["SP on against –"], ["SP"]),
    ({"fsdp_enabled": True}, ["FSDP on against –"], ["FSDP"]),
    ({"gradient_accumulation": 4}, [], ["GA"]),
    ({"kernels": "fused"}, ["other kernels"], ["kernels"]),
    ({"container": "nemo:25.07"}, ["other container"], ["container"]),
    ({"options": {"recompute": "full"}}, ["recompute full against –"], ["recompute"]),
    ({"step_time_s": 1.0, "mfu": 0.5, "num_gpus": 16, "global_batch_size": 1}, [], []),
]


@pytest.mark.parametrize(("changed", "said", "named"), CASES)
def test_a_configuration_is_told_apart_and_figures_are_not(
    changed: dict[str, object], said: list[str], named: list[str]
) -> None:
    """GA follows from the batch and the GPUs, and is named alone."""
    assert said == list(differences(result(**changed), result()))
    assert named == names([result(), result(**changed)], result())
