"""From steps to figures: the arithmetic, and what withholds it."""

import math
from dataclasses import asdict
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb.db.rows import step_rows
from perfdb.measure import of_page, of_run
from perfdb.messages import note_text
from perfdb.record import Figures, Outcome
from perfdb.run_record import RunRecord, StepRecord, WorkerConfiguration
from perfdb.rundir import StepsRead, Worker
from tests import factories

FIGURES = (
    "step_time_s", "step_time_mean_s", "step_time_stdev_s", "step_time_p10_s", "step_time_p90_s",
    "step_time_last_s", "num_steps", "window", "tokens_per_sec_per_gpu",
    "model_tflops_per_sec_per_gpu", "mfu", "peak_tflops", "peak_memory_bytes", "flops_convention",
)  # fmt: skip


def read_of(steps: list[StepRecord]) -> StepsRead:
    return StepsRead.of(enumerate(steps, start=1))


def figures_of(record: RunRecord, steps: list[StepRecord]) -> dict[str, object]:
    result = of_run(record, read_of(steps), Worker(), "0").result
    found = {name: getattr(result, name) for name in (*FIGURES, "outcome")}
    return {**found, "withheld": result.withheld and note_text(result.withheld)}


def run(step_times: tuple[float, ...] = factories.TEN_STEPS, **changed: object) -> RunRecord:
    return factories.record(measured_steps=len(step_times) - 2, **changed)


def test_the_nemotron_recipe_computes_389371_tokens_per_second() -> None:
    """The DGX Cloud recipe: 256 sequences of 4096 in 2.693 s are 389,371 tokens/s, on 64 GPUs."""
    case = factories.case(
        model="nemotron4-15b", num_gpus=64, sequence_length=4096, global_batch_size=256
    )
    times = (9.0, 9.0, 2.693, 2.693, 2.693)
    found = figures_of(run(times, case=case), factories.steps(times, tokens=256 * 4096))

    tokens_per_gpu = found["tokens_per_sec_per_gpu"]
    assert isinstance(tokens_per_gpu, float)
    assert 389_371 == round(tokens_per_gpu * 64)


def test_llama3_8b_is_computed_as_by_hand() -> None:
    """GBS 128 × 8192 ÷ 12.15 s ÷ 8 = 10,787.82 tokens/s/GPU.

    FLOPs per token by hand, attention at half: a layer's projections are 4096·(2·4096 + 2·1024) =
    41,943,040 and its attention 8192·4096 = 33,554,432, its MLP 3·4096·14336 = 176,160,768; with
    32 layers, logits of 4096·128256 and a factor of 6 that is 51,470,401,536; H100 BF16: 989.
    """
    found = figures_of(run(), factories.steps())

    assert 12.15 == pytest.approx(found["step_time_s"])
    assert 10_787.8189300 == pytest.approx(found["tokens_per_sec_per_gpu"])
    assert 10_787.8189300 * 51_470_401_536 / 1e12 == pytest.approx(
        found["model_tflops_per_sec_per_gpu"]
    )
    assert 0.5614291 == pytest.approx(found["mfu"], rel=1e-6)
    assert 989 == found["peak_tflops"]
    assert "causal" == found["flops_convention"]


def test_step_times_are_summarised_after_the_warm_up() -> None:
    """Of ten steps the first two are left out: 12.3 12.0 12.6 12.0 12.9 12.0 12.3 12.0."""
    found = figures_of(run(), factories.steps())

    assert "skip_warmup(2)" == found["window"]
    assert 8 == found["num_steps"]
    assert 12.2625 == pytest.approx(found["step_time_mean_s"])
    assert 0.33779749 == pytest.approx(found["step_time_stdev_s"])
    assert 12.0 == pytest.approx(found["step_time_p10_s"])
    assert 12.69 == pytest.approx(found["step_time_p90_s"])
    assert 12.0 == found["step_time_last_s"]


@pytest.mark.parametrize(
    ("changed", "known"),
    [
        ({"system": "cpu"}, {"tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu"}),
        ({"precision": "fp32"}, {"tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu"}),
        ({"precision": None}, {"tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu"}),
        ({"system": "abacus"}, {"tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu"}),
        ({"model": "unheard-of"}, {"tokens_per_sec_per_gpu"}),
        ({"task": "lora"}, {"tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu"}),
    ],
    ids=["no peak", "fp32", "no precision", "unknown system", "unknown model", "lora"],
)
def test_a_rate_that_cannot_be_known_is_unknown(
    changed: dict[str, object], known: set[str]
) -> None:
    """MFU needs a peak, TFLOP/s a model that a formula covers."""
    found = figures_of(run(case=factories.case(**changed)), factories.steps())

    rates = ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu")
    assert known == {name for name in rates if found[name] is not None}
    assert (found["peak_tflops"] is None) == (found["mfu"] is None)
    assert (found["flops_convention"] is None) == (found["model_tflops_per_sec_per_gpu"] is None)


def changed_step(number: int, **changed: object) -> list[StepRecord]:
    steps = factories.steps()
    steps[number - 1] = steps[number - 1].model_copy(update=changed)
    return steps


TEN = factories.steps()


@pytest.mark.parametrize(
    ("outcome", "steps", "expected", "reason"),
    [
        ("failed", TEN[:3], "failed", "the run failed"),
        ("out_of_memory", [], "out_of_memory", "the run ran out of memory"),
        ("timed_out", TEN[:9], "timed_out", "the run reached its time limit"),
        ("interrupted", TEN[:9], "interrupted", "the run was interrupted"),
        ("nan_loss", TEN[:9], "nan_loss", "the loss became NaN"),
        (
            None,
            TEN,
            "incomplete",
            "the run was cut off: its runner stopped and recorded no outcome",
        ),
        ("finished", [], "incomplete", "0 of 10 steps"),
        ("finished", TEN[:9], "incomplete", "9 of 10 steps"),
        ("finished", TEN[:4] + TEN[5:], "incomplete", "step 5 is missing"),
        ("finished", TEN[1:], "incomplete", "step 1 is missing"),
        ("finished", TEN[:5] + TEN[4:], "incomplete", "step 5 is repeated or out of order"),
        ("finished", [*TEN, TEN[0]], "incomplete", "step 1 is repeated or out of order"),
        ("finished", [*TEN[:3], TEN[4], TEN[3], *TEN[5:]], "incomplete", "step 4 is missing"),
        ("finished", changed_step(7, skipped=True), "finished", None),
        (
            "finished",
            [step.model_copy(update={"skipped": step.step > 4}) for step in TEN],
            "incomplete",
            "excludes steps that the optimizer skipped: 6 of 8, the first is step 5",
        ),
        ("finished", changed_step(1, skipped=True, grad_norm=None), "finished", None),
        ("finished", changed_step(1, loss=math.nan), "nan_loss", "the loss is nan at step 1"),
        ("finished", changed_step(4, loss=math.inf), "nan_loss", "the loss is inf at step 4"),
        (None, changed_step(4, loss=-math.inf), "nan_loss", "the loss is -inf at step 4"),
        (
            "finished",
            changed_step(9, grad_norm=math.nan),
            "nan_grad_norm",
            "the gradient norm is nan at step 9",
        ),
        ("failed", changed_step(9, loss=math.nan), "nan_loss", "the loss is nan at step 9"),
    ],
)
def test_only_a_whole_run_has_figures(
    outcome: str | None, steps: list[StepRecord], expected: str, reason: str | None
) -> None:
    """Every planned step once, in order, with finite loss; what is amiss is said in words."""
    found = figures_of(run(outcome=outcome), steps)

    assert (expected, reason) == (found["outcome"], found["withheld"])
    shown = {name for name in FIGURES if found[name] is not None}
    assert (set() if reason else set(FIGURES)) == shown


@pytest.mark.parametrize(
    ("peaks", "expected"),
    [
        ((70, 74, 58, 58, 58), 74),  # of a step of the warm-up: a peak is a peak
        ((None, None, 58, None, 60), 60),
        ((None,) * 5, None),
        ((0,) * 5, None),
    ],
)
def test_peak_memory_is_the_most_that_any_step_of_the_run_says(
    peaks: tuple[int | None, ...], expected: int | None
) -> None:
    """In the window or not; where none says one, or 0, it is not known."""
    plain = factories.steps((2.0,) * 5)
    steps = [
        step.model_copy(update={"peak_memory_bytes": peak})
        for step, peak in zip(plain, peaks, strict=True)
    ]
    assert expected == figures_of(run((2.0,) * 5), steps)["peak_memory_bytes"]


def test_a_run_that_measured_no_step_has_no_figures() -> None:
    """Warm-up alone is a plan that says nothing."""
    record = factories.record(warmup_steps=10, measured_steps=0)

    found = figures_of(record, factories.steps())
    assert ("incomplete", "no step in skip_warmup(10)") == (found["outcome"], found["withheld"])
    assert {None} == {found[name] for name in FIGURES}


def test_steps_keep_their_first_reading_and_no_nan() -> None:
    """A step that is there twice has one row; a loss that is not a number is unknown there."""
    steps = [*factories.steps((2.0, 1.0)), *factories.steps((7.0,), loss=math.nan)]
    steps[0] = steps[0].model_copy(update={"grad_norm": math.inf})
    rows = step_rows(of_run(run(), read_of(steps), Worker(), "0").steps)

    assert [(1, 2.0, 1), (2, 1.0, 2)] == [(r.step, r.step_time_s, r.source_line) for r in rows]
    assert [None, 1.5] == [row.grad_norm for row in rows]


def test_moments_are_stored_in_utc() -> None:
    """SQLite keeps no offset."""
    started = datetime(2026, 1, 2, 12, 0, tzinfo=timezone(timedelta(hours=5)))

    row = of_run(run(started_at=started), read_of(TEN), Worker(), "0").run
    assert datetime(2026, 1, 2, 7, 0, tzinfo=UTC) == row.started_at


ON_CPU = {"device": "cpu", "backend": "gloo", "cpu_shim": True, "memory_kind": "process_rss"}


@pytest.mark.parametrize(
    ("said", "system", "withheld"),
    [
        ({}, "dgx-h100", None),
        (ON_CPU, "cpu", None),
        ({"versions": {"megatron-core": "0.16.0", "torch": "2.9.0"}}, "dgx-h100", None),
        ({}, "a-system-of-no-catalogue", None),
        (ON_CPU, "dgx-h100", "the worker used the CPU, which is not dgx-h100"),
        ({}, "cpu", "the worker used NVIDIA H100, which is not cpu"),
        ({}, "dgx-b200", "the worker used NVIDIA H100, which is not dgx-b200"),
        ({"device": "NVIDIA H100 80GB HBM3 MIG 1g.10gb"}, "dgx-h100",
         "the worker used NVIDIA H100 80GB HBM3 MIG 1g.10gb, which is not dgx-h100"),
        ({"versions": {"megatron-core": "0.18.0"}}, "dgx-h100",
         "the worker ran megatron-core 0.18.0, not 0.16.0"),
    ],
)  # fmt: skip
def test_a_run_that_was_not_what_its_record_says_has_no_figures(
    said: dict[str, object], system: str, withheld: str | None
) -> None:
    """By what its worker says of itself; a system that the catalogue lacks cannot be told."""
    summary = factories.summary().model_copy(update=said)

    found = of_run(
        run(case=factories.case(system=system)), read_of(TEN), Worker(summary), "0"
    ).result
    assert withheld == (found.withheld and note_text(found.withheld))
    assert (withheld is None) == (found.step_time_s is not None)
    assert (withheld is None) == (found.outcome is Outcome.FINISHED)


def test_a_run_over_nodes_that_differ_has_figures_and_says_in_what() -> None:
    alike = {"hostnames": ["n1", "n2"], "num_nodes": 2, "driver": "570.1", "os": "Linux 6.1"}
    odd = {**alike, "hostnames": ["n3"], "num_nodes": 1, "driver": "550.2"}
    for nodes, said in (([alike], []), ([alike, odd], ["driver 570.1 (2), 550.2 (1)"])):
        known = factories.environment(nodes=nodes)
        made = of_run(run(environment=known), read_of(TEN), Worker(), "0")
        assert made.result.step_time_s
        assert said == [note.params["differences"] for note in made.result.notes]
        assert len(nodes) == len(made.run.environment["nodes"])  # type: ignore[arg-type]  # JSON


@pytest.mark.parametrize(
    ("given", "withheld"),
    [
        ({"tokens": None}, None),
        ({"tokens": 64 * 8192}, "step 1 has 524288 tokens, not 128 × 8192"),
        ({"num_steps": 12}, "step 12 exceeds the 10 planned steps"),
        ({"world_size": 16}, "the worker had 16 ranks, not 8"),
        ({"arguments": {}}, None),
        ({"arguments": {"model": {"num_layers": 1}, "anything": "else"}}, None),
        ({"arguments": {"precision": "bf16", "kernels": [], "seed": 1234, "options": {}}}, None),
        ({"arguments": {"sequence_length": 4096}}, "the worker got sequence_length 4096, not 8192"),
        ({"arguments": {"precision": "fp32"}}, "the worker got precision fp32, not bf16"),
        ({"arguments": {"warmup_steps": 1}}, "the worker got warmup_steps 1, not 2"),
        ({"arguments": {"options": {"init": "x"}}}, "the worker got options {'init': 'x'}, not {}"),
    ],
)
def test_the_parts_of_a_run_must_say_the_same_of_it(
    given: dict[str, object], withheld: str | None
) -> None:
    """Its record, its steps, what its worker was told, and what that says at its end."""
    told = given.get("arguments")
    worker = Worker(
        factories.summary().model_copy(update={"world_size": given.get("world_size", 8)}),
        None if told is None else WorkerConfiguration.model_validate(told),
    )
    times = (12.0,) * given.get("num_steps", 10)  # type: ignore[operator]  # a number
    steps = factories.steps(times, tokens=given.get("tokens", 128 * 8192))

    found = of_run(run(), read_of(steps), worker, "0").result
    outcome = Outcome.FINISHED if withheld is None else Outcome.FAILED
    reason = found.withheld and note_text(found.withheld)
    assert (outcome, withheld) == (found.outcome, reason)
    assert (withheld is None) == (found.step_time_s is not None)


def test_a_published_row_keeps_its_figures_as_they_were_printed() -> None:
    """No formula touches them, and what is not printed is not computed."""
    row = of_page(factories.published(line=7))

    assert (12_273, 711, None, None) == (
        row.tokens_per_sec_per_gpu,
        row.model_tflops_per_sec_per_gpu,
        row.step_time_s,
        row.mfu,
    )
    assert (None, None, None) == (row.formula_version, row.window, row.num_steps)
    assert ("published", 7) == (row.origin, row.source_line)
    assert {"Model": "LLAMA3-8B", "Tokens / sec / GPU": "12,273"} == row.raw


times = st.floats(min_value=1e-3, max_value=1e4)


@given(
    step_times=st.lists(times, min_size=1, max_size=12),
    warmup=st.integers(0, 6),
    planned=st.integers(0, 12),
    outcome=st.sampled_from([*Outcome, None]),
    figures=st.builds(Figures, tokens_per_sec_per_gpu=st.none() | times, mfu=st.none() | times),
)
def test_nothing_unknown_becomes_zero(
    step_times: list[float], warmup: int, planned: int, outcome: Outcome | None, figures: Figures
) -> None:
    """A figure is positive or unknown; it is withheld exactly where there is a reason."""
    record = factories.record(warmup_steps=warmup, measured_steps=planned, outcome=outcome)
    result = of_run(record, read_of(factories.steps(step_times)), Worker(), "0").result
    numbers = [asdict(result)[name] for name in FIGURES if name != "step_time_stdev_s"]

    assert 0 not in numbers
    assert (result.step_time_s is None) == (result.withheld is not None)
    assert (result.outcome == "finished") == (result.withheld is None)
    row = of_page(factories.published(figures=figures))
    assert figures.tokens_per_sec_per_gpu == row.tokens_per_sec_per_gpu
    assert (row.step_time_s, row.num_steps, row.mfu) == (None, None, figures.mfu)
