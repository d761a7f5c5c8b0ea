"""Which columns a table has, in which order and with which digits: one literal table."""

from dataclasses import replace

from perfdb.site.profile import DAYS, Column, Profile

MODEL = Column("Model", ("model_title",), "model", shown="always")
GPUS = Column("#-GPUs", ("num_gpus",), shown="always")
GBS = Column("GBS", ("global_batch_size",), shown="always", term="GBS")
MBS = Column("MBS", ("micro_batch_size",), term="MBS")
LBS = Column("LBS", ("local_batch_size",), term="LBS")
GA = Column("GA", ("gradient_accumulation",), term="GA")
SEQUENCE = Column("Sequence Length", ("sequence_length",), shown="always")
FSDP = Column("FSDP", ("fsdp_size", "fsdp_enabled"), term="FSDP")
DP = Column("DP", ("data_parallel",), term="DP")
TP = Column("TP", ("tensor_parallel",), term="TP")
SP = Column("SP", ("sequence_parallel",), term="SP")
PP = Column("PP", ("pipeline_parallel",), term="PP")
CP = Column("CP", ("context_parallel",), term="CP")
VP = Column("VP", ("virtual_pipeline",), term="VP")
EP = Column("EP", ("expert_parallel",), term="EP")
ETP = Column("ETP", ("expert_tensor_parallel",), term="ETP")
LAYOUT = (MBS, LBS, TP, PP, CP, EP, ETP, VP, FSDP)
KERNELS = Column("Kernel Optimizations", ("kernels",), "text", wide=True)
PRECISION = Column("Precision", ("precision",), "precision", term="Precision")
CONTAINER = Column("Container", ("container",), "text", shown="varies")
TOKENS = Column("Tokens / sec / GPU", ("tokens_per_sec_per_gpu",), "figure", term="Tokens/s/GPU")
TFLOPS = Column(
    "Model TFLOP / sec / GPU",
    ("model_tflops_per_sec_per_gpu",),
    "figure",
    digits=2,
    term="TFLOP/s/GPU",
)
STEP_TIME = Column("Step time (s)", ("step_time_s",), "seconds", digits=4, term="Step time")
SPREAD = Column("p10–p90 (s)", ("step_time_p10_s",), "spread", digits=4, term="p10–p90")
STEPS = Column("n", ("num_steps",), term="n")
MFU = Column("MFU", ("mfu",), "percent", digits=1, term="MFU")
CONVENTION = Column("FLOPs convention", ("flops_convention",), "text", term="FLOPs convention")
ORIGIN = Column("Origin", ("origin",), "origin", shown="always")
OUTCOME = Column("Outcome", ("outcome",), "outcome", shown="always")
TASK = Column("Task", ("task",), "task", shown="always")
SYSTEM = Column("System", ("system_title",), "system", shown="always")
VARIANT = Column("Variant", ("variant",), "text")

_TELLING = (
    PRECISION, MBS, LBS, GA, DP, TP, SP, PP, CP, VP, EP, ETP, FSDP,
    KERNELS,
    *(replace(column, shown="varies") for column in (SYSTEM, TASK, VARIANT)),
    Column("Options", ("options",), "options", shown="apart", wide=True),
)  # fmt: skip
"""Whatever tells two cases apart (`perfdb.record.Case`)."""


def _own(*columns: Column) -> tuple[Column, ...]:
    """Columns that a family always prints, also where it has nothing to say in them."""
    return tuple(replace(column, shown="always") for column in columns)


def _telling(*columns: Column) -> tuple[Column, ...]:
    """The columns, and behind them those without which two rows could be printed alike."""
    own = {column.fields for column in columns}
    return (*columns, *(column for column in _TELLING if column.fields not in own))


def _family(name: str, *columns: Column) -> Profile:
    """A family of its own columns: what tells rows apart, and where each is from, are behind."""
    return Profile(name, (*_telling(*columns), CONTAINER, ORIGIN))


DFM = _family(
    "dfm",
    *_own(MODEL),
    replace(PRECISION, shown="once"),
    *_own(GPUS, GBS, MBS, SEQUENCE, FSDP),
    DP,
    *_own(TP),
    SP,
    *_own(PP, CP, VP, EP),
    GA,
    TOKENS,
    *_own(TFLOPS),
)
"""Its pages name no precision; DP, SP, GA and tokens stand on some of them only."""

NEMO = _family(
    "nemo",
    *_own(MODEL),
    PRECISION,
    *_own(GPUS, GBS, MBS, SEQUENCE),
    FSDP,
    *_own(TP, PP, CP, VP, EP),
    ETP,
    *_own(GA),
    STEP_TIME,
    *_own(TOKENS, TFLOPS),
    MFU,
)
"""FSDP stands on the pages of some systems only; what else is not always there is not theirs."""

PLAIN, PACKED = _own(
    SEQUENCE,
    replace(SEQUENCE, title="Packed Sequence Length", term="Packed sequence length"),
)
"""What a page of fine-tuning calls the sequence length, as its samples are."""

NEMO_FINE_TUNING = _family(
    "nemo-fine-tuning",
    *_own(MODEL, TASK),
    PRECISION,
    *_own(GPUS, GBS, MBS),
    PACKED,
    FSDP,
    *_own(TP, PP),
    CP,
    *_own(VP),
    EP,
    *_own(GA),
    STEP_TIME,
    *_own(TOKENS, TFLOPS),
    MFU,
)
"""Supervised and low-rank fine-tuning stand in one table."""

AUTOMODEL = _family(
    "automodel",
    *_own(MODEL),
    PRECISION,
    *_own(
        replace(GPUS, title="#GPUs"),
        replace(STEP_TIME, title="Time per Global Step (s)"),
        replace(TFLOPS, title="Model TFLOPs/sec/GPU"),
        replace(TOKENS, title="Tokens/sec/GPU"),
    ),
    MFU,
    *_own(GBS, MBS, LBS, GA, replace(SEQUENCE, title="Seq Length"), TP, PP, CP, EP, VP, FSDP),
    *_own(KERNELS),
)
"""Wide, and with sentences in it: the figures stand before what they were reached with."""

SCALING = _family(
    "scaling",
    *_own(
        MODEL,
        PRECISION,
        replace(GPUS, title="GPUs"),
        replace(STEP_TIME, title="Training step time (seconds per step)"),
        Column("Throughput in tokens per second", ("tokens_per_sec",), "figure"),
        replace(MFU, title="Model flops utilization", digits=2),
        Column(DAYS, ("extras",), "extra"),
        replace(SEQUENCE, title="SeqLen"),
        Column("Layers", ("extras",), "extra"),
        TP, PP, CP, EP, DP, VP, MBS, GBS, GA,
    ),
    TOKENS,
    TFLOPS,
)  # fmt: skip
"""The same work at many scales, with the throughput of all GPUs together."""

_OUR_TITLES = {
    GPUS: "GPUs", SEQUENCE: "Sequence length", KERNELS: "Kernels",
    TOKENS: "Tokens/s/GPU", TFLOPS: "TFLOP/s/GPU",
}  # fmt: skip


def ours(*columns: Column) -> tuple[Column, ...]:
    """Columns as they are in tables that follow no published page."""
    return tuple(
        replace(column, title=_OUR_TITLES.get(column, column.title), ours=True)
        for column in columns
    )


_RATES = (TOKENS, TFLOPS, MFU)
_MEASURED = (
    MODEL,
    replace(TASK, shown="varies"),
    PRECISION,
    GPUS,
    *_RATES,
    STEP_TIME,
    SPREAD,
    STEPS,
    ORIGIN, CONVENTION,
    GBS, MBS, LBS, GA, SEQUENCE, DP, TP, SP, PP, CP, VP, EP, ETP, FSDP,
    KERNELS,
    CONTAINER,
)  # fmt: skip
MEASURED = Profile("measured", ours(*_telling(*_MEASURED)))
_RUN = Column("Run", ("run_id",), "run", shown="always")
_LOG = Column("Log", ("source",), "log", wide=True)
_STARTED = Column("Started (UTC)", ("started_at",), "moment")
RELEASE = Column("Release", ("release",), "release", shown="always")
_RAN = (_RUN, OUTCOME, MODEL, PRECISION, GPUS)
_WHERE = (STEP_TIME, _LOG, replace(SYSTEM, kind="text"), RELEASE, _STARTED)
_RECIPE = Column("Recipe", ("recipe",), "recipe")
RUNS = Profile("runs", ours(*_RAN, *_RATES, *_WHERE, _RECIPE, CONVENTION))
LATEST = Profile("latest", ours(*_RAN, TFLOPS, *_WHERE), offered=False)
"""The latest runs on the landing page."""

_WORK = (
    PRECISION, GPUS, *_RATES, STEP_TIME, RELEASE, ORIGIN, CONVENTION,
    GBS, MBS, LBS, GA, SEQUENCE, TP, SP, PP, CP, VP, EP, ETP, FSDP,
    KERNELS,
    replace(VARIANT, shown="varies"),
    replace(CONTAINER, shown="apart"),
)  # fmt: skip
"""The rates where a narrow screen still has them, and with them where they are from."""

OF_MODEL = Profile("of-model", ours(*_telling(SYSTEM, replace(MODEL, shown="varies"), *_WORK)))
ON_SYSTEM = Profile("on-system", ours(*_telling(MODEL, *_WORK)))

CASE = Profile(
    "case",
    ours(
        MODEL, PRECISION, GPUS, SEQUENCE, GBS, MBS, LBS, GA, DP, TP, SP, PP, CP, VP, EP, ETP, FSDP,
        KERNELS,
        VARIANT,
        replace(CONTAINER, shown="filled"),
    ),
)  # fmt: skip
"""The lines of a run's case; those that say nothing are left out."""

PUBLISHED: dict[str, Profile] = {"dfm": DFM, "automodel": AUTOMODEL}
"""How a framework prints its own tables, where it has a way of its own."""

NAMED: dict[str, Profile] = {
    one.name: one
    for one in (DFM, NEMO, NEMO_FINE_TUNING, AUTOMODEL, SCALING, MEASURED, OF_MODEL, ON_SYSTEM)
}
"""The profiles that a page written by hand can ask for."""


def of_table(framework: str, task: str, *, of_all_gpus: bool = False) -> Profile:
    """The profile of a table: as the framework prints the task, whoever measured its rows.

    One whose rows state the throughput of all GPUs together shows how the work scales.
    """
    if of_all_gpus:
        return SCALING
    return PUBLISHED.get(framework, NEMO if task == "pretrain" else NEMO_FINE_TUNING)


def beside(family: Profile) -> list[Column]:
    """What the family has no column for, of what is measured."""
    own = {column.fields for column in family.columns}
    return [column for column in _MEASURED if column.fields not in own]
