"""What stands beside a model's name, its size or its layers, says which model it is, or fits it."""

import pytest

from tests.test_pages_told import ROW, SIZES, read, said, table


@pytest.mark.parametrize(
    ("model", "size", "name"),
    [
        ("Llama 3", "8B", "llama3-8b"),
        ("Llama 3", "70 B", "llama3-70b"),
        ("Nemotron4", "15b", "nemotron4-15b"),
        ("Mixtral", "8x7B", "mixtral-8x7b"),
        ("Llama 3 LoRA", "8B", "llama3-8b"),
        ("Llama 9", "8B", "llama-9-8b"),
        ("GPT-2", "XL", "gpt-2-xl"),
        ("Llama 9 8B", "8B", "llama-9-8b"),
        ("Llama 9 8B", "70B", "llama-9-8b"),
        ("Llama 9", "-", "llama-9"),
        ("LLAMA3-8B", "8B", "llama3-8b"),
        ("DeepSeek V3", "671B", "deepseek-v3-671b"),
        ("Kimi K2", "1T", "kimi-k2"),
        ("Mixtral 8x7B", "47B", "mixtral-8x7b"),
    ],
)
def test_a_size_beside_a_name_that_is_of_several_models_belongs_to_it(
    model: str, size: str, name: str
) -> None:
    """A name that the catalogue has, or with a size of its own, says enough by itself."""
    found = read(table((*SIZES, "Size", "MFU"), (model, *ROW[1:], size, "40%")))
    assert ([name], []) == ([one.case.model for one in found.results], said(found))
    assert [{"Size": size}] == [one.extras for one in found.results]


def test_two_sizes_of_a_model_are_two_cases() -> None:
    """Of 8 and of 64 GPUs, they are no scaling of one model."""
    rows = (("Llama 3", "8", "128", "8192", "8B"), ("Llama 3", "64", "1024", "8192", "70B"))
    found = read(table((*SIZES, "Size", "MFU"), *((*row, "40%") for row in rows)))
    assert ["llama3-8b", "llama3-70b"] == [one.case.model for one in found.results]


@pytest.mark.parametrize(
    ("title", "cell", "told"),
    [
        ("Size", "70B", "Model: 'Llama3 8B' has another size than '70B', which stands beside it"),
        ("Layers", "4", "Layers: Llama 3 8B has 32 layers, not 4"),
        ("layers", "80", "layers: Llama 3 8B has 32 layers, not 80"),
    ],
)
def test_what_does_not_fit_the_model_beside_it_is_rejected(
    title: str, cell: str, told: str
) -> None:
    found = read(table((*SIZES, title, "MFU"), (*ROW, cell, "40%")))
    assert () == found.results
    assert [f"page.md:9: {told}"] == [one.split(";")[0] for one in said(found)]


@pytest.mark.parametrize("cell", ["32", "-", "0", "32 (28)", "all"])
def test_layers_that_fit_or_are_no_number_are_no_fault(cell: str) -> None:
    found = read(table((*SIZES, "Layers", "MFU"), (*ROW, cell, "40%")))
    assert [("llama3-8b", 0.4)] == [(one.case.model, one.figures.mfu) for one in found.results]


def test_the_layers_of_a_model_that_the_catalogue_lacks_are_kept_as_printed() -> None:
    found = read(table((*SIZES, "Layers", "MFU"), ("Llama 9 1B", *ROW[1:], "4", "40%")))
    assert [{"Layers": "4"}] == [one.extras for one in found.results]


@pytest.mark.parametrize("name", ["Llama3 8B, 70B", "Llama3 8B / Llama3 70B", "Llama3 8B and 70B"])
def test_a_cell_of_several_models_is_of_none(name: str) -> None:
    found = read(table((*SIZES, "MFU"), (name, *ROW[1:], "40%")))
    assert () == found.results
    assert f"{name!r} names several models; give each a row" in said(found)[0]


@pytest.mark.parametrize("name", ["Acme 30B-A3B", "Acme 8x7B", "Acme 8B (6B, 2B)"])
def test_a_model_may_have_several_sizes(name: str) -> None:
    assert 1 == len(read(table((*SIZES, "MFU"), (name, *ROW[1:], "40%"))).results)
