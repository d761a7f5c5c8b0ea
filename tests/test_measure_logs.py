"""What a program prints of its own rates: kept beside those that its steps come to."""

import json
from math import fsum
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import URL, select

from perfdb import aggregation, measure, validity
from perfdb.db.rows import MeasuredRun, ResultRow, StepRow, step_rows
from perfdb.db.tables import findings, results, steps
from perfdb.formats import FORMATS, ParsedLog, Reading, numbers
from perfdb.formats.columns import Steps
from perfdb.formats.outcome import ending
from perfdb.ingest import LogOptions, Options, ingest
from perfdb.messages import note_text
from perfdb.pages.base import PageContext
from perfdb.record import Figures, Note, NoteCode, Outcome, PartialCase
from perfdb.run_record import StepRecord
from perfdb.rundir import StepsRead
from tests import factories
from tests.trees import rows_of

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
RATES = (None, 0.0, 400.0, 410.0, 500.0, 420.0)
"""TFLOP/s as a program prints them: not at all, 0 for unknown, and four figures."""


def log(**changed: object) -> ParsedLog:
    """Six steps of 2 s with these rates, and twice as many tokens/s as TFLOP/s."""
    readings = tuple(
        Reading(
            line=10 + step,
            step=step,
            step_time_s=2.0,
            model_tflops_per_sec_per_gpu=rate,
            tokens_per_sec_per_gpu=rate and rate * 2,
        )
        for step, rate in enumerate(RATES, start=1)
    )
    fields: dict[str, object] = {
        "configuration": PartialCase(),
        "steps": readings,
        "window": "skip_warmup(2)",
        "outcome": Outcome.FINISHED,
    }
    fields |= changed
    return ParsedLog(**{**fields, "steps": Steps.of(fields["steps"])})


def measured(
    given: ParsedLog, window: str = "skip_warmup(2)", averages: bool = False
) -> MeasuredRun:
    of = measure.LogRun(factories.case(), factories.release(), "run", "0" * 64, averages)
    return measure.of_log(given, of, aggregation.named(window))


@pytest.mark.parametrize(
    ("window", "median"), [("skip_warmup(2)", 415.0), ("last_n(1)", 420.0), ("window(1,4)", 405.0)]
)
def test_a_result_has_the_medians_over_the_window_of_its_figures(
    window: str, median: float
) -> None:
    """(410 + 420) / 2; the last; (400 + 410) / 2 of four steps, two of which print a rate."""
    expected = {"model_tflops_per_sec_per_gpu": median, "tokens_per_sec_per_gpu": 2 * median}
    assert expected == measured(log(), window).result.emitted


@pytest.mark.parametrize(
    ("peaks", "expected"),
    [((74, 58, None, 60, 58, None), 74), ((None,) * 6, None), ((0,) * 6, None)],
)
def test_peak_memory_is_the_most_that_any_line_says(
    peaks: tuple[int | None, ...], expected: int | None
) -> None:
    """The window leaves out the first two lines; the steps that are kept say the same."""
    plain = log().steps
    readings = tuple(
        one._replace(peak_memory_bytes=peak) for one, peak in zip(plain, peaks, strict=True)
    )
    found = measured(log(steps=readings))

    assert expected == found.result.peak_memory_bytes
    assert expected == (max(step.peak_memory_bytes or 0 for step in found.steps) or None)
    cut = measured(log(steps=readings, outcome=Outcome.INCOMPLETE))
    assert None is cut.result.peak_memory_bytes


def test_an_average_that_a_log_ends_with_counts_where_it_is_of_the_same_steps() -> None:
    """And only where no step prints the figure itself."""
    ended = log(emitted=Figures(step_time_s=2.5, mfu=0.4, model_tflops_per_sec_per_gpu=1.0))

    same, other = measured(ended).result, measured(ended, "last_n(2)").result

    assert {"step_time_s": 2.5, "mfu": 0.4} == {
        name: same.emitted[name] for name in ("step_time_s", "mfu")
    }
    assert 415.0 == same.emitted["model_tflops_per_sec_per_gpu"]
    assert {"model_tflops_per_sec_per_gpu", "tokens_per_sec_per_gpu"} == set(other.emitted)


@pytest.mark.parametrize(
    ("changed", "window"),
    [({"outcome": Outcome.INCOMPLETE}, "skip_warmup(2)"), ({}, "skip_warmup(6)")],
)
def test_a_result_whose_figures_are_withheld_has_no_printed_ones_either(
    changed: dict[str, object], window: str
) -> None:
    """The steps keep theirs."""
    ended = log(emitted=Figures(mfu=0.4), **({"window": window} | changed))

    run = measured(ended, window)

    assert run.result.withheld
    assert {} == run.result.emitted
    assert 420.0 == run.steps[-1].model_tflops_per_sec_per_gpu


def test_a_rate_that_a_program_divides_wrongly_is_stored_and_found(
    store: URL, tmp_path: Path
) -> None:
    """AutoModel up to 0.6.0 with PP 2: 32 × 4096 tokens in 2 s are 8192 of each of 8 GPUs."""
    tokens = 32 * 4096
    said = {"epoch": 0, "loss": 2.0, "tps": tokens / 2, "tps_per_gpu": 16384.0}
    lines = [{"step": step, **said, "num_tokens_per_step": tokens} for step in range(70)]
    path = tmp_path / "training.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    case = (
        "model=llama3-8b", "system=dgx-h100", "num_gpus=8", "sequence_length=4096", "task=sft",
        "global_batch_size=32", "precision=bf16", "tensor_parallel=1", "pipeline_parallel=2",
        "context_parallel=1",
    )  # fmt: skip

    ingest([path], store, Options(PageContext(release="0.6.0"), logs=LogOptions(case)))

    figures = select(results.c.tokens_per_sec_per_gpu, results.c.emitted)
    assert [(8192.0, {"tokens_per_sec_per_gpu": 16384.0})] == rows_of(store, figures)
    assert {(16384.0,)} == set(rows_of(store, select(steps.c.tokens_per_sec_per_gpu)))
    found = select(findings.c.severity, findings.c.message).where(findings.c.rule == "emitted")
    assert [
        (
            "info",
            "the program prints 16,384 tokens/s/GPU, 2 times the 8,192 tokens/s/GPU that its "
            "steps come to; it divides by data and context parallelism, not by TP × PP",
        )
    ] == rows_of(store, found)


UNEVEN = tuple(
    Reading(step, step, seconds, tokens=tokens, tokens_per_sec_per_gpu=rate)
    for step, seconds, tokens, rate in (
        (1, 9.0, 999_999, 1.0), (2, 2.0, 400_000, 50_000.0), (3, 3.0, 150_000, 12_500.0),
        (4, 5.0, 90_000, 4_500.0),
    )
)  # fmt: skip
"""Steps on samples of many lengths, and tokens/s as one that divides by 4 ranks prints them."""


def test_steps_of_many_lengths_have_the_rate_of_all_tokens_over_all_time() -> None:
    """640,000 tokens in 10 s on 8 GPUs; what counts FLOPs is unknown, and a note says so.

    What is printed is of the same tokens: 640,000 ÷ (8 + 12 + 20).
    """
    result = measured(log(steps=UNEVEN), "skip_warmup(1)").result

    assert (3.0, 8000.0, None, None, None) == (
        result.step_time_s, result.tokens_per_sec_per_gpu, result.model_tflops_per_sec_per_gpu,
        result.mfu, result.flops_convention,
    )  # fmt: skip
    assert (Note(NoteCode.VARIABLE_LENGTH_STEPS),) == result.notes
    assert {"tokens_per_sec_per_gpu": 16_000.0} == result.emitted


def test_steps_of_which_one_does_not_say_its_tokens_have_no_rate() -> None:
    given = (*UNEVEN[:3], UNEVEN[3]._replace(tokens=None))
    result = measured(log(steps=given), "skip_warmup(1)").result
    assert (3.0, None, ()) == (result.step_time_s, result.tokens_per_sec_per_gpu, result.notes)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside the project")
@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("old_training_phi_4_squad", 1598.5),
        ("training_gpt_oss_20b", 2025.2),
        ("training_llama3_2_1b_squad", 9278.4),
        ("training_qwen3_moe_30b_te_deepep", 2690.2),
    ],
)
def test_the_rate_of_a_file_of_automodel_is_that_of_its_steps(name: str, rate: float) -> None:
    """Steps 11 to 100 on 8 GPUs, summed up by awk."""
    path = CORPUS / f"automodel_{name}_h100.jsonl"
    [given] = FORMATS["automodel_training"].parse(str(path), [path.read_bytes()])
    result = measured(given, "skip_warmup(10)").result
    assert rate == pytest.approx(result.tokens_per_sec_per_gpu, abs=0.05)


EVERY_TENTH = tuple(
    Reading(step, step, seconds, tokens_per_sec_per_gpu=rate)
    for step, seconds, rate in ((1, 40.0, 25.0), (10, 10.0, 100.0), (20, 5.0, 200.0))
)
"""A log of twenty steps: the first, and the means of the nine and the ten behind it."""


@pytest.mark.parametrize(
    ("window", "figures", "warmup", "printed"),
    [
        ("skip_warmup(0)", (20, 7.5, 9.0), 0, 150.0),
        ("skip_warmup(1)", (19, 5.0, 140 / 19), 1, 200.0),
        ("skip_warmup(10)", (10, 5.0, 5.0), 10, 200.0),
        ("window(1,10)", (10, 10.0, 13.0), 0, 100.0),
        ("last_n(15)", (10, 5.0, 5.0), 10, 200.0),
    ],
)
def test_figures_of_means_are_of_their_steps(
    window: str, figures: tuple[int, float, float], warmup: int, printed: float
) -> None:
    """Of 40, nine times 10 and ten times 5 s: (5 + 10) ÷ 2 is the median, 180 ÷ 20 the mean."""
    run = measured(log(steps=EVERY_TENTH), window, averages=True)

    result = run.result
    assert figures == pytest.approx((result.num_steps, result.step_time_s, result.step_time_mean_s))
    assert (warmup, 20 - warmup) == (run.run.warmup_steps, run.run.measured_steps)
    assert {"tokens_per_sec_per_gpu": printed} == result.emitted


def test_a_window_shorter_than_a_line_of_means_has_no_figures() -> None:
    result = measured(log(steps=EVERY_TENTH), "last_n(9)", averages=True).result
    message = "each log line averages 10 steps, and none is entirely in last_n(9)"
    assert result.withheld
    assert (message, None) == (note_text(result.withheld), result.num_steps)


def test_lines_that_are_no_means_count_one_step_each() -> None:
    result = measured(log(steps=EVERY_TENTH), "skip_warmup(0)").result
    assert (3, 10.0) == (result.num_steps, result.step_time_s)


def test_a_mean_that_a_skipped_step_is_in_does_not_count() -> None:
    """One of steps 21 to 30 of 40: the line says how many, and not which."""
    lines = [Reading(step, step, 1.0, skipped=step == 30) for step in (10, 20, 30, 40)]
    found = measured(log(steps=tuple(lines)), "skip_warmup(10)", averages=True)

    means = "the means of 10 of 30, the first of steps 21 to 30"
    assert [f"{SKIPPED}{means}"] == [note_text(note) for note in found.result.notes]
    assert (20, 10) == (found.result.num_steps, found.run.warmup_steps)


def test_a_window_that_begins_with_a_skipped_step_begins_there() -> None:
    steps = [one._replace(skipped=one.step == 3) for one in log().steps]
    assert 2 == measured(log(steps=tuple(steps))).run.warmup_steps


READING = st.builds(
    Reading,
    line=st.integers(1, 10**9),
    step=st.integers(1, 10**6),
    step_time_s=st.floats(1e-6, 1e6),
    loss=st.none() | st.floats(),
    grad_norm=st.none() | st.floats(),
    peak_memory_bytes=st.none() | st.integers(1, 2**63 - 1),
    tokens=st.none() | st.sampled_from([128 * 8192, 1_050_000, 2 * 128 * 8192]),
    skipped=st.booleans(),
    model_tflops_per_sec_per_gpu=st.none() | st.floats(),
    tokens_per_sec_per_gpu=st.none() | st.floats(),
)
SKIPPED = "excludes steps that the optimizer skipped: "
WINDOWS = st.sampled_from(["last", "last_n(2)", "window(2,5)", "skip_warmup(0)", "skip_warmup(3)"])


@given(readings=st.lists(READING, max_size=8))
@example(readings=[Reading(n, n, 1.0, tokens_per_sec_per_gpu=1e308) for n in (3, 4)])
def test_rows_made_of_columns_are_those_of_each_step(readings: list[Reading]) -> None:
    """A number that is none, and a rate of 0 or below, is not known."""
    rows = step_rows(measured(log(steps=tuple(readings))).steps)

    expected = [
        StepRow(
            step=one.step,
            step_time_s=one.step_time_s,
            step_time_min_s=None,
            loss=numbers.finite(one.loss),
            grad_norm=numbers.finite(one.grad_norm),
            tokens=one.tokens,
            peak_memory_bytes=one.peak_memory_bytes,
            skipped=one.skipped,
            source_line=one.line,
            tokens_per_sec_per_gpu=numbers.positive(one.tokens_per_sec_per_gpu),
            model_tflops_per_sec_per_gpu=numbers.positive(one.model_tflops_per_sec_per_gpu),
        )
        for one in readings
    ]
    assert expected == list(rows)


@given(readings=st.lists(READING, unique_by=lambda one: one.step, max_size=8), name=WINDOWS)
def test_a_log_is_judged_in_columns_as_it_is_step_by_step(
    readings: list[Reading], name: str
) -> None:
    """A NaN counts anywhere, other tokens in the window; skipped steps do not, if they are few."""
    steps = sorted(readings, key=lambda one: one.step)
    end = ending(Steps.of(steps), done=True)
    both = StepRecord.model_fields.keys() & set(Reading._fields)
    records = [StepRecord(**{field: getattr(one, field) for field in both}) for one in steps]
    window = aggregation.named(name)
    given = log(steps=tuple(steps), outcome=end.outcome, error=end.error)

    result = measured(given, name).result

    is_picked = window.pick([one.step for one in steps])
    picked = [one for one, held in zip(steps, is_picked, strict=True) if held]
    kept, skips = ([one for one in picked if one.skipped is it] for it in (False, True))
    reason = note_text(result.withheld) if result.withheld else None
    notes = [note_text(note) for note in result.notes]
    message = f"{SKIPPED}{len(skips)} of {len(picked)}, the first is step {skips and skips[0].step}"
    odd = validity.not_finite(StepsRead.of(enumerate(records, start=1)))
    if odd:
        assert (odd[0], end.error) == (result.outcome, reason)
    elif len(skips) > len(kept):
        assert message == reason
    elif not picked:
        assert (note_text(window.none_held(len(steps))) if steps else end.error) == reason
    else:
        assert bool(skips) == (message in notes)
        check_figures(result, kept)


def check_figures(result: ResultRow, steps: list[Reading]) -> None:
    """The figures of steps, summed up one by one."""
    times, tokens = [one.step_time_s for one in steps], [one.tokens for one in steps]
    assert (len(times), times[-1]) == (result.num_steps, result.step_time_last_s)
    strange = 2 * 128 * 8192 in tokens
    unknown = strange and None in tokens
    assert unknown == (result.tokens_per_sec_per_gpu is None)
    assert strange == (result.model_tflops_per_sec_per_gpu is None)
    if strange and not unknown:
        rate = sum(one or 0 for one in tokens) / fsum(times) / 8
        assert rate == pytest.approx(result.tokens_per_sec_per_gpu)
