"""Rules over sizes: how GPUs, layers, experts and batches divide."""

from collections.abc import Iterator

from perfdb import catalog, fields
from perfdb.audit import equations, repair
from perfdb.audit.base import ReleaseRows, Rule, identity
from perfdb.audit.equations import EXTRA_LAYERS, SPLITS, size
from perfdb.record import Finding, Result, Severity

SPLITS_UNEVENLY = "automodel"
"""Its schedules give some stages a layer more than others."""


def _world_size(release: ReleaseRows) -> Iterator[Finding]:
    """Rows whose layout leaves GPUs over."""
    for row in release.rows:
        product = equations.model_parallel(row)
        if row.num_gpus % product == 0:
            continue
        sizes = " × ".join(f"{fields.short(field)} {size(row, field)}" for field in SPLITS)
        yield Finding(
            **identity("world_size", row),
            severity=Severity.ERROR,
            fields=("num_gpus", *SPLITS),
            expected=f"a multiple of {product:,} GPUs",
            found=f"{row.num_gpus:,} GPUs",
            message=f"{sizes} is {product:,} GPUs for one copy of the model, which does not divide "
            f"{row.num_gpus:,}",
            suggestion=repair.suggestion(row, "data_parallel", release),
        )


def _data_parallel(release: ReleaseRows) -> Iterator[Finding]:
    """Rows that print another DP than their layout leaves, or FSDP over GPUs that it does not."""
    for row in release.rows:
        ranks = equations.data_parallel(row)
        if ranks and row.data_parallel and ranks != row.data_parallel:
            yield _other_ranks(row, ranks, release)
        elif ranks and row.fsdp_size and equations.has_layout(row):
            most = ranks * size(row, "context_parallel")
            if most % row.fsdp_size:
                yield _sharded(row, most)


def _other_ranks(row: Result, ranks: int, release: ReleaseRows) -> Finding:
    return Finding(
        **identity("data_parallel", row),
        severity=Severity.ERROR,
        fields=("data_parallel", "num_gpus", *SPLITS),
        expected=f"DP {ranks:,}",
        found=f"DP {row.data_parallel:,}",
        message=f"{row.num_gpus:,} GPUs ÷ {equations.model_parallel(row):,} for one copy of the "
        f"model is DP {ranks:,}; the row says {row.data_parallel:,}",
        suggestion=repair.suggestion(row, "data_parallel", release),
    )


def _sharded(row: Result, most: int) -> Finding:
    return Finding(
        **identity("data_parallel", row),
        severity=Severity.ERROR,
        fields=("fsdp_size", "num_gpus", *SPLITS),
        expected=f"a divisor of {most:,}",
        found=f"FSDP {row.fsdp_size:,}",
        message=f"FSDP over {row.fsdp_size:,} GPUs does not divide the {most:,} of DP × CP",
    )


def _expert_parallel(release: ReleaseRows) -> Iterator[Finding]:
    """Rows whose experts cannot be spread over the GPUs of a stage, or are not so many."""
    for row in release.rows:
        experts, model = size(row, "expert_parallel"), catalog.models().get(row.model)
        stage = equations.stage_gpus(row)
        if experts == 1:
            continue
        if stage % (experts * size(row, "expert_tensor_parallel")):
            yield _experts_in_stage(row, stage)
        elif model and not (model.num_experts and model.num_experts % experts == 0):
            yield _experts_of_model(row, model)


def _experts_in_stage(row: Result, stage: int) -> Finding:
    tensor = row.expert_tensor_parallel
    found = f"EP {row.expert_parallel}" + (f" × ETP {tensor}" if tensor else "")
    return Finding(
        **identity("expert_parallel", row),
        severity=Severity.ERROR,
        fields=("expert_parallel", "expert_tensor_parallel", "num_gpus", "pipeline_parallel"),
        expected=f"a divisor of {stage:,}",
        found=found,
        message=f"{found} does not divide the {stage:,} GPUs of a pipeline stage",
    )


def _experts_of_model(row: Result, model: catalog.Model) -> Finding:
    count = model.num_experts
    return Finding(
        **identity("expert_parallel", row),
        severity=Severity.ERROR if count else Severity.WARNING,
        fields=("expert_parallel", "model"),
        expected=f"a divisor of {count}" if count else "EP 1",
        found=f"EP {row.expert_parallel}",
        message=f"{model.title} has {count or 'no'} experts, which EP {row.expert_parallel} cannot "
        "divide",
        suggestion=None if count else "EP 1",
    )


def _virtual_pipeline(release: ReleaseRows) -> Iterator[Finding]:
    """Rows whose virtual pipeline cannot be, or needs a layout that the row does not state."""
    for row in release.rows:
        parts, stages = size(row, "virtual_pipeline"), size(row, "pipeline_parallel")
        if parts == 1 or not (wrong := _wrong_stages(row, stages, parts)):
            continue
        severity, expected, message = wrong
        yield Finding(
            **identity("virtual_pipeline", row),
            severity=severity,
            fields=("virtual_pipeline", "pipeline_parallel"),
            expected=expected,
            found=f"PP {stages}, VP {parts}",
            message=message,
            suggestion=repair.suggestion(row, "virtual_pipeline", release),
        )


def _wrong_stages(row: Result, stages: int, parts: int) -> tuple[Severity, str, str] | None:
    """How wrong PP × VP is, what it could be, and why; None where it can be."""
    if stages == 1:
        message = f"VP {parts} without a pipeline: PP is {row.pipeline_parallel or 'not given'}"
        return Severity.ERROR, "VP 1, or PP above 1", message
    if (model := catalog.models().get(row.model)) is None:
        return None
    layers, cuts = model.num_layers, stages * parts
    if cuts > layers + EXTRA_LAYERS:
        message = f"PP {stages} × VP {parts} is more than {layers} layers"
        return Severity.ERROR, f"PP × VP up to {layers}", message
    is_even = any((layers + extra) % cuts == 0 for extra in range(EXTRA_LAYERS + 1))
    if is_even or row.framework == SPLITS_UNEVENLY:
        return None
    message = (
        f"{layers} layers do not divide into PP {stages} × VP {parts} equal parts: the run needs "
        "a pipeline layout of its own"
    )
    return Severity.INFO, f"a divisor of {layers} layers", message


def _micro_batch(release: ReleaseRows) -> Iterator[Finding]:
    """Rows whose micro-batches do not fit into the global or the local batch."""
    for row in release.rows:
        exchanged, ranks = equations.swapped(row), equations.data_parallel(row) or 1
        if exchanged:
            yield _swapped(row, exchanged)
            continue
        if (equations.batch(row) or 0) * ranks > row.global_batch_size:
            yield _too_large(row, ranks, release)
        if row.local_batch_size and row.local_batch_size % (row.micro_batch_size or 1):
            yield _indivisible(row)


def _swapped(row: Result, exchanged: Result) -> Finding:
    right = f"GBS {exchanged.global_batch_size:,}, MBS {exchanged.micro_batch_size:,}"
    return Finding(
        **identity("micro_batch", row),
        severity=Severity.ERROR,
        fields=("global_batch_size", "micro_batch_size"),
        expected=right,
        found=f"GBS {row.global_batch_size:,}, MBS {row.micro_batch_size:,}",
        message=f"a global batch of {row.global_batch_size:,} cannot hold micro-batches of "
        f"{row.micro_batch_size:,}: GBS and MBS look swapped{_accumulated(row, exchanged)}",
        suggestion=f"swap them: {right}",
    )


def _accumulated(row: Result, exchanged: Result) -> str:
    """What the exchange does to the gradient accumulation that the row prints."""
    ranks, batch = equations.data_parallel(row), equations.batch(exchanged)
    if row.gradient_accumulation is None or not ranks or not batch:
        return ""
    steps = exchanged.global_batch_size / (batch * ranks)
    agrees = "as printed" if steps == row.gradient_accumulation else "which is not what is printed"
    return f"; swapped, they give GA {steps:g}, {agrees}"


def _too_large(row: Result, ranks: int, release: ReleaseRows) -> Finding:
    field, batch = equations.batch_field(row), equations.batch(row) or 0
    batches = "micro-batches" if field == "micro_batch_size" else "local batches"
    return Finding(
        **identity("micro_batch", row),
        severity=Severity.ERROR,
        fields=("global_batch_size", field, "data_parallel"),
        expected=f"GBS of at least {batch * ranks:,}",
        found=f"GBS {row.global_batch_size:,}",
        message=f"{ranks:,} data-parallel ranks with {batches} of {batch:,} make "
        f"{batch * ranks:,} samples; the global batch has {row.global_batch_size:,}",
        suggestion=repair.suggestion(row, "gradient_accumulation", release),
    )


def _indivisible(row: Result) -> Finding:
    return Finding(
        **identity("micro_batch", row),
        severity=Severity.ERROR,
        fields=("micro_batch_size", "local_batch_size"),
        expected=f"a divisor of LBS {row.local_batch_size:,}",
        found=f"MBS {row.micro_batch_size:,}",
        message=f"local batches of {row.local_batch_size:,} do not divide into micro-batches of "
        f"{row.micro_batch_size:,}",
    )


def _gradient_accumulation(release: ReleaseRows) -> Iterator[Finding]:
    """Rows whose batch is no whole number of accumulation steps, or not the printed number.

    Where GBS and MBS are swapped, the row is taken as it must have been meant.
    """
    for row in release.rows:
        meant = equations.swapped(row) or row
        batch, ranks = equations.batch(meant), equations.data_parallel(meant)
        if not batch or not ranks or batch * ranks > meant.global_batch_size:
            continue
        steps, rest = divmod(meant.global_batch_size, batch * ranks)
        if rest or meant.gradient_accumulation not in (None, steps):
            yield _other_steps(row, meant, ranks, release)


def _other_steps(row: Result, meant: Result, ranks: int, release: ReleaseRows) -> Finding:
    field, batch = equations.batch_field(meant), equations.batch(meant) or 1
    steps, printed = meant.global_batch_size / (batch * ranks), row.gradient_accumulation
    swapped = "" if meant is row else " (GBS and MBS taken as swapped)"
    against = "no whole number" if printed is None else f"the row says {printed:,}"
    return Finding(
        **identity("gradient_accumulation", row),
        severity=Severity.ERROR,
        fields=("gradient_accumulation", "global_batch_size", field, "data_parallel"),
        expected=f"GA {steps:g}",
        found=f"GA {printed:,}" if printed else None,
        message=f"GBS {meant.global_batch_size:,} ÷ ({fields.short(field)} {batch:,} × DP "
        f"{ranks:,}) is {steps:g} accumulation steps; {against}{swapped}",
        suggestion=repair.suggestion(meant, "gradient_accumulation", release),
    )


MICRO_BATCH = Rule(
    "micro_batch",
    "MBS × DP, or LBS × DP, is at most GBS, and MBS divides LBS; GBS below MBS means that the two "
    "are swapped",
    _micro_batch,
)
GRADIENT_ACCUMULATION = Rule(
    "gradient_accumulation",
    "GA is GBS ÷ (MBS × DP), a whole number (LBS in place of MBS for AutoModel)",
    _gradient_accumulation,
)
WORLD_SIZE = Rule("world_size", "TP × PP × CP divides the number of GPUs", _world_size)
DATA_PARALLEL = Rule(
    "data_parallel",
    "DP is GPUs ÷ (TP × PP × CP); the GPUs of FSDP divide DP × CP",
    _data_parallel,
)
EXPERT_PARALLEL = Rule(
    "expert_parallel",
    "EP × ETP divides TP × CP × DP; EP divides the number of experts",
    _expert_parallel,
)
VIRTUAL_PIPELINE = Rule(
    "virtual_pipeline",
    "VP above 1 needs PP above 1, and PP × VP divides the layers",
    _virtual_pipeline,
)
