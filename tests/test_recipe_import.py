"""AutoModel's own YAML: wrapped unchanged in a recipe, and what is wrong with a broken one."""

from pathlib import Path

import pytest

from perfdb import recipe
from tests.shell import Shell

YAML = Path(__file__).parent / "data" / "recipes" / "automodel" / "llama.yaml"
NAME = "pretrained_model_name_or_path"
OPEN = ("--set", "num_gpus=2", "--set", "systems=cpu", "--set", "model=gpt-tiny")


def imported(perfdb: Shell, path: Path, *words: str) -> tuple[int, str, str]:
    return perfdb("recipes", "import", "automodel", str(path), *words)


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_a_recipe_carries_the_yaml_byte_for_byte(perfdb: Shell, tmp_path: Path, end: str) -> None:
    source = tmp_path / "My Llama.yaml"
    source.write_text(f"  \n# by hand\n{YAML.read_text().rstrip()}{end}")
    code, printed, _ = imported(perfdb, source, *OPEN)
    (tmp_path / "made.yaml").write_text(printed)
    [file] = recipe.load([tmp_path / "made.yaml"])
    [point] = file.points
    assert (0, source.read_text()) == (code, point.framework_config)
    case = point.case
    assert ("automodel", "gpt-tiny", "fp32", 2) == (
        case.framework, case.model, case.precision, case.data_parallel,
    )  # fmt: skip
    assert (4, 1, 64) == (case.global_batch_size, case.local_batch_size, case.sequence_length)
    assert (2, 4, 1234) == (point.warmup_steps, point.measured_steps, point.seed)
    assert "my-llama" == file.recipe.name


def test_another_yaml_makes_another_case(perfdb: Shell, tmp_path: Path) -> None:
    for name, rate in (("slow", "0.001"), ("fast", "0.002")):
        source = tmp_path / f"{name}.txt"
        source.write_text(YAML.read_text().replace("lr: 0.001", f"lr: {rate}"))
        (tmp_path / f"{name}.yaml").write_text(imported(perfdb, source, *OPEN)[1])
    one, other = (file.points[0].case for file in recipe.load([tmp_path]))
    assert one.key != other.key
    assert one.workload_key == other.workload_key


def test_weights_are_known_by_their_name(perfdb: Shell, tmp_path: Path) -> None:
    """`from_pretrained` has no config: the name is the model's own."""
    made = YAML.read_text().replace("  config:\n", f"  {NAME}: meta-llama/Llama-3.1-8B\n  x:\n")
    (tmp_path / "named.yaml").write_text(made)
    words = [*OPEN[:2], "--set", "systems=dgx-h100"]
    code, printed, _ = imported(perfdb, tmp_path / "named.yaml", *words)
    assert (0, True) == (code, "\nmodel: llama3-8b\n" in printed)
    (tmp_path / "none.yaml").write_text(YAML.read_text().replace("  config:\n", "  x:\n"))
    code, _, said = imported(perfdb, tmp_path / "none.yaml", *words)
    assert (2, True) == (code, f"model: needs {NAME}, or a config with _target_" in said)


BROKEN = [
    ("seed: 1234", "seed: [1234", (), "broken.yaml:3: not YAML: "),
    ("seed: 1234", "seed: 1\nseed: 2", (), "broken.yaml:3: seed: given twice"),
    ("recipe: Bench", "recipe: Train", (), "broken.yaml:1: recipe: Input should be 'Benchmarking"),
    ("  warmup_steps: 2\n", "", (), "broken.yaml:3: benchmark.warmup_steps: is required and missi"),
    ("  warmup_steps: 2", "  warmup_steps: 6", (), ":4: benchmark.warmup_steps: 6 warm-up steps"),
    ("  nsys_ranks: []\n", "", (), "broken.yaml:3: benchmark.nsys_ranks: is required and missing"),
    ("global_batch_size: 4", "global_batch_size: four", (),
     ":12: step_scheduler.global_batch_size: Input should be a valid integer, found 'four'"),
    ("local_batch_size: 1", "local_batch_size: 0", (), ":13: step_scheduler.local_batch_size: "),
    ("step_scheduler:", "step_schedular:", (), ":1: step_scheduler: is required and missing"),
    ("strategy: fsdp2", "strategy: ddp", (), ":18: distributed.strategy: Input should be 'fsdp2'"),
    ("global_batch_size: 4", "global_batch_size: 3", (),
     ":13: step_scheduler.local_batch_size: LBS 1 × DP 2 does not divide GBS 3"),
    ("tp_size: 1", "tp_size: 4", (), "num_gpus: TP 4 × PP 1 × CP 1 = 4 needs at least 4 GPUs"),
    ("pp_size: 1", "pp_size: 1\n  ep_size: 2", (), "distributed.ep_size: gpt-tiny has no experts"),
    ("sequence_parallel: false", "sequence_parallel: maybe", (),
     "distributed.sequence_parallel: Input should be a valid boolean, found 'maybe'"),
    ("_target_: transformers.LlamaConfig", "pretrained_model_name_or_path: ./llama", (),
     "model.config.pretrained_model_name_or_path: './llama' is relative"),
    ("  seq_len: 64\n", "", (), "dataset.seq_len: is required and missing"),
    ("", "", ("--set", "model=gpt-tinyy"), "--set: model: no model 'gpt-tinyy'; did you mean"),
    ("", "", ("--set", "global_batch_size=8"), "--set: global_batch_size: "),
    ("", "", ("--set", "gpus=2"), "--set: gpus: no such field"),
    ("", "", ("--set", "num_gpus"), "--set: 'num_gpus' is no FIELD=VALUE"),
]  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken[-1])
def test_a_broken_yaml_gives_one_message_with_line_and_key(
    perfdb: Shell, tmp_path: Path, broken: tuple[str, str, tuple[str, ...], str]
) -> None:
    old, new, words, expected = broken
    source = tmp_path / "broken.yaml"
    assert old in YAML.read_text()
    source.write_text(YAML.read_text().replace(old, new, 1))
    code, printed, said = imported(perfdb, source, *OPEN, *words)
    assert (2, "", 1) == (code, printed, len(said.splitlines()))
    assert expected in said


def test_what_the_yaml_leaves_open_is_asked_for(perfdb: Shell) -> None:
    code, printed, said = imported(perfdb, YAML)
    asked = [line.rpartition("; ")[2] for line in said.splitlines()]
    assert (2, "") == (code, printed)
    assert [f"add --set {name}=…" for name in ("model", "num_gpus", "systems")] == asked


def test_a_recipe_and_what_it_carries_must_agree(perfdb: Shell, tmp_path: Path) -> None:
    made = imported(perfdb, YAML, *OPEN)[1]
    path = tmp_path / "made.yaml"
    path.write_text(made.replace("\nglobal_batch_size: 4", "\nglobal_batch_size: 8", 1))
    line = 1 + made.splitlines().index("    global_batch_size: 4")
    expected = f":{line}: framework_config.step_scheduler.global_batch_size: 4 is not the global_ba"
    assert expected in perfdb("recipes", "validate", str(path)).stderr
    path.write_text(made.replace("framework: automodel", "framework: megatron-core"))
    assert (
        "framework_config: megatron-core takes none"
        in perfdb("recipes", "validate", str(path)).stderr
    )
