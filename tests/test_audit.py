"""The audit: each rule by worked examples, the seeds, and rows made to be right or wrong."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from math import floor, log10
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from perfdb.normalize import published_row

from perfdb import catalog
from perfdb.audit import acknowledged, arithmetic, document
from perfdb.audit.check import audit
from perfdb.audit.rules import RULES
from perfdb.audit.subject import Finding, Remark, Severity, Subject
from perfdb.db.rows import ResultRow
from perfdb.errors import InputError
from perfdb.pages import reader
from perfdb.pages.base import PageContext

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).parent / "data" / "audit"
SEEDS = ROOT.parent / "shared" / "seeds"
WORKED = {path.stem: yaml.safe_load(path.read_text()) for path in (DATA / "rules").glob("*.yml")}
EXAMPLES = yaml.safe_load((DATA / "arithmetic.yml").read_text())
ACKNOWLEDGED = DATA / "acknowledged" / "good.yaml"

needs_seeds = pytest.mark.skipif(not SEEDS.is_dir(), reason="the seeds are not beside the checkout")


def subject(**changed: object) -> Subject:
    """Llama 3 8B in BF16 on one DGX-H100, with what is given changed."""
    fields: dict[str, object] = {
        "framework": "megatron-bridge",
        "release": "26.02",
        "system": "dgx-h100",
        "model": "llama3-8b",
        "precision": "bf16",
        "num_gpus": 8,
        "sequence_length": 8192,
        "global_batch_size": 128,
    }
    return Subject.model_validate(fields | changed)


def examples(kind: str) -> list[Any]:
    return [
        pytest.param(rule, rows_of(worked, example), example, id=f"{rule}-{number}")
        for rule, worked in sorted(WORKED.items())
        for number, example in enumerate(worked[kind])
    ]


def rows_of(worked: dict[str, Any], example: dict[str, Any]) -> list[Subject]:
    rows = enumerate(example["rows"])
    return [subject(**{"source_line": line} | worked["common"] | row) for line, row in rows]


def test_every_rule_is_in_the_table_and_has_examples() -> None:
    members = {path.stem for path in (ROOT / "perfdb" / "audit" / "rules").glob("*.py")}
    assert set(RULES) == members - {"__init__", "base"} == set(WORKED)
    assert list(RULES) == [rule.NAME for rule in RULES.values()]
    assert all(worked["bad"] and worked["good"] for worked in WORKED.values())


SAID_WITH = (12, "7fc0779fdb02004d")
"""A version of the audit, and a digest of what its findings are made with."""
NO_PART_OF_IT = {
    "__init__", "acknowledged", "arithmetic", "check", "document", "expression", "sarif",
}  # fmt: skip
"""Modules that read documents and write reports: no stored finding is made with them."""


def meant(code: object) -> object:
    """What code does, the same in each version of Python: no comment, docstring or empty field."""
    match code:
        case ast.Expr(value=ast.Constant()):
            return None
        case ast.AST():
            fields = ((name, meant(value)) for name, value in ast.iter_fields(code))
            return (type(code).__name__, *((name, value) for name, value in fields if value))
        case list():
            return [said for one in code if (said := meant(one))]
    return None if code is None else repr(code)


@pytest.mark.parametrize(("rule", "rows", "example"), examples("bad"))
def test_a_rule_finds_what_is_wrong_and_says_what_would_be_right(
    rule: str, rows: list[Subject], example: dict[str, Any]
) -> None:
    """Severity, expected, found and suggestion as worked out by hand, on the right row."""
    remarks = list(RULES[rule].check(rows))
    wanted = example["finds"]
    shown = [
        {name: listed(getattr(remark, name)) for name in want}
        for remark, want in zip(remarks, wanted, strict=True)
    ]
    assert wanted == shown
    lines = example.get("lines", [0] * len(wanted))
    assert lines == [remark.row.source_line for remark in remarks]
    assert all(remark.message and remark.fields for remark in remarks)


@pytest.mark.parametrize(
    ("fails", "told"),
    [(lambda rows: 7 in lines_of(rows), [7]), (lambda rows: len(rows) > 1, [6, 7])],
)
def test_a_rule_that_fails_says_so_of_the_rows_and_the_others_are_audited(
    monkeypatch: pytest.MonkeyPatch, fails: Callable[[list[Subject]], bool], told: list[int]
) -> None:
    """Of those that it fails on by themselves, else of all that it fails on together."""

    def check(rows: list[Subject]) -> Iterator[Remark]:
        assert not fails(rows), "of a figure that nobody thought of"
        yield from RULES["world_size"].check(rows)

    rule = SimpleNamespace(NAME="data_parallel", MEANING="", check=check)
    monkeypatch.setitem(RULES, "data_parallel", rule)
    rows = [subject(source_line=line, tensor_parallel=3) for line in (6, 7)]

    found = audit(rows)

    whole = [("world_size", line) for line in (6, 7)]
    said = {(it.rule, it.source_line): it for it in found}
    assert {*whole, ("data_parallel", 6), ("data_parallel", 7)} == said.keys()
    failed = [it for it in found if "could not be applied: AssertionError: of a" in it.message]
    assert told == [it.source_line for it in failed]
    assert all(it.severity is Severity.ERROR and it.suggestion for it in failed)


def lines_of(rows: list[Subject]) -> list[int | None]:
    return [row.source_line for row in rows]


def listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize(("rule", "rows", "example"), examples("good"))
def test_a_rule_is_silent_where_nothing_is_wrong(
    rule: str, rows: list[Subject], example: dict[str, Any]
) -> None:
    assert [] == [remark.message for remark in RULES[rule].check(rows)], example["says"]


def test_rows_are_held_against_their_own_release_and_origin_alone() -> None:
    figures = {"tokens_per_sec_per_gpu": 2000.0, "model": "no-such-model"}
    rows = [
        subject(**figures, model_tflops_per_sec_per_gpu=400.0),
        subject(**figures, model_tflops_per_sec_per_gpu=800.0, release="26.04"),
        subject(**figures, model_tflops_per_sec_per_gpu=600.0, origin="measured"),
    ]
    assert {"unknown_model"} == {finding.rule for finding in audit(rows)}
    together = [row.model_copy(update={"release": "26.02", "origin": "published"}) for row in rows]
    assert "flops_per_token" in {finding.rule for finding in audit(together)}


def test_a_result_whose_figures_are_withheld_is_left_out() -> None:
    wrong = {"num_gpus": 7, "tensor_parallel": 2}
    assert () == audit([subject(**wrong, withheld="the run failed", outcome="failed")])
    assert ["world_size"] == [finding.rule for finding in audit([subject(**wrong)])]


def test_a_finding_carries_whose_it_is_and_the_gravest_comes_first() -> None:
    place = {"source": "page.md", "framework": "nemo", "release": "25.04", "result_id": 7}
    found = audit(
        [
            subject(**place, source_line=3, model="no-such-model"),
            subject(**place, source_line=9, data_parallel=4, tensor_parallel=1),
        ]
    )
    assert [Severity.ERROR, Severity.INFO] == [finding.severity for finding in found]
    assert ("data_parallel", "llama3-8b", "dgx-h100", "25.04", "page.md", 9, "nemo", 7) == (
        found[0].rule, found[0].model, found[0].system, found[0].release, found[0].source,
        found[0].source_line, found[0].framework, found[0].result_id,
    )  # fmt: skip


def test_a_message_names_models_systems_precisions_and_tasks_as_tables_do() -> None:
    """What the catalogue lacks keeps its name."""
    common = {"tokens_per_sec_per_gpu": 900.0, "qualifiers": "2-node", "task": "lora"}
    for model, title in (("llama3-70b", "Llama 3 70B"), ("no-such-model", "no-such-model")):
        rows = [
            subject(**common | {"model": model, "precision": "fp8_cs"}),
            subject(**common | {"model": model, "tokens_per_sec_per_gpu": 1000.0}),
        ]
        [remark] = RULES["faster_precision"].check(rows)
        assert (
            f"{title} (2-node) LoRA on DGX-H100 is slower in FP8-CS than in BF16: "
            "900.0 against 1,000 on 8 GPUs"
        ) == remark.message
        found = next(it for it in audit(rows) if it.rule == "faster_precision")
        assert f"{title} on DGX-H100, megatron-bridge 26.02" == document.subject(found)
        assert (model, "dgx-h100") == (found.model, found.system)


def test_a_right_row_is_not_called_slow_for_the_doubled_rate_of_another() -> None:
    """Llama 3 8B counts 51.47 GFLOP per token; BF16's tokens/s are printed twice as high."""
    bf16 = {"tokens_per_sec_per_gpu": 14144.0, "model_tflops_per_sec_per_gpu": 364.0}
    fp8 = {"tokens_per_sec_per_gpu": 10038.0, "model_tflops_per_sec_per_gpu": 516.7}
    rows = [subject(**bf16), subject(**fp8, precision="fp8_cs")]
    assert [rows[0]] == [one.row for one in RULES["flops_per_token"].check(rows)]
    assert [] == list(RULES["faster_precision"].check(rows))


def test_a_tokens_rate_from_rounded_samples_has_the_room_of_half_a_sample() -> None:
    """51.47 GFLOP per token; where rates are whole samples/s (128 tokens), 4 % off is rounding."""
    exact = [5120, 4864, 3840, 3200, 1664]
    rows = [
        subject(
            num_gpus=64, system=system, global_batch_size=gbs,
            tokens_per_sec_per_gpu=float(tokens), model_tflops_per_sec_per_gpu=tflops,
        )
        for gbs, (system, tokens, tflops) in enumerate(
            [*(("dgx-b200", tokens, tokens * 0.05147) for tokens in exact),
             ("dgx-h100", 1536, (1536 + 60) * 0.05147)], start=64,
        )
    ]  # fmt: skip
    assert ["low_precision_throughput"] == [finding.rule for finding in audit(rows)]


# The seeds


def subject_of(row: ResultRow, source: str) -> Subject:
    """A row of a page as the store would give it back."""
    figures = {name: getattr(row, name) for name in Subject.model_fields if hasattr(row, name)}
    case = row.case.model_dump(exclude={"qualifiers", "kernels"})
    words = {"qualifiers": row.case.qualifiers, "kernels": row.case.kernels}
    joined = {name: ", ".join(parts) for name, parts in words.items()}
    release = {"release": row.release.version, "container": row.release.container}
    return Subject.model_validate(figures | case | joined | release | {"source": source})


def seed(name: str) -> list[Subject]:
    """The results of a seed, as the page reader gives them."""
    read = reader.read(name, (SEEDS / name).read_text(), PageContext())
    return [subject_of(published_row(result), name) for result in read.results]


def said(finding: Finding) -> tuple[str, str, int | None]:
    return finding.severity.value, finding.rule, finding.source_line


@needs_seeds
def test_the_errors_of_the_nemo_page_are_found_and_no_others() -> None:
    found = audit(seed("nemo-25.04-performance-summary.txt"))
    sure = [finding for finding in found if finding.severity is not Severity.INFO]
    assert [
        ("error", "micro_batch", 132),
        ("error", "micro_batch", 252),
        ("error", "gradient_accumulation", 371),
        ("error", "micro_batch", 371),
        ("error", "flops_per_token", 438),
        ("warning", "missing_figure", 34),
        ("warning", "missing_figure", 161),
        ("warning", "missing_figure", 280),
    ] == [said(finding) for finding in sure]
    swaps = [finding for finding in sure if finding.rule == "micro_batch"]
    assert ["GBS 64, MBS 1", "GBS 64, MBS 1", "GBS 256, MBS 1"] == [it.expected for it in swaps]
    assert {"mixtral-8x22b"} == {it.model for it in swaps}
    (halved,) = (finding for finding in sure if finding.rule == "flops_per_token")
    assert ("llama3-70b", "dgx-gb200", "tokens/s/GPU 6,476") == (
        halved.model, halved.system, halved.suggestion,
    )  # fmt: skip
    missing = [finding for finding in sure if finding.rule == "missing_figure"]
    # 1804, 1523 and 824 tokens/s at 72·96·12288²·(1 + 2048/(6·12288)) + 6·12288·51200 = 1.07645e12
    assert ["1,942", "1,639", "887"] == [finding.expected for finding in missing]
    # Mixtral 8x22B counts causally, Llama 3.1 405B 1 % more than its shape has; the rest in full.
    notes = {finding.model for finding in found if finding.severity is Severity.INFO}
    assert notes <= {"mixtral-8x22b", "llama3.1-405b"}


@needs_seeds
@pytest.mark.parametrize(
    ("name", "results", "explained"),
    [
        (
            "automodel-performance-summary.txt",
            15,
            {"flops_formula", "unknown_model"},
        ),
        ("dfm-performance-benchmarks.md", 5, {"scaling"}),
        ("dfm-performance-skeleton.md", 0, set()),
    ],
)
def test_the_other_pages_have_no_error(name: str, results: int, explained: set[str]) -> None:
    """What is left is information: models whose formula is not known or not followed; 8 to 64 GPUs
    with FSDP, 30 % faster each."""
    rows = seed(name)
    found = audit(rows)
    assert results == len(rows)
    assert {Severity.INFO} >= {finding.severity for finding in found}
    assert explained >= {finding.rule for finding in found}


RECIPE = "nemotron4-dgxc-recipe.txt"


@needs_seeds
def test_the_recipe_s_tables_agree_with_themselves_and_its_example_does_not() -> None:
    rows = seed(RECIPE)
    assert 24 == len(rows)
    assert [] == [finding.message for finding in audit(rows)]
    text = (SEEDS / RECIPE).read_text()
    (slip,) = arithmetic.check(RECIPE, text)
    # 24·32·37748736 = 28991029248 and 12·32·6144·4096 = 9663676416
    assert ("arithmetic", ("attention flops",), "38654705664", "38666279738", 188) == (
        slip.rule, slip.fields, slip.expected, slip.found, slip.source_line,
    )  # fmt: skip
    assert 7 == len(list(arithmetic.claims(text)))


@needs_seeds
@pytest.mark.parametrize(
    ("right", "wrong", "rules"),
    [
        ("| 392725 |", "| 329725 |", {"total_throughput", "time_to_train"}),
        ("| 21.86 |", "| 28.16 |", {"time_to_train"}),
        ("| 4.41 |", "| 4.14 |", {"total_throughput", "scaling", "flops_per_token"}),
        ("| 43.91% |", "| 53.91% |", {"flops_per_token"}),
    ],
)
def test_a_slip_in_a_cell_of_the_recipe_s_tables_is_found(
    right: str, wrong: str, rules: set[str]
) -> None:
    """Two digits exchanged in a total, in days, in a step time; an MFU beside a step time of 2."""
    text = (SEEDS / RECIPE).read_text()
    assert 1 == text.count(right)
    read = reader.read(RECIPE, text.replace(right, wrong), PageContext())
    found = audit(subject_of(published_row(result), RECIPE) for result in read.results)
    assert rules == {finding.rule for finding in found}


# Rows that are made

H100, B200 = (catalog.peak(name, "bf16").tflops for name in ("dgx-h100", "dgx-b200"))  # type: ignore[union-attr]
GFLOP_PER_TOKEN = {"llama3-8b": 51.4704, "llama3-70b": 449.2225}
"""At 8192 tokens, attention causal: evaluated from the public formula, not by perfdb."""
POWERS = st.sampled_from([1, 2, 4, 8])
PRINTED = {
    "step_time_s": "Step Time (s)",
    "tokens_per_sec_per_gpu": "Tokens/s/GPU",
    "model_tflops_per_sec_per_gpu": "Model TFLOP/s/GPU",
    "mfu": "MFU",
}


@st.composite
def consistent(draw: st.DrawFn, system: str, peak: float, model: str) -> Mapping[str, Any]:
    """A row of which every number follows from a few, printed with rounding."""
    tensor, pipeline, context, ranks, accumulation, micro = (draw(POWERS) for _ in range(6))
    gpus = tensor * pipeline * context * ranks
    gbs = micro * ranks * accumulation
    mfu = draw(st.floats(0.2, 0.6))
    tokens = mfu * peak * 1000 / GFLOP_PER_TOKEN[model]
    step_time = gbs * 8192 / tokens / gpus
    digits = {name: draw(st.sampled_from(choice)) for name, choice in DIGITS.items()}
    texts = {
        "Step Time (s)": f"{step_time:.{digits['step'] + max(0, -floor(log10(step_time)))}f}",
        "Tokens/s/GPU": f"{tokens:,.{digits['rate']}f}",
        "Model TFLOP/s/GPU": f"{mfu * peak:,.{digits['rate']}f}",
        "MFU": f"{mfu:.{digits['share']}%}",
    }
    figures = {name: value_of(texts[title]) for name, title in PRINTED.items()}
    return figures | {
        "system": system, "model": model, "num_gpus": gpus, "global_batch_size": gbs,
        "micro_batch_size": micro, "gradient_accumulation": accumulation, "data_parallel": ranks,
        "tensor_parallel": tensor, "pipeline_parallel": pipeline, "context_parallel": context,
        "raw": texts,
    }  # fmt: skip


DIGITS = {"step": [2, 3, 4], "rate": [0, 1, 2], "share": [1, 2]}


def value_of(text: str) -> float:
    number = float(text.rstrip("%").replace(",", ""))
    return number / 100 if text.endswith("%") else number


@st.composite
def releases(draw: st.DrawFn) -> list[Mapping[str, Any]]:
    model = draw(st.sampled_from(sorted(GFLOP_PER_TOKEN)))
    systems = {"dgx-h100": H100, "dgx-b200": B200}
    return [draw(consistent(system, peak, model)) for system, peak in systems.items()]


@given(releases())
@settings(max_examples=150, deadline=None)
def test_a_consistent_row_printed_with_rounding_is_never_found(rows: list[dict[str, Any]]) -> None:
    assert [] == [finding.message for finding in audit(subject(**row) for row in rows)]


SYSTEMS = ("dgx-h100", "dgx-b200", "dgx-gb200", "dgx-gb300")
TITLES = {**PRINTED, "tokens_per_sec": "Throughput in tokens per second"}


@st.composite
def local_batch(draw: st.DrawFn) -> Mapping[str, Any]:
    """Parallel and batch sizes of AutoModel: local batches of whole micro-batches, and FSDP."""
    tensor, pipeline, context, ranks, accumulation, micro, times = (draw(POWERS) for _ in range(7))
    return {
        "num_gpus": tensor * pipeline * context * ranks, "tensor_parallel": tensor,
        "pipeline_parallel": pipeline, "context_parallel": context, "micro_batch_size": micro,
        "local_batch_size": times * micro, "gradient_accumulation": accumulation,
        "global_batch_size": times * micro * ranks * accumulation,
        "fsdp_size": ranks * context // draw(st.sampled_from([1, context, ranks])),
    }  # fmt: skip


@st.composite
def printed_releases(draw: st.DrawFn) -> list[Mapping[str, Any]]:
    """A row on each of four systems, in columns that the page has or lacks; one rounds coarsely.

    The page rounds every number, or cuts the digits off.
    """
    model, cut = draw(st.sampled_from(sorted(GFLOP_PER_TOKEN))), draw(st.booleans())
    columns = draw(st.sets(st.sampled_from(sorted(TITLES)), min_size=2))
    coarse = draw(st.sampled_from(SYSTEMS))
    rows = []
    for system in SYSTEMS:
        sizes, mfu = draw(local_batch()), draw(st.floats(0.2, 0.6))
        peak = catalog.peak(system, "bf16").tflops  # type: ignore[union-attr]
        rate = mfu * peak * 1000 / GFLOP_PER_TOKEN[model]
        step_time = sizes["global_batch_size"] * 8192 / rate / sizes["num_gpus"]
        exact = {
            "step_time_s": step_time, "tokens_per_sec_per_gpu": rate, "mfu": 100 * mfu,
            "model_tflops_per_sec_per_gpu": mfu * peak, "tokens_per_sec": rate * sizes["num_gpus"],
        }  # fmt: skip
        least = max(0, -floor(log10(step_time)))
        more = {"step_time_s": least + (0 if system == coarse else 2), "mfu": 2}
        texts = {name: digits(exact[name], more.get(name, 0), cut) for name in columns}
        figures = {name: float(text) for name, text in texts.items()}
        if "mfu" in figures:
            figures["mfu"], texts["mfu"] = figures["mfu"] / 100, f"{texts['mfu']}%"
        raw = {TITLES[name]: text for name, text in texts.items()}
        rows.append(sizes | figures | {"system": system, "model": model, "raw": raw})
    return rows


def digits(value: float, decimals: int, cut: bool) -> str:
    """A number with so many decimals, rounded or cut."""
    shown = floor(value * 10**decimals) / 10**decimals if cut else value
    return f"{shown:.{decimals}f}"


@given(printed_releases())
@settings(max_examples=150, deadline=None)
def test_consistent_local_batches_and_cut_digits_are_never_found(
    rows: list[dict[str, Any]],
) -> None:
    """One row's step time with a single digit excuses nothing and contradicts nothing."""
    found = audit(subject(framework="automodel", **row) for row in rows)
    assert [] == [finding.message for finding in found]


CHANGEABLE = (
    "step_time_s", "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu", "num_gpus",
    "sequence_length", "global_batch_size", "micro_batch_size", "gradient_accumulation",
    "data_parallel", "tensor_parallel", "pipeline_parallel", "context_parallel",
)  # fmt: skip


@given(releases(), st.sampled_from(CHANGEABLE), st.floats(0.1, 4), st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_field_that_is_a_tenth_off_is_found(
    rows: list[dict[str, Any]], field: str, off: float, more: bool
) -> None:
    row = {"sequence_length": 8192} | rows[0]
    row[field] = changed(row[field], 1 + off if more else 1 / (1 + off))
    row["raw"] = {title: text for title, text in row["raw"].items() if title != PRINTED.get(field)}
    found = audit([subject(**row), subject(**rows[1])])
    assert found, f"{field} {row[field]}"


def test_an_mfu_of_one_whose_cell_is_lost_is_known_to_a_percent() -> None:
    """1.0 is 100 %, not a number rounded to whole ones: half of it does not pass for it."""
    row = {"step_time_s": 7.44, "model_tflops_per_sec_per_gpu": 494.0, "mfu": 1.0}
    common = {"system": "dgx-h100", "model": "llama3-70b", "precision": "bf16"}
    assert "mfu" in {finding.rule for finding in audit([subject(**row, **common, raw={})])}


def changed(value: float, factor: float) -> float:
    """A count stays a count, and becomes another."""
    if isinstance(value, int):
        return (
            max(1, round(value * factor)) if round(value * factor) not in (0, value) else value + 1
        )
    return value * factor


# Arithmetic in documents


@pytest.mark.parametrize("line", EXAMPLES["right"])
def test_a_calculation_that_comes_out_is_no_finding(line: str) -> None:
    assert list(arithmetic.claims(line))
    assert () == arithmetic.check("page.md", line)


@pytest.mark.parametrize("line", EXAMPLES["no claim"])
def test_what_is_no_calculation_is_let_be(line: str) -> None:
    assert () == arithmetic.check("page.md", line)


@pytest.mark.parametrize(("line", "wanted"), EXAMPLES["wrong"].items())
def test_a_calculation_that_does_not_come_out_is_found(line: str, wanted: list[str]) -> None:
    found = arithmetic.check("page.md", f"Text.\n{line}\n")
    shown = [word for finding in found for word in (finding.severity.value, finding.expected)]
    assert wanted == shown
    assert {2} == {finding.source_line for finding in found}


@given(
    st.lists(st.integers(1, 10**6), min_size=2, max_size=5),
    st.lists(st.sampled_from("+-*"), min_size=4, max_size=4),
    st.integers(-5, 5),
)
def test_whole_numbers_must_come_out_exactly(
    numbers: list[int], operators: list[str], slip: int
) -> None:
    said = str(numbers[0])
    for operator, number in zip(operators, numbers[1:], strict=False):
        said += f" {operator} {number}"
    right = eval(said)  # the oracle: Python's own arithmetic on text that was made here
    text = f"{said} = {right + slip}"
    room = 10 ** (len(str(right + slip)) - len(str(right + slip).rstrip("0")))
    if slip == 0 or room < 1000:
        assert bool(slip) is bool(arithmetic.check("page.md", text)), text


@given(st.text(alphabet="0123456789.,eE+-*/^()= x×%h\n", max_size=200))
def test_no_text_breaks_the_search_for_calculations(text: str) -> None:
    assert all(finding.rule == "arithmetic" for finding in arithmetic.check("page.md", text))


@pytest.mark.parametrize(
    "line",
    ["9" * 100_000, "1+" * 50_000 + "1=1", "(" * 50_000 + "1=1", "a" * 100_000 + "!=1 2*3=6"],
)
def test_a_long_line_takes_no_time(line: str) -> None:
    """The test suite's time limit is the judge: each would run for minutes if it were quadratic."""
    arithmetic.check("page.md", line)


# Acknowledgements


def entries(path: Path) -> tuple[acknowledged.Entry, ...]:
    return acknowledged.entries(f"acknowledged/{path.name}", path.read_text())


@needs_seeds
def test_an_acknowledged_finding_says_by_whom_and_why() -> None:
    found = acknowledged.explained(
        audit(seed("nemo-25.04-performance-summary.txt")), entries(ACKNOWLEDGED)
    )
    explained = [finding for finding in found if finding.acknowledged]
    assert ["micro_batch"] * 3 + ["flops_per_token"] == [finding.rule for finding in explained]
    words = "the page swaps the two columns (A. Person, 2026-01-31)"
    assert words == explained[0].acknowledged
    assert () == acknowledged.unused(found, entries(ACKNOWLEDGED))


def test_an_acknowledgement_that_matches_nothing_is_told() -> None:
    first, second = acknowledged.unused((), entries(ACKNOWLEDGED))
    assert (
        "acknowledged/good.yaml:1: no finding matches: micro_batch mixtral-8x22b nemo 25.04; "
        "remove the entry if the number was mended"
    ) == str(first)
    assert 8 == second.line


@pytest.mark.parametrize(
    ("named", "remedy"),
    [
        ("model: mixtral-8x22", "no 'mixtral-8x22': did you mean mixtral-8x22b?"),
        ("system: dgx-gb20", "no 'dgx-gb20': did you mean dgx-gb200?"),
        ("model: another-model", "remove the entry if the number was mended"),
        ("model: llama3-8b", "remove the entry if the number was mended"),
    ],
)
def test_a_name_that_nothing_has_is_told_with_the_one_it_is_like(named: str, remedy: str) -> None:
    """Of a model that the catalogue lacks a finding knows the name."""
    [other] = audit([subject(model="another-model")])
    known = f"- {{rule: peak, {named}, reason: none, by: A. Person, date: 2026-01-31}}"
    [problem] = acknowledged.unused([other], acknowledged.entries("reviewed.yaml", known))
    assert remedy == problem.remedy


def swapped(line: int, tokens_per_sec_per_gpu: float) -> Subject:
    """128 × 8,192 tokens in 10.7 s on 8 GPUs are 12,250 tokens/s/GPU: another rate is wrong."""
    rate = {"step_time_s": 10.7, "tokens_per_sec_per_gpu": tokens_per_sec_per_gpu}
    return subject(source="page.md", source_line=line, micro_batch_size=line, **rate)


@pytest.mark.parametrize(
    ("narrowed", "explained", "told"),
    [
        ("", [], "2 results match, and it was reviewed for 1: throughput page.md; look at each"),
        (", results: 2", [7, 9], ""),
        (", line: 7", [7], ""),
        (", found: '14,000'", [7], ""),
        (", found: '122000'", [9], ""),
        (", line: 9, found: '14000'", [], ""),
    ],
)
def test_an_acknowledgement_holds_for_as_many_results_as_were_reviewed(
    narrowed: str, explained: list[int], told: str
) -> None:
    """A row that is ten times off came to the page later: nobody has looked at it."""
    found = [
        one for one in audit([swapped(7, 14_000), swapped(9, 122_000)]) if one.rule == "throughput"
    ]
    assert [7, 9] == sorted(one.source_line or 0 for one in found)
    text = (
        f"[{{rule: throughput, source: page.md, reason: asked, by: A, date: 2026-01-31{narrowed}}}]"
    )
    known = acknowledged.entries("reviewed.yaml", text)
    judged = acknowledged.explained(found, known)
    assert explained == sorted(one.source_line or 0 for one in judged if one.acknowledged)
    exceeded = list(map(str, acknowledged.exceeded(judged, known)))
    assert bool(told) == bool(exceeded)
    assert told in "".join(exceeded)


@pytest.mark.parametrize("text", ["", "\n\n", "# none\n\n  # yet\n", "[]"])
def test_a_reviewed_file_without_entries_accepts_nothing(text: str) -> None:
    assert () == acknowledged.entries("reviewed.yaml", text)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no-reason.yaml", ":7: acknowledged.1.reason: is required and missing; add it"),
        ("no-name.yaml", ":11: acknowledged.1.by: String should have at least 1 character"),
        ("no-rule.yaml", ":7: rule: no rule 'flops_per_tokens'; did you mean flops_per_token?"),
        ("no-list.yaml", ":1: acknowledged: expected a list"),
    ],
)
def test_an_acknowledgement_without_reason_name_or_rule_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        entries(DATA / "acknowledged" / name)
    assert str(caught.value).startswith(f"acknowledged/{name}{message}")


def test_the_reviewed_file_of_the_repository_can_be_read() -> None:
    path = ROOT / "data" / "acknowledged.yaml"
    assert isinstance(acknowledged.entries(str(path), path.read_text()), tuple)


def test_the_page_of_the_rules_says_what_the_code_says() -> None:
    page = (ROOT / "docs" / "reference" / "audit.md").read_text()
    rules = page[page.index("## Rules") :]
    listed = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", rules, re.MULTILINE))
    meanings = {name: rule.MEANING for name, rule in RULES.items()}
    assert meanings | {arithmetic.NAME: arithmetic.MEANING} == listed
