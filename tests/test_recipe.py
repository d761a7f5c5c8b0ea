"""Recipes: what they expand to, and the messages of the ones that are wrong."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from perfdb import recipe
from perfdb.errors import RecipeError
from tests.shell import Shell

DATA = Path(__file__).parent / "data" / "recipes"
BAD = sorted((DATA / "bad").glob("*.yaml"))
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def messages() -> list[str]:
    """What the command prints of all bad recipes together."""
    command = [Path(sys.executable).with_name("perfdb"), "run", DATA / "bad"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (2, "") == (done.returncode, done.stdout)
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_recipe_gives_its_message_with_file_and_line(path: Path, messages: list[str]) -> None:
    expected = path.with_suffix(".txt").read_text().splitlines()
    own = [line for line in messages if str(path) in line]
    assert expected
    assert [] == [wanted for wanted in expected if not any(wanted in line for line in own)]


def test_a_missing_path_is_said_beside_the_problems_of_the_others(tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        recipe.load([tmp_path / "nowhere", BAD[0]])
    assert 2 == len(caught.value.problems)


def test_a_file_that_is_not_text_is_said_to_be_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"name: one\ndescription: caf\xe9\n")
    expected = r"latin.yaml:2: cannot be read as UTF-8: .*; save it as UTF-8"
    with pytest.raises(RecipeError, match=expected):
        recipe.load([path])


def test_two_recipes_of_one_name_are_a_problem(tmp_path: Path) -> None:
    text = (DATA / "good" / "automodel.yaml").read_text()
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(text)
    with pytest.raises(RecipeError, match="is the name of"):
        recipe.load([tmp_path])


def test_the_nemotron_recipe_scales_as_its_published_table() -> None:
    """GPUs, DP, GBS and GA of the eight rows of the Nemotron-4 15B table; MBS 2, TP 2."""
    published = [
        (16, 8, 64, 4), (32, 16, 128, 4), (64, 32, 256, 4), (128, 64, 512, 4),
        (256, 128, 1024, 4), (512, 256, 2048, 4), (1024, 512, 4096, 4), (2048, 1024, 8192, 4),
    ]  # fmt: skip
    [file] = recipe.load([DATA / "good" / "nemotron4-15b.yaml"])
    cases = [point.case for point in file.points]
    for precision in ("bf16", "fp8"):
        found = [
            (c.num_gpus, c.data_parallel, c.global_batch_size, c.gradient_accumulation)
            for c in cases
            if c.precision == precision
        ]
        assert published == found


def test_overrides_matrix_and_systems_multiply_and_options_are_merged() -> None:
    [file] = recipe.load([DATA / "good" / "overrides.yaml"])
    names = [point.name for point in file.points]
    assert 2 * 2 * 2 == len(names) == len(set(names))
    assert "overrides/tensor_parallel=2/sequence_length=4096/dgx-h100" == names[0]
    merged = [p.case.options for p in file.points if "overlap" in p.case.options]
    assert [{"recompute": "none", "overlap": True}] * 4 == merged


def test_the_key_of_a_case_ignores_what_follows_from_the_rest() -> None:
    [file] = recipe.load([DATA / "good" / "automodel.yaml"])
    case = file.points[0].case
    assert case.key == case.model_copy(update={"data_parallel": None}).key
    assert case.key != case.model_copy(update={"micro_batch_size": 2}).key
    assert case.workload_key == case.model_copy(update={"micro_batch_size": 2}).workload_key
    assert case.workload_key != case.model_copy(update={"global_batch_size": 256}).workload_key


def test_a_recipe_is_kept_byte_for_byte(tmp_path: Path) -> None:
    content = (ROOT / "recipes" / "smoke" / "single.yaml").read_bytes().replace(b"\n", b"\r\n")
    path = tmp_path / "single.yaml"
    path.write_bytes(content)
    [file] = recipe.load([path])
    assert content == file.text.encode()
    assert hashlib.sha256(content).hexdigest() == file.reference.sha256


def test_the_schema_beside_the_recipes_is_the_codes() -> None:
    kept = json.loads((ROOT / "recipes" / "recipe.schema.json").read_text())
    remedy = "`perfdb recipes schema > recipes/recipe.schema.json` writes what the code says"
    assert recipe.schema() == kept, remedy


def smoke(folder: Path, more: str) -> Path:
    """The smoke recipe with more lines behind it."""
    path = folder / "more.yaml"
    path.write_text(f"{(ROOT / 'recipes' / 'smoke' / 'single.yaml').read_text()}{more}")
    return path


def test_a_recipe_of_millions_of_cases_is_refused_by_its_count(tmp_path: Path) -> None:
    """Five fields of 30 values on two systems are 30^5 x 2 cases; 2 x 3 are allowed by 6."""
    axes = ("tensor_parallel", "pipeline_parallel", "context_parallel", "micro_batch_size", "seed")
    values = list(range(1, 31))
    matrix = "".join(f"  {axis}: {values}\n" for axis in axes)
    path = smoke(tmp_path, f"matrix:\n{matrix}  systems: [[cpu, dgx-h100]]\n")
    with pytest.raises(
        RecipeError, match=r"makes 48,600,000 cases, more than 10,000; .*--max-cases"
    ):
        recipe.load([path])
    path = smoke(tmp_path, "matrix: {seed: [1, 2, 3]}\ncases: [{variant: a}, {variant: b}]\n")
    with pytest.raises(RecipeError, match="makes 6 cases, more than 5"):
        recipe.load([path], 5)
    assert 6 == len(recipe.load([path], 6)[0].points)


def test_many_unknown_fields_are_counted(tmp_path: Path) -> None:
    path = smoke(tmp_path, "".join(f"key_{number}: 1\n" for number in range(1200)))
    with pytest.raises(RecipeError) as caught:
        recipe.load([path])
    assert 101 == len(caught.value.problems)
    assert "key_100: no such field, nor are 1,099 after it" in str(caught.value)


NEMO = ROOT / "recipes" / "nemo"


def test_variables_of_dgxc_choose_the_cases_of_a_sweep() -> None:
    only = ["DTYPE=FP8", "MODEL_SIZE=340b", "JOB_TOTAL_GPUS=256,2048", "GPUS_PER_NODE=8"]
    scales = [file for file in recipe.load([NEMO], only=only) if "scaling" in file.recipe.name]
    points = [point for file in scales for point in file.points]
    assert [256, 2048] == [point.case.num_gpus for point in points]
    assert {("nemotron4-340b", "fp8")} == {(it.case.model, it.case.precision) for it in points}
    assert {50} == {it.warmup_steps + it.measured_steps for it in points}  # as its launch.sh


def test_a_value_that_is_set_makes_another_case_that_a_run_directory_can_repeat(
    tmp_path: Path,
) -> None:
    sweep, only = NEMO / "nemotron4-15b-scaling.yaml", ["num_gpus=64", "precision=bf16"]
    [before] = recipe.load([sweep], only=only)
    [after] = recipe.load([sweep], only=only, given=["tensor_parallel=4"])
    assert (2, 4) == tuple(it.points[0].case.tensor_parallel for it in (before, after))
    assert before.points[0].case.key != after.points[0].case.key
    assert after.points[0].name.endswith("/tensor_parallel=4")
    (tmp_path / "kept.yaml").write_text(after.text)
    [again] = recipe.load([tmp_path / "kept.yaml"], only=only)
    assert after.points == again.points


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "num_gpu=8"], "--only: no field 'num_gpu'; did you mean num_gpus?"),
        (["--only", "precision=fp9"], "--only: no case has precision 'fp9'; did you mean fp8?"),
        (["--only", "GPUS_PER_NODE=2"], "--only: no case has gpus_per_node '2'; known: 8"),
        (["--only", "no*"], "--only: 'no*' matches none of the cases; their names are like nemo-"),
        (["--only", "num_gpus=16", "--only", "*2048*"], "--only: leaves no case; each matches"),
        (["--set", "num_gpu=8"], "--set: no field 'num_gpu' of a case; did you mean num_gpus?"),
        (["--set", "num_gpus"], "--set: 'num_gpus' is no FIELD=VALUE"),
        (["--set", "num_gpus=many"], "--set: num_gpus: Input should be a valid integer"),
        (["--set", "DTYPE=fp9"], "--set: precision: no precision 'fp9'; did you mean fp8?"),
        (["--set", "num_gpus=7"], "--set num_gpus: TP 2 × PP 1 × CP 1 = 2 does not divide 7"),
    ],
)
def test_a_wrong_filter_or_value_gets_one_clear_message(
    options: list[str], message: str, perfdb: Shell
) -> None:
    done = perfdb("recipes", "validate", str(NEMO / "nemotron4-15b-scaling.yaml"), *options)
    assert (2, "") == (done.code, done.stdout)
    assert message in done.stderr
