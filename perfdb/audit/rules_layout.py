"""Rules over sizes: how GPUs, layers, experts and batches divide."""

from collections.abc import Iterator

from perfdb import catalog, fields
from perfdb.audit import equations, repair
from perfdb.audit.equations import EXTRA_LAYERS, SPLITS, size
from perfdb.audit.rules import ReleaseRows, identity, row_rule
from perfdb.record import Finding, Result, Severity

SPLITS_UNEVENLY = "automodel"
"""The framework with schedules that put one layer more on some stages."""


@row_rule("TP × PP × CP divides the number of GPUs")
def world_size(row: Result, release: ReleaseRows) -> Iterator[Finding]:
    """A row with a layout that leaves GPUs over."""
    product = equations.model_parallel(row)
    if row.num_gpus % product == 0:
        return
    sizes = " × ".join(f"{fields.short(field)} {size(row, field)}" for field in SPLITS)
    yield Finding(
        **identity("world_size", row),
        fields=("num_gpus", *SPLITS),
        expected=f"a multiple of {product:,} GPUs",
        found=f"{row.num_gpus:,} GPUs",
        message=f"{sizes} is {product:,} GPUs for one copy of the model, which does not divide "
        f"{row.num_gpus:,}",
        suggestion=repair.suggestion(row, "data_parallel", release),
    )


@row_rule("DP is GPUs ÷ (TP × PP × CP); the GPUs of FSDP divide DP × CP")
def data_parallel(row: Result, release: ReleaseRows) -> Iterator[Finding]:
    """A row that prints another DP than its layout leaves, or FSDP over GPUs that it does not."""
    ranks, suggestion = equations.data_parallel(row), None
    most = (ranks or 0) * size(row, "context_parallel")
    if ranks and row.data_parallel and ranks != row.data_parallel:
        field, expected, found = "data_parallel", f"DP {ranks:,}", f"DP {row.data_parallel:,}"
        message = (
            f"{row.num_gpus:,} GPUs ÷ {equations.model_parallel(row):,} for one copy of the model "
            f"is DP {ranks:,}; the row says {row.data_parallel:,}"
        )
        suggestion = repair.suggestion(row, "data_parallel", release)
    elif row.fsdp_size and equations.has_layout(row) and most % row.fsdp_size:
        field, expected, found = "fsdp_size", f"a divisor of {most:,}", f"FSDP {row.fsdp_size:,}"
        message = f"FSDP over {row.fsdp_size:,} GPUs does not divide the {most:,} of DP × CP"
    else:
        return
    yield Finding(
        **identity("data_parallel", row),
        fields=(field, "num_gpus", *SPLITS),
        expected=expected,
        found=found,
        message=message,
        suggestion=suggestion,
    )


@row_rule("EP × ETP divides TP × CP × DP; EP divides the number of experts")
def expert_parallel(row: Result, _release: ReleaseRows) -> Iterator[Finding]:
    """A row with experts that do not fit on the GPUs of a stage, or are not so many."""
    experts, tensor = size(row, "expert_parallel"), row.expert_tensor_parallel
    stage, model = equations.stage_gpus(row), catalog.models().get(row.model)
    if experts == 1:
        return
    if stage % (experts * (tensor or 1)):
        found = f"EP {experts}" + (f" × ETP {tensor}" if tensor else "")
        yield Finding(
            **identity("expert_parallel", row),
            fields=("expert_parallel", "expert_tensor_parallel", "num_gpus", "pipeline_parallel"),
            expected=f"a divisor of {stage:,}",
            found=found,
            message=f"{found} does not divide the {stage:,} GPUs of a pipeline stage",
        )
    elif model and not ((count := model.num_experts) and count % experts == 0):
        yield Finding(
            **identity("expert_parallel", row),
            severity=Severity.ERROR if count else Severity.WARNING,
            fields=("expert_parallel", "model"),
            expected=f"a divisor of {count}" if count else "EP 1",
            found=f"EP {experts}",
            message=f"{model.title} has {count or 'no'} experts, which EP {experts} cannot divide",
            suggestion=None if count else "EP 1",
        )


@row_rule("VP above 1 needs PP above 1, and PP × VP divides the layers")
def virtual_pipeline(row: Result, release: ReleaseRows) -> Iterator[Finding]:
    """A row with an impossible virtual pipeline, or one that needs an unstated layout."""
    parts, stages = size(row, "virtual_pipeline"), size(row, "pipeline_parallel")
    model, cuts = catalog.models().get(row.model), stages * parts
    layers, severity = model.num_layers if model else 0, Severity.ERROR
    divisible = any((layers + extra) % cuts == 0 for extra in range(EXTRA_LAYERS + 1))
    if parts == 1 or (stages > 1 and not model):
        return
    if stages == 1:
        expected = "VP 1, or PP above 1"
        message = f"VP {parts} without a pipeline: PP is {row.pipeline_parallel or 'not given'}"
    elif cuts > layers + EXTRA_LAYERS:
        expected = f"PP × VP up to {layers}"
        message = f"PP {stages} × VP {parts} is more than {layers} layers"
    elif divisible or row.framework == SPLITS_UNEVENLY:
        return
    else:
        severity, expected = Severity.INFO, f"a divisor of {layers} layers"
        message = (
            f"{layers} layers do not divide into PP {stages} × VP {parts} equal parts: the run "
            "needs a pipeline layout of its own"
        )
    yield Finding(
        **identity("virtual_pipeline", row),
        severity=severity,
        fields=("virtual_pipeline", "pipeline_parallel"),
        expected=expected,
        found=f"PP {stages}, VP {parts}",
        message=message,
        suggestion=repair.suggestion(row, "virtual_pipeline", release),
    )


@row_rule(
    "MBS × DP, or LBS × DP, is at most GBS, and MBS divides LBS; GBS below MBS means that the two "
    "are swapped"
)
def micro_batch(row: Result, release: ReleaseRows) -> Iterator[Finding]:
    """A row with micro-batches that do not fit into the global or the local batch."""
    if exchanged := equations.swapped(row):
        yield _swapped(row, exchanged)
        return
    ranks, field = equations.data_parallel(row) or 1, equations.batch_field(row)
    batch = equations.batch(row) or 0
    if batch * ranks > row.global_batch_size:
        batches = "micro-batches" if field == "micro_batch_size" else "local batches"
        yield Finding(
            **identity("micro_batch", row),
            fields=("global_batch_size", field, "data_parallel"),
            expected=f"GBS of at least {batch * ranks:,}",
            found=f"GBS {row.global_batch_size:,}",
            message=f"{ranks:,} data-parallel ranks with {batches} of {batch:,} make "
            f"{batch * ranks:,} samples; the global batch has {row.global_batch_size:,}",
            suggestion=repair.suggestion(row, "gradient_accumulation", release),
        )
    if row.local_batch_size and row.local_batch_size % (row.micro_batch_size or 1):
        yield Finding(
            **identity("micro_batch", row),
            fields=("micro_batch_size", "local_batch_size"),
            expected=f"a divisor of LBS {row.local_batch_size:,}",
            found=f"MBS {row.micro_batch_size:,}",
            message=f"local batches of {row.local_batch_size:,} do not divide into micro-batches "
            f"of {row.micro_batch_size:,}",
        )


def _swapped(row: Result, exchanged: Result) -> Finding:
    ranks, batch = equations.data_parallel(row), equations.batch(exchanged)
    accumulated = ""
    if row.gradient_accumulation is not None and ranks and batch:
        steps = exchanged.global_batch_size / (batch * ranks)
        same = steps == row.gradient_accumulation
        printed = "as printed" if same else "which is not what is printed"
        accumulated = f"; swapped, they give GA {steps:g}, {printed}"
    right = f"GBS {exchanged.global_batch_size:,}, MBS {exchanged.micro_batch_size:,}"
    return Finding(
        **identity("micro_batch", row),
        fields=("global_batch_size", "micro_batch_size"),
        expected=right,
        found=f"GBS {row.global_batch_size:,}, MBS {row.micro_batch_size:,}",
        message=f"a global batch of {row.global_batch_size:,} cannot hold micro-batches of "
        f"{row.micro_batch_size:,}: GBS and MBS look swapped{accumulated}",
        suggestion=f"swap them: {right}",
    )


@row_rule("GA is GBS ÷ (MBS × DP), a whole number (LBS instead of MBS for AutoModel)")
def gradient_accumulation(row: Result, release: ReleaseRows) -> Iterator[Finding]:
    """A row with a batch that is no whole number of accumulation steps, or not the printed one.

    Where GBS and MBS are swapped, the row is checked with the two exchanged.
    """
    meant, printed = equations.swapped(row) or row, row.gradient_accumulation
    batch, ranks = equations.batch(meant), equations.data_parallel(meant)
    gbs, field = meant.global_batch_size, equations.batch_field(meant)
    if not batch or not ranks or batch * ranks > gbs:
        return
    steps = gbs / (batch * ranks)
    if gbs % (batch * ranks) == 0 and printed in (None, steps):
        return
    swapped = "" if meant is row else " (GBS and MBS taken as swapped)"
    against = "no whole number" if printed is None else f"the row says {printed:,}"
    yield Finding(
        **identity("gradient_accumulation", row),
        fields=("gradient_accumulation", "global_batch_size", field, "data_parallel"),
        expected=f"GA {steps:g}",
        found=f"GA {printed:,}" if printed else None,
        message=f"GBS {gbs:,} ÷ ({fields.short(field)} {batch:,} × DP {ranks:,}) is {steps:g} "
        f"accumulation steps; {against}{swapped}",
        suggestion=repair.suggestion(meant, "gradient_accumulation", release),
    )
