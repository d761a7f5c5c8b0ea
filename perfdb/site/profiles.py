"""Which columns a table has, in which order and with which digits: one literal table."""

from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal[
    "model", "precision", "text", "integer", "figure", "seconds", "percent", "spread", "outcome",
    "origin", "run", "release", "moment",
]  # fmt: skip
"""How a value is printed (perfdb.site.tables)."""


@dataclass(frozen=True)
class Column:
    """A column. `fields`: the first of these that a result knows is what is printed.

    `shown`: 'filled' drops it where a whole table has nothing in it, 'varies' also where every row
    says the same, 'always' keeps it. `wide` lets its words wrap; `term` is its glossary entry.
    """

    title: str
    fields: tuple[str, ...]
    kind: Kind = "integer"
    digits: int = 0
    shown: Literal["filled", "varies", "always"] = "filled"
    wide: bool = False
    term: str | None = None

    @property
    def numeric(self) -> bool:
        """Whether it holds numbers, which stand to the right."""
        return self.kind in ("integer", "figure", "seconds", "percent", "spread")


@dataclass(frozen=True)
class Profile:
    """A family of tables."""

    name: str
    columns: tuple[Column, ...]


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
SPREAD = Column("p10–p90 (s)", ("step_time_p10_s",), "spread", digits=3, term="p10–p90")
STEPS = Column("n", ("num_steps",), term="n")
MFU = Column("MFU", ("mfu",), "percent", digits=1, term="MFU")
ORIGIN = Column("Origin", ("origin",), "origin", shown="always")
OUTCOME = Column("Outcome", ("outcome",), "outcome", shown="always")

DFM = Profile(
    "dfm",
    (MODEL, GPUS, GBS, MBS, SEQUENCE, FSDP, DP, TP, SP, PP, CP, VP, EP, TFLOPS, ORIGIN),
)
NEMO = Profile(
    "nemo",
    (
        MODEL, PRECISION, GPUS, GBS, MBS, SEQUENCE, FSDP, TP, PP, CP, VP, EP, ETP, GA, STEP_TIME,
        TOKENS, TFLOPS, MFU, CONTAINER, ORIGIN,
    ),
)  # fmt: skip
AUTOMODEL = Profile(
    "automodel",
    (
        MODEL, PRECISION, GPUS, STEP_TIME, TFLOPS, TOKENS, MFU, GBS, MBS, LBS, GA, SEQUENCE, TP,
        PP, CP, EP, VP, FSDP, KERNELS, CONTAINER, ORIGIN,
    ),
)  # fmt: skip
MEASURED = Profile(
    "measured",
    (
        MODEL,
        PRECISION,
        GPUS,
        STEP_TIME,
        SPREAD,
        STEPS,
        replace(TOKENS, title="Tokens/s/GPU"),
        replace(TFLOPS, title="TFLOP/s/GPU"),
        MFU,
        GBS, MBS, LBS, GA, SEQUENCE, DP, TP, SP, PP, CP, VP, EP, ETP, FSDP,
        replace(KERNELS, title="Kernels"),
        CONTAINER,
        ORIGIN,
    ),
)  # fmt: skip
RUNS = Profile(
    "runs",
    (
        Column("Run", ("run_id",), "run", shown="always"),
        OUTCOME,
        Column("Model", ("model_title",), "model", shown="always"),
        Column("System", ("system_title",), "text", shown="always"),
        GPUS,
        PRECISION,
        STEP_TIME,
        replace(TOKENS, title="Tokens/s/GPU"),
        replace(TFLOPS, title="TFLOP/s/GPU"),
        MFU,
        Column("Release", ("release",), "release", shown="always"),
        Column("Recipe", ("recipe",), "text"),
        Column("Started (UTC)", ("started_at",), "moment"),
    ),
)  # fmt: skip

CASE = Profile(
    "case",
    (
        MODEL, PRECISION, GPUS, SEQUENCE, GBS, MBS, LBS, GA, DP, TP, SP, PP, CP, VP, EP, ETP, FSDP,
        replace(KERNELS, title="Kernels"),
        Column("Variant", ("variant",), "text"),
        replace(CONTAINER, shown="filled"),
    ),
)  # fmt: skip
"""The lines of a run's case; those that say nothing are left out."""

PUBLISHED: dict[str, Profile] = {"dfm": DFM, "automodel": AUTOMODEL}
"""How a framework prints its own tables, where it has a way of its own."""


def of_table(framework: str, *, measured: bool) -> Profile:
    """The profile of a table; one that holds measured rows shows what was measured."""
    return MEASURED if measured else PUBLISHED.get(framework, NEMO)
