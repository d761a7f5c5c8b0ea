"""The columns of tables: the profiles of published pages, of models, systems and runs."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from perfdb.fields import BY_NAME
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


def _terms() -> dict[str, Term]:
    read = tomllib.loads(Path(__file__).with_name("terms.toml").read_text(encoding="utf-8"))
    return {short: Term(short, **words) for short, words in read.items()}


TERMS: Final = _terms()
"""The glossary, in the order of its page."""

Kind = Literal[
    "model", "precision", "task", "text", "integer", "figure", "seconds", "percent", "spread",
    "outcome", "origin", "run", "log", "release", "moment", "system", "recipe", "options", "extra",
]  # fmt: skip
"""How a value is printed (`perfdb.site.cells`)."""

DAYS: Final = "Time to train 1T tokens in days"
"""A figure of pages that has no field."""


@dataclass(frozen=True)
class ShownColumn:
    """A column. It prints the first of its `fields` that a result knows.

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

    @property
    def is_of_runs(self) -> bool:
        """Whether its rows are runs, however they ended."""
        return self.columns[0].kind == "run"


def _size(field: str) -> ShownColumn:
    """A column that is called as its field is, by an abbreviation of the glossary."""
    short = BY_NAME[field].short
    return ShownColumn(short, (field,), term=short)


MODEL = ShownColumn("Model", ("model_title",), "model", shown="always")
GPUS = ShownColumn("#-GPUs", ("num_gpus",), shown="always")
GBS = replace(_size("global_batch_size"), shown="always")
MBS, LBS, GA = map(_size, ("micro_batch_size", "local_batch_size", "gradient_accumulation"))
SEQUENCE = ShownColumn("Sequence Length", ("sequence_length",), shown="always")
PACKED = replace(SEQUENCE, title="Packed Sequence Length", term="Packed sequence length")
"""What a page of fine-tuning calls it where several samples are in one sequence."""
FSDP = ShownColumn("FSDP", ("fsdp_size", "fsdp_enabled"), term="FSDP")
DP, TP, SP = map(_size, ("data_parallel", "tensor_parallel", "sequence_parallel"))
PP, CP, VP = map(_size, ("pipeline_parallel", "context_parallel", "virtual_pipeline"))
EP, ETP = map(_size, ("expert_parallel", "expert_tensor_parallel"))
LAYOUT = (MBS, LBS, TP, PP, CP, EP, ETP, VP, FSDP)
KERNELS = ShownColumn("Kernel Optimizations", ("kernels",), "text", wide=True)
PRECISION = ShownColumn("Precision", ("precision",), "precision", term="Precision")
RATE = ShownColumn("Tokens / sec / GPU", ("tokens_per_sec_per_gpu",), "figure", term="Tokens/s/GPU")
TFLOPS = ShownColumn(
    "Model TFLOP / sec / GPU", ("model_tflops_per_sec_per_gpu",), "figure", 2, term="TFLOP/s/GPU"
)
STEP_TIME = ShownColumn("Step time (s)", ("step_time_s",), "seconds", 4, term="Step time")
STEPS = ShownColumn("n", ("num_steps",), term="n")
MFU = ShownColumn("MFU", ("mfu",), "percent", 1, term="MFU")
CONVENTION = ShownColumn("FLOPs convention", ("flops_convention",), "text", term="FLOPs convention")
ORIGIN = ShownColumn("Origin", ("origin",), "origin", shown="always")
TASK = ShownColumn("Task", ("task",), "task", shown="always")
SYSTEM = ShownColumn("System", ("system_title",), "system", shown="always")
VARIANT = ShownColumn("Variant", ("variant",), "text")

_KNOWN: Final[Mapping[str, ShownColumn]] = {
    **{it.title: it for it in (GBS, GA, DP, SP, *LAYOUT)},
    "model": MODEL,
    "gpus": GPUS,
    "sequence": SEQUENCE,
    "packed": PACKED,
    "kernels": KERNELS,
    "precision": PRECISION,
    "tokens": RATE,
    "all-tokens": ShownColumn("Throughput in tokens per second", ("tokens_per_sec",), "figure"),
    "tflops": TFLOPS,
    "step": STEP_TIME,
    "spread": ShownColumn("p10–p90 (s)", ("step_time_p10_s",), "spread", 4, term="p10–p90"),
    "n": STEPS,
    "mfu": MFU,
    "utilization": replace(MFU, title="Model flops utilization", digits=2),
    "days": ShownColumn(DAYS, ("extras",), "extra"),
    "layers": ShownColumn("Layers", ("extras",), "extra"),
    "convention": CONVENTION,
    "container": ShownColumn("Container", ("container",), "text", shown="varies"),
    "origin": ORIGIN,
    "origin-word": replace(ORIGIN, kind="text"),
    "outcome": ShownColumn("Outcome", ("outcome",), "outcome", shown="always"),
    "task": TASK,
    "system": SYSTEM,
    "system-word": replace(SYSTEM, kind="text"),
    "variant": VARIANT,
    "qualifiers": ShownColumn("Qualifiers", ("qualifiers",), "text"),
    "options": ShownColumn("Options", ("options",), "options", wide=True),
    "run": ShownColumn("Run", ("run_id",), "run", shown="always"),
    "log": ShownColumn("Log", ("source",), "log", wide=True),
    "started": ShownColumn("Started (UTC)", ("started_at",), "moment"),
    "release": ShownColumn("Release", ("release",), "release", shown="always"),
    "recipe": ShownColumn("Recipe", ("recipe",), "recipe"),
}
"""Every column by its word in a profile."""
ORDERED: Final = {word: it.fields for word, it in _KNOWN.items() if it.fields != ("extras",)}
"""The fields of the columns that have some, by the word for each."""
_SHOWN: Final[Mapping[str, Literal["filled", "varies", "once", "apart", "always"]]] = {
    "!": "always", "?": "varies", "~": "apart", "=": "once", "+": "filled",
}  # fmt: skip
"""The signs behind the word of a column that say when it is shown."""
_TELLING: Final = (
    "precision MBS LBS GA DP TP SP PP CP VP EP ETP FSDP kernels system? task? variant? options~"
)
"""Whatever distinguishes two cases (`perfdb.record.Case`)."""


def _columns(words: str, titles: Mapping[str, str] | None = None) -> tuple[ShownColumn, ...]:
    """The columns of these words; … are all others that distinguish two cases."""
    own = [word.rstrip("".join(_SHOWN)) for word in words.split()]
    others = (it for it in _TELLING.split() if it.rstrip("".join(_SHOWN)) not in own)
    made = []
    for word in words.replace("…", " ".join(others)).split():
        column = _KNOWN[word.rstrip("".join(_SHOWN))]
        title = (titles or {}).get(column.title, column.title)
        made.append(replace(column, title=title, shown=_SHOWN.get(word[-1], column.shown)))
    return tuple(made)


DFM = Profile("dfm", _columns(
    "model precision= gpus GBS MBS! sequence FSDP! DP TP! SP PP! CP! VP! EP! GA tokens tflops! … "
    "container origin"
))  # fmt: skip
"""Its pages name no precision; DP, SP, GA and tokens are on some of them only."""
NEMO = Profile("nemo", _columns(
    "model precision gpus GBS MBS! sequence FSDP TP! PP! CP! VP! EP! ETP GA! step tokens! tflops! "
    "mfu … container origin"
))  # fmt: skip
"""FSDP is on the pages of some systems only; what else is not always there is not theirs."""
NEMO_FINE_TUNING = Profile("nemo-fine-tuning", _columns(
    "model task precision gpus GBS MBS! packed FSDP TP! PP! CP VP! EP GA! step tokens! tflops! mfu "
    "… container origin"
))  # fmt: skip
"""Supervised and low-rank fine-tuning are in one table."""
AUTOMODEL = Profile("automodel", _columns(
    "model precision gpus step! tflops! tokens! mfu GBS MBS! LBS! GA! sequence TP! PP! CP! EP! VP! "
    "FSDP! kernels! … container origin",
    {
        GPUS.title: "#GPUs",
        STEP_TIME.title: "Time per Global Step (s)",
        TFLOPS.title: "Model TFLOPs/sec/GPU",
        RATE.title: "Tokens/sec/GPU",
        SEQUENCE.title: "Seq Length",
    },
))  # fmt: skip
"""Wide, and with sentences in it: the figures are before what they were reached with."""
SCALING = Profile("scaling", _columns(
    "model precision! gpus step! all-tokens! utilization! days! sequence layers! TP! PP! CP! EP! "
    "DP! VP! MBS! GBS GA! tokens tflops … container origin",
    {
        GPUS.title: "GPUs",
        STEP_TIME.title: "Training step time (seconds per step)",
        SEQUENCE.title: "SeqLen",
    },
))  # fmt: skip
"""The same work at many scales, with the throughput of all GPUs together."""

_OUR_TITLES: Final = {
    GPUS.title: "GPUs", SEQUENCE.title: "Sequence length", KERNELS.title: "Kernels",
    RATE.title: "Tokens/s/GPU", TFLOPS.title: "TFLOP/s/GPU",
}  # fmt: skip


def ours(*columns: ShownColumn) -> tuple[ShownColumn, ...]:
    """Columns as they are in tables that follow no published page."""
    return tuple(
        replace(column, title=_OUR_TITLES.get(column.title, column.title), ours=True)
        for column in columns
    )


def _ours(words: str) -> tuple[ShownColumn, ...]:
    return ours(*_columns(words))


_OF_MEASURED: Final = (
    "model task? precision gpus tokens tflops mfu step spread n origin convention GBS MBS LBS GA "
    "sequence DP TP SP PP CP VP EP ETP FSDP kernels container"
)
_MEASURED: Final = _columns(_OF_MEASURED)
MEASURED = Profile("measured", _ours(f"{_OF_MEASURED} …"))
RUNS = Profile("runs", _ours(
    "run outcome model precision gpus tokens tflops mfu step log system-word release started "
    "recipe convention"
))  # fmt: skip
LATEST = Profile(
    "latest",
    _ours("run outcome model precision gpus tflops step log system-word release started"),
    is_offered=False,
)
"""The latest runs on the landing page."""
_WORK: Final = (
    "precision gpus tokens tflops mfu step release origin convention GBS MBS LBS GA sequence TP SP "
    "PP CP VP EP ETP FSDP kernels variant? container~ …"
)
"""The rates where a narrow screen still has them, and with them where they are from."""
OF_MODEL = Profile("of-model", _ours(f"system model? {_WORK}"))
ON_SYSTEM = Profile("on-system", _ours(f"model {_WORK}"))
CPU_TESTS = Profile("cpu-tests", _ours(f"model system {_WORK}"))
CASE = Profile("case", _ours(
    "model precision gpus sequence GBS MBS LBS GA DP TP SP PP CP VP EP ETP FSDP kernels variant "
    "container+"
))  # fmt: skip
"""The lines of a run's case; those that say nothing are left out."""
FIGURES: Final = {column.fields[0]: column for column in _ours("tokens tflops mfu step")}
"""How each figure is printed, by its name."""
WORK: Final = _ours("GBS sequence qualifiers? variant? release origin-word")
"""The work of a row, behind its figures."""
NAMED: Final[dict[str, Profile]] = {
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
    shown = profile.columns
    if not all("packed_sequence_length" in result.printed for result in results):
        shown = tuple(SEQUENCE if it == PACKED else it for it in shown)
    own = {column.fields for column in shown}
    is_measured = any(result.is_measured for result in results)
    others = [
        column
        for column in _MEASURED
        if column.fields not in own
        and (is_measured or column.is_figure or column in (CONVENTION, STEPS))
        and (
            is_measured or any(getattr(one, column.fields[0]) not in (None, "") for one in results)
        )
    ]
    return replace(profile, columns=(*shown, *others, *_extra_columns(results)))


def figures_first(profile: Profile) -> Profile:
    """The profile with what was achieved right behind the model, the precision and the GPUs."""
    first = [it for it in profile.columns if it.fields in _NAMING]
    figures = [it for it in profile.columns if it.is_figure]
    others = [it for it in profile.columns if it not in first and it not in figures]
    return replace(profile, columns=(*first, *figures, *others))


_NAMING: Final = (MODEL.fields, TASK.fields, PRECISION.fields, GPUS.fields)
"""What names a row."""


def by_system(profile: Profile) -> Profile:
    """The profile of rows of a model, which their systems distinguish and name."""
    own = {column.fields: column for column in profile.columns}
    system, model = (own.pop(one.fields) for one in (SYSTEM, MODEL))
    first = (replace(system, shown="always"), replace(model, shown="varies"))
    return replace(profile, columns=(*first, *own.values()))


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
