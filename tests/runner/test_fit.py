"""`perfdb run --fit`: a case is cut to the hardware at hand, and never counts as the whole one."""

import json
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import URL

from benchmarks import gpu_check
from perfdb import catalog, hardware, recipe
from perfdb.compare.releases import known_releases, results_of
from perfdb.db.session import reading
from perfdb.queries import results
from perfdb.recipe import RunSpec
from runner import session
from runner.backends import megatron_core
from runner.deep_check import gpu_memory_bytes
from runner.fit import USABLE, Hardware, Proxy, needed, proxy
from runner.megatron.config import parse_config
from tests.runner.quick_launcher import BACKENDS, QuickLauncher
from tests.shell import Shell

RECIPES = Path(__file__).parents[2] / "recipes"
H100 = "nemo-llama3-70b-pretrain/systems=dgx-h100"
KINDS = ("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel")


@cache
def cases() -> dict[str, RunSpec]:
    """The cases of the recipes of published rows, by name."""
    folders = [RECIPES / name for name in ("nemo", "megatron-core", "automodel", "dfm")]
    return {spec.name: spec for file in recipe.load(folders) for spec in file.points}


def fit_to(system: str, num_gpus: int) -> Hardware:
    return Hardware(system, num_gpus, gpu_memory_bytes(system))


def cut(name: str, system: str, num_gpus: int) -> Proxy:
    found = proxy(cases()[name], fit_to(system, num_gpus))
    assert isinstance(found, Proxy), found
    return found


@pytest.mark.parametrize("to", [fit_to("cpu", 4), fit_to("dgx-h100", 8), fit_to("dgx-b200", 1)],
                         ids=["cpu", "8 × H100", "1 × B200"])  # fmt: skip
def test_a_proxy_is_another_case_of_the_same_kind_that_fits(to: Hardware) -> None:
    for spec in cases().values():
        found = proxy(spec, to)
        if isinstance(found, str):
            assert found.startswith("no proxy: ")
        else:
            check(spec, found, to)


def check(spec: RunSpec, found: Proxy, to: Hardware) -> None:
    whole, made = spec.case, found.spec.case
    assert made.proxy_of
    assert whole.key.startswith(made.proxy_of)
    assert whole.workload_key != made.workload_key
    assert (to.system, True) == (made.system, made.num_gpus <= to.num_gpus)
    for kind in KINDS:
        assert (getattr(whole, kind) or 1) % (getattr(made, kind) or 1) == 0
    before, after = catalog.model(whole.model), catalog.model(made.model)
    assert "(proxy: " in after.title
    shape = megatron_core.SHAPE_FIELDS[1:]
    if not to.on_cpu:
        assert [getattr(before, it) for it in shape] == [getattr(after, it) for it in shape]
        assert needed(found.spec).total <= USABLE * (to.gpu_memory_bytes or 0)
    assert found.changes


def test_parts_are_as_arithmetic_says() -> None:
    """Llama 3 8B on one GPU, in BF16 with Adam: 18 bytes a parameter. Of a token and layer are kept
    4·4096 + 2·4096 + 2·1024 + 3·14336 elements of two bytes, and of the logits six bytes each.
    """
    found = cut("llama3-8b/precision=bf16/dgx-h100", "dgx-h100", 1)
    case = found.spec.case
    layer = 2 * 4096**2 + 2 * 1024 * 4096 + 3 * 4096 * 14336 + 2 * 4096
    kept = 2 * (6 * 4096 + 2 * 1024 + 3 * 14336) * 8192

    def total(layers: int) -> int:
        parameters = layers * layer + 2 * 128256 * 4096 + 4096
        return 18 * parameters + layers * kept + 6 * 128256 * 8192

    limit = USABLE * 81559 * 2**20
    most = max(layers for layers in range(1, 33) if total(layers) <= limit)
    assert (f"llama3-8b-proxy-{most}l", total(most)) == (case.model, needed(found.spec).total)
    assert (1, 1, 32) == (case.num_gpus, case.context_parallel, case.global_batch_size)


def test_kinds_of_parallelism_stay_where_gpus_are_enough() -> None:
    """Of TP 4 × PP 8 × VP 5 on 64 GPUs, 8 GPUs take TP 2 × PP 2 and data parallelism as before."""
    case = cut(H100, "dgx-h100", 8).spec.case
    assert (2, 2, 5) == (case.tensor_parallel, case.pipeline_parallel, case.virtual_pipeline)
    assert (2, 8) == (case.data_parallel, case.num_gpus)
    assert case.gradient_accumulation == cases()[H100].case.gradient_accumulation


@pytest.mark.parametrize(
    ("name", "to", "reason"),
    [
        ("automodel-llama3-70b-pretrain", fit_to("cpu", 4), "does not train with Meg"),
        ("nemo-llama3-8b-lora/systems=dgx-h100", fit_to("cpu", 4), "pre-trains; lora is not"),
        ("dfm-wan2.1-14b-pretrain-megatron-core", fit_to("cpu", 4), "dit models"),
        ("nemo-llama3.1-405b-pretrain/systems=dgx-h100", fit_to("l40s", 1), "fewest layers need"),
        (H100, Hardware("dgx-h100", 8, None), "memory of a GPU of dgx-h100 is not known"),
    ],
)
def test_where_there_is_no_proxy_it_says_why(name: str, to: Hardware, reason: str) -> None:
    spec = next(spec for full, spec in cases().items() if full.startswith(name))
    assert reason in str(proxy(spec, to))


def test_the_plan_of_a_given_system_is_printed(perfdb: Shell) -> None:
    path = str(RECIPES / "nemo" / "llama3-70b-pretrain.yaml")
    only = ("--only", "*dgx-h100", "--dry-run")
    done = perfdb("run", path, *only, "--fit-to", "dgx-h100:8")
    assert "proxy is not the case itself: num layers 80 → 10, framework nemo" in done.stderr
    [row] = json.loads(perfdb("run", path, *only, "--fit-to", "dgx-h100", "--json").stdout)["cases"]
    assert cases()[H100].case.key.startswith(row["proxy_of"])
    for wrong in ("dgx-x100", "dgx-h100:none", "dgx-h100:0"):
        refused = perfdb("run", path, "--fit-to", wrong)
        assert (2, 1) == (refused.code, len(refused.stderr.splitlines())), refused.stderr


def test_a_proxy_is_stored_and_is_in_no_table_of_releases(perfdb: Shell, store: URL) -> None:
    path = str(RECIPES / "nemo" / "llama3-70b-pretrain.yaml")
    smoke = str(RECIPES / "smoke" / "single.yaml")
    tools = session.Tools(hardware.without_gpu("no GPU"), BACKENDS, {"local": QuickLauncher()})
    arguments = ("run", path, smoke, "--only", "*[hl][1e]*", "--fit")
    assert "2 to run" in perfdb(*arguments, obj=tools).stderr
    assert "2 finished before" in perfdb(*arguments, obj=tools).stderr
    perfdb("ingest", "runs", "--db", store.render_as_string(hide_password=False))
    with reading(store) as connection:
        every = results.read(connection, results.current())
        printed = results.read(connection, results.representative())
        compared = results_of(connection, known_releases(connection)[0])
    proxies = [it for it in every if it.options.get("proxy_of")]
    assert ["Llama 3 70B (proxy: 10 of 80 layers, narrower)"] == [it.model_title for it in proxies]
    assert [it.num_steps for it in proxies] == [20]
    assert {"gpt-tiny"} == {it.model for it in printed} == {it.model for it in compared}


def test_the_check_of_a_gpu_trains_what_fits(capsys: pytest.CaptureFixture[str]) -> None:
    """As many layers as samples of 8,192 tokens leave room for; FP8 where the GPU has it."""
    assert 0 == gpu_check.main(["out", "--dry-run", "--system", "dgx-h100"])
    trainings = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    most = cut("llama3-8b/precision=bf16/dgx-h100", "dgx-h100", 1).spec.case
    layers = catalog.model(most.model).num_layers
    assert {layers} == {it["worker"]["model"]["num_layers"] for it in trainings}
    asked = [(it["precision"], it["sequence_length"]) for it in trainings if not it["options"]]
    assert [("bf16", 4096), ("bf16", 8192), ("fp8_cs", 4096), ("fp8_cs", 8192)] == asked
    for one in trainings:
        tokens = one["worker"]["global_batch_size"] * one["worker"]["sequence_length"]
        assert (32768, one["sequence_length"]) == (
            tokens,
            parse_config(one["worker"]).sequence_length,
        )
    assert 2 == gpu_check.main(["out", "--system", "dgx-x100"])
