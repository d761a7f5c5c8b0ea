"""The columns of tables: the profiles of published pages, of models, systems and runs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from perfdb.site.data import SiteResult


@dataclass(frozen=True)
class Term:
    """An abbreviation: what it is short for, and what that means."""

    short: str
    name: str
    meaning: str

    @property
    def hint(self) -> str:
        """The whole of it in one line."""
        return f"{self.name}: {self.meaning}"


TERMS: dict[str, Term] = {
    term.short: term
    for term in (
        Term("GBS", "Global batch size", "samples in one optimizer step, over all GPUs."),
        Term("MBS", "Micro batch size", "samples that one GPU takes through the model at once."),
        Term(
            "LBS",
            "Local batch size",
            "samples that one data-parallel rank takes through the model between two "
            "accumulations (AutoModel).",
        ),
        Term(
            "GA",
            "Gradient accumulation",
            "forward and backward passes before an optimizer step: GBS ÷ (MBS × DP), for "
            "AutoModel GBS ÷ (LBS × DP).",
        ),
        Term("DP", "Data parallel size", "copies of the model: GPUs ÷ (TP × PP × CP)."),
        Term("TP", "Tensor parallel size", "GPUs that share each layer's matrices."),
        Term("PP", "Pipeline parallel size", "stages that the layers are cut into."),
        Term("CP", "Context parallel size", "GPUs that share the tokens of one sequence."),
        Term("EP", "Expert parallel size", "GPUs that share the experts of a layer."),
        Term("ETP", "Expert tensor parallel size", "GPUs that share each expert's matrices."),
        Term(
            "VP",
            "Virtual pipeline size",
            "model chunks in each pipeline stage. 0, 1 and – all say that there is no virtual "
            "pipeline; tables that follow a page show what it printed, the others –.",
        ),
        Term(
            "SP",
            "Sequence parallel",
            "whether the activations between tensor-parallel regions are split along the "
            "sequence: on or off, in tables of a release 1 or 0.",
        ),
        Term(
            "FSDP",
            "Fully sharded data parallel",
            "a switch or a size. A switch is on, or off for DDP (distributed data parallel); "
            "tables of a release print it as 1 or 0, as NeMo and DFM do. Of AutoModel it is the "
            "number of GPUs that share one copy of the training state.",
        ),
        Term(
            "MFU",
            "Model FLOPs utilisation",
            "model TFLOP/s/GPU ÷ the GPU's dense peak at the precision. (computed): not stated, "
            "and follows from the TFLOP/s that are.",
        ),
        Term(
            "FLOPs convention",
            "How model FLOPs are counted",
            "the name of the formula; – where none is stated. MFU and TFLOP/s by two conventions "
            "do not compare.",
        ),
        Term(
            "TFLOP/s/GPU",
            "Model TFLOP per second and GPU",
            "10¹² floating-point operations that the model's arithmetic needs, recomputation not "
            "counted.",
        ),
        Term(
            "Tokens/s/GPU",
            "Tokens per second and GPU",
            "tokens of the global batch ÷ step time ÷ GPUs. (computed): not stated, and follows "
            "from the tokens/s of all GPUs or the step time that are.",
        ),
        Term(
            "Step time",
            "Seconds of one optimizer step",
            "forward, backward, gradient reduction and update; the median over the window where it "
            "is measured, by the slowest rank in a run directory.",
        ),
        Term("p10–p90", "10th to 90th percentile", "the spread of the step times in the window."),
        Term("n", "Number of steps", "steps in the window that the figures are taken over."),
        Term("SFT", "Supervised fine-tuning", "training of all weights on examples of a task."),
        Term("LoRA", "Low-rank adaptation", "fine-tuning of small added matrices only."),
        Term(
            "TE",
            "Transformer Engine",
            "NVIDIA's kernels for the layers of a transformer: norm, linear layers and attention.",
        ),
        Term(
            "DeepEP",
            "Deep expert parallelism",
            "kernels that send the tokens of a MoE layer to the GPUs of their experts, and back.",
        ),
        Term(
            "FlexAttn",
            "FlexAttention of PyTorch",
            "attention whose mask is a function in Python, compiled into one kernel.",
        ),
        Term(
            "TorchSDPA",
            "Scaled dot-product attention of PyTorch",
            "attention by the fastest kernel that PyTorch has for the inputs.",
        ),
        Term(
            "Packed sequence length",
            "Several samples in one sequence",
            "the sequence length where several short samples of fine-tuning are put into one "
            "sequence, so that none is padded; tokens/s count the whole packed sequence.",
        ),
        Term("MoE", "Mixture of experts", "layers in which each token visits a few of many MLPs."),
        Term("Precision", "Precision recipe", "number format and scaling of the matrix products."),
    )
}


__all__ = ["TERMS"]

Kind = Literal[
    "model", "precision", "task", "text", "integer", "figure", "seconds", "percent", "spread",
    "outcome", "origin", "run", "log", "release", "moment", "system", "recipe", "options", "extra",
]  # fmt: skip
"""How a value is printed (`perfdb.site.cells`)."""

DAYS: Final = "Time to train 1T tokens in days"
"""A figure of pages that has no field."""


@dataclass(frozen=True)
class ShownColumn:
    """A column. `fields`: the first of these that a result knows is what is printed.

    `shown`: 'filled' drops it where a whole table has nothing in it, 'varies' also where every row
    says the same, 'once' says that in a line above the table, 'apart' keeps it where rows differ in
    nothing else, 'always' everywhere. `wide` lets its words wrap; `term` is its glossary entry.
    `ours`: with our names and thousands separators whatever a page printed, for rows of many pages.
    """

    title: str
    fields: tuple[str, ...]
    kind: Kind = "integer"
    digits: int = 0
    shown: Literal["filled", "varies", "once", "apart", "always"] = "filled"
    wide: bool = False
    term: str | None = None
    ours: bool = False

    @property
    def numeric(self) -> bool:
        """Whether it holds numbers, which are to the right."""
        return self.kind == "integer" or (self.kind == "extra" and not self.wide) or self.is_figure

    @property
    def is_figure(self) -> bool:
        """Whether it holds what was achieved, which leads to its evidence."""
        return self.is_rate or self.kind in ("seconds", "spread") or self.title == DAYS

    @property
    def is_rate(self) -> bool:
        """Whether more of it is better: sorting by it begins with the fastest."""
        return self.kind in ("figure", "percent")


@dataclass(frozen=True)
class Profile:
    """A family of tables. `is_offered`: its results can be downloaded next to it."""

    name: str
    columns: tuple[ShownColumn, ...]
    is_offered: bool = True


MODEL = ShownColumn("Model", ("model_title",), "model", shown="always")
GPUS = ShownColumn("#-GPUs", ("num_gpus",), shown="always")
GBS = ShownColumn("GBS", ("global_batch_size",), shown="always", term="GBS")
MBS = ShownColumn("MBS", ("micro_batch_size",), term="MBS")
LBS = ShownColumn("LBS", ("local_batch_size",), term="LBS")
GA = ShownColumn("GA", ("gradient_accumulation",), term="GA")
SEQUENCE = ShownColumn("Sequence Length", ("sequence_length",), shown="always")
FSDP = ShownColumn("FSDP", ("fsdp_size", "fsdp_enabled"), term="FSDP")
DP = ShownColumn("DP", ("data_parallel",), term="DP")
TP = ShownColumn("TP", ("tensor_parallel",), term="TP")
SP = ShownColumn("SP", ("sequence_parallel",), term="SP")
PP = ShownColumn("PP", ("pipeline_parallel",), term="PP")
CP = ShownColumn("CP", ("context_parallel",), term="CP")
VP = ShownColumn("VP", ("virtual_pipeline",), term="VP")
EP = ShownColumn("EP", ("expert_parallel",), term="EP")
ETP = ShownColumn("ETP", ("expert_tensor_parallel",), term="ETP")
LAYOUT = (MBS, LBS, TP, PP, CP, EP, ETP, VP, FSDP)
KERNELS = ShownColumn("Kernel Optimizations", ("kernels",), "text", wide=True)
PRECISION = ShownColumn("Precision", ("precision",), "precision", term="Precision")
CONTAINER = ShownColumn("Container", ("container",), "text", shown="varies")
TOKENS = ShownColumn(
    "Tokens / sec / GPU", ("tokens_per_sec_per_gpu",), "figure", term="Tokens/s/GPU"
)
TFLOPS = ShownColumn(
    "Model TFLOP / sec / GPU",
    ("model_tflops_per_sec_per_gpu",),
    "figure",
    digits=2,
    term="TFLOP/s/GPU",
)
STEP_TIME = ShownColumn("Step time (s)", ("step_time_s",), "seconds", digits=4, term="Step time")
SPREAD = ShownColumn("p10–p90 (s)", ("step_time_p10_s",), "spread", digits=4, term="p10–p90")
STEPS = ShownColumn("n", ("num_steps",), term="n")
MFU = ShownColumn("MFU", ("mfu",), "percent", digits=1, term="MFU")
CONVENTION = ShownColumn("FLOPs convention", ("flops_convention",), "text", term="FLOPs convention")
ORIGIN = ShownColumn("Origin", ("origin",), "origin", shown="always")
OUTCOME = ShownColumn("Outcome", ("outcome",), "outcome", shown="always")
TASK = ShownColumn("Task", ("task",), "task", shown="always")
SYSTEM = ShownColumn("System", ("system_title",), "system", shown="always")
VARIANT = ShownColumn("Variant", ("variant",), "text")

_TELLING = (
    PRECISION, MBS, LBS, GA, DP, TP, SP, PP, CP, VP, EP, ETP, FSDP,
    KERNELS,
    *(replace(column, shown="varies") for column in (SYSTEM, TASK, VARIANT)),
    ShownColumn("Options", ("options",), "options", shown="apart", wide=True),
)  # fmt: skip
"""Whatever distinguishes two cases (`perfdb.record.Case`)."""


def _own(*columns: ShownColumn) -> tuple[ShownColumn, ...]:
    """Columns that a family always prints, also where it has nothing to say in them."""
    return tuple(replace(column, shown="always") for column in columns)


def _telling(*columns: ShownColumn) -> tuple[ShownColumn, ...]:
    """The columns, and behind them those without which two rows could be printed alike."""
    own = {column.fields for column in columns}
    return (*columns, *(column for column in _TELLING if column.fields not in own))


def _family(name: str, *columns: ShownColumn) -> Profile:
    """A family of its own columns: what distinguishes rows, and where each is from, are behind."""
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
"""Its pages name no precision; DP, SP, GA and tokens are on some of them only."""

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
"""FSDP is on the pages of some systems only; what else is not always there is not theirs."""

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
"""Wide, and with sentences in it: the figures are before what they were reached with."""

SCALING = _family(
    "scaling",
    *_own(
        MODEL,
        PRECISION,
        replace(GPUS, title="GPUs"),
        replace(STEP_TIME, title="Training step time (seconds per step)"),
        ShownColumn("Throughput in tokens per second", ("tokens_per_sec",), "figure"),
        replace(MFU, title="Model flops utilization", digits=2),
        ShownColumn(DAYS, ("extras",), "extra"),
        replace(SEQUENCE, title="SeqLen"),
        ShownColumn("Layers", ("extras",), "extra"),
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


def ours(*columns: ShownColumn) -> tuple[ShownColumn, ...]:
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
_RUN = ShownColumn("Run", ("run_id",), "run", shown="always")
_LOG = ShownColumn("Log", ("source",), "log", wide=True)
_STARTED = ShownColumn("Started (UTC)", ("started_at",), "moment")
RELEASE = ShownColumn("Release", ("release",), "release", shown="always")
_RAN = (_RUN, OUTCOME, MODEL, PRECISION, GPUS)
_WHERE = (STEP_TIME, _LOG, replace(SYSTEM, kind="text"), RELEASE, _STARTED)
_RECIPE = ShownColumn("Recipe", ("recipe",), "recipe")
RUNS = Profile("runs", ours(*_RAN, *_RATES, *_WHERE, _RECIPE, CONVENTION))
LATEST = Profile("latest", ours(*_RAN, TFLOPS, *_WHERE), is_offered=False)
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

FIGURES: Final = {column.fields[0]: column for column in ours(TOKENS, TFLOPS, MFU, STEP_TIME)}
"""How each figure is printed, by its name."""

WORK: Final = ours(
    GBS,
    SEQUENCE,
    ShownColumn("Qualifiers", ("qualifiers",), "text", shown="varies"),
    ShownColumn("Variant", ("variant",), "text", shown="varies"),
    RELEASE,
    ShownColumn("Origin", ("origin",), "text", shown="always"),
)
"""The work of a row, behind its figures."""

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
    own = {"dfm": DFM, "automodel": AUTOMODEL}
    return own.get(framework, NEMO if task == "pretrain" else NEMO_FINE_TUNING)


def of_results(results: Sequence[SiteResult]) -> Profile:
    """The profile of a release's table: as its framework prints the task.

    Behind it are other figures that its pages state, what only measured rows have, and the columns
    of its pages without a field.
    """
    first = results[0]
    of_all_gpus = any(result.tokens_per_sec is not None for result in results)
    profile = of_table(first.framework, first.task, of_all_gpus=of_all_gpus)
    if not all(map(_is_packed, results)):
        profile = replace(
            profile, columns=tuple(PLAIN if it == PACKED else it for it in profile.columns)
        )
    own = {column.fields for column in profile.columns}
    others = [it for it in _MEASURED if it.fields not in own and _is_needed(it, results)]
    return replace(profile, columns=(*profile.columns, *others, *_extra_columns(results)))


def by_system(profile: Profile) -> Profile:
    """The profile of rows of a model, which their systems distinguish and name."""
    own = {column.fields: column for column in profile.columns}
    system, model = (own.pop(one.fields) for one in (SYSTEM, MODEL))
    first = (replace(system, shown="always"), replace(model, shown="varies"))
    return replace(profile, columns=(*first, *own.values()))


def _is_needed(column: ShownColumn, results: Sequence[SiteResult]) -> bool:
    """Whether a row states it, as a figure or how that was measured, or a row is measured."""
    if any(result.is_measured for result in results):
        return True
    is_stated = column.is_figure or column in (CONVENTION, STEPS)
    return is_stated and any(
        getattr(result, field) not in (None, "") for result in results for field in column.fields
    )


def _is_packed(result: SiteResult) -> bool:
    """Whether its page calls its sequences packed."""
    return "packed_sequence_length" in result.printed


def _extra_columns(results: Sequence[SiteResult]) -> Iterator[ShownColumn]:
    """A column for each title without a field; its words wrap where they are no numbers."""
    for title in dict.fromkeys(title for result in results for title in result.extras):
        if re.sub(r"\W", "", title.casefold()) not in _NOTHING_NEW:
            texts = [result.extras.get(title, "") for result in results]
            is_numeric = all(_NUMBER.fullmatch(text) for text in texts)
            yield ShownColumn(title, ("extras",), "extra", wide=not is_numeric)


_NUMBER: Final = re.compile(r"-?[\d.,]*|–|N/A|n/a")
_NOTHING_NEW: Final = {
    "layers", "size", "timetotrain1ttokensindays", "esttimetotrainindays10ttokens1kgpus",
    "esttimetofinetuneinmins10mtokens",
}  # fmt: skip
"""Letters and digits of titles of columns that follow from others, or are of the model."""
