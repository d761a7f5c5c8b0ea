"""How jobs are asked of a Slurm cluster: what a site writes once, and recipes and users change."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Final, Self, get_origin

from pydantic import AfterValidator, Field, PositiveInt, model_validator

from perfdb import catalog, config
from perfdb.errors import ConfigError, Diagnostic, suggestion
from perfdb.hardware import is_secret, without_secrets
from perfdb.record import Frozen, must
from perfdb.yamlfile import Document, checked

TABLE: Final = "slurm"
"""The table of perfdb.toml, or of the file that --cluster names."""
OURS: Final = (
    "job-name", "nodes", "ntasks", "ntasks-per-node", "output", "error", "open-mode", "array",
    "wrap", "wait", "parsable", "requeue", "no-requeue", "export", "comment", "time",
)  # fmt: skip
"""Options of sbatch and srun that make a job one that perfdb can follow."""
_OUR_LETTERS: Final = {"-J": "job-name", "-N": "nodes", "-n": "ntasks", "-o": "output",
                       "-e": "error", "-a": "array", "-W": "wait", "-t": "time"}  # fmt: skip
_TIME = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_NO_VARIABLE = "is no name of a variable: only names are written, their values are kept"
_MOUNT = re.compile(r"/[^\s:,]*:/[^\s:,]*(:[\w+]+)?")


def _seconds(limit: str) -> int | None:
    """What a time limit of Slurm is in seconds: M, M:S, H:M:S, D-H, D-H:M or D-H:M:S."""
    if not (found := _TIME.fullmatch(limit)):
        return None
    days, *parts = (None if part is None else int(part) for part in found.groups())
    known = [part for part in parts if part is not None]
    if days is None and len(known) < len(parts):
        known.insert(0, 0)
    hours, minutes, seconds, *_ = (*known, 0, 0)
    return ((days or 0) * 24 + hours) * 3600 + minutes * 60 + seconds


def _is_argument(argument: str) -> str:
    name = argument.split("=", maxsplit=1)[0]
    name = _OUR_LETTERS.get(name[:2], name) if name[:2] in _OUR_LETTERS else name
    if name.removeprefix("--") in OURS:
        raise ValueError(f"perfdb sets --{name.removeprefix('--')} itself: leave it out")
    if not argument.startswith("-"):
        raise ValueError("is no option: write --option=value")
    return argument


def _is_system(name: str) -> str:
    if name not in catalog.systems():
        raise ValueError(f"no such system; {suggestion(name, catalog.systems())}")
    return name


Word = Annotated[
    str, must(lambda it: it.isprintable() and re.fullmatch(r"\S+", it), "must be one word")
]
Line = Annotated[str, must(str.isprintable, "must be one line of text")]
Arguments = tuple[Annotated[Line, AfterValidator(_is_argument)], ...]
Mount = Annotated[str, must(_MOUNT.fullmatch, "is no mount: write /path/outside:/path/inside")]
TimeLimit = Annotated[
    str, must(_seconds, "is no time limit of Slurm: write minutes, H:MM:SS or D-HH:MM:SS")
]
Variable = Annotated[str, must(_VARIABLE.fullmatch, _NO_VARIABLE)]


class SlurmSettings(Frozen):
    """How to submit jobs to a Slurm cluster. Unset fields are left to the cluster."""

    system: Annotated[str, AfterValidator(_is_system)] | None = Field(
        None, description="The system of the catalogue that the nodes are."
    )
    gpus_per_node: PositiveInt | None = Field(
        None, description="GPUs of a node; processes on the cpu system. [the system's own]"
    )
    request_gpus: bool = Field(True, description="Ask with --gpus-per-node; false: no GRES.")
    account: Word | None = None
    partition: Word | None = None
    qos: Word | None = None
    reservation: Word | None = None
    nodelist: Word | None = None
    exclude: Word | None = None
    exclusive: bool = Field(True, description="No other job on the nodes.")
    time_limit: TimeLimit | None = Field(
        None, description="The longest that a job may take; a recipe's timeout_s may be shorter."
    )
    requeue: bool = Field(False, description="Slurm may start a job again after a preemption.")
    sbatch_args: Arguments = Field((), description="Further options of sbatch.")
    srun_args: Arguments = Field((), description="Further options of srun.")
    container_image: Word | None = Field(
        None, description="The image of cases that name none (Pyxis)."
    )
    images: Mapping[str, Word] = Field(
        default_factory=dict, description="The squash file of an image that recipes name."
    )
    container_mounts: tuple[Mount, ...] = ()
    container_workdir: Word | None = None
    python: Word | None = Field(None, description="The Python that has the framework.")
    environment: Mapping[str, Line] = Field(
        default_factory=dict, description="Variables to set, of the network among them: NCCL_…"
    )
    pass_environment: tuple[Variable, ...] = Field(
        (), description="The only variables of the shell that jobs get. [all of them]"
    )
    setup: tuple[Line, ...] = Field((), description="Lines of shell before the run: module load …")
    gpus_per_numa_node: PositiveInt | None = Field(
        None, description="Bind each rank to its NUMA node with numactl: GPUs of one."
    )
    preflight_fraction: float = Field(
        0.8, gt=0, lt=1, description="Of the median of the nodes: less makes a node a sick one."
    )
    poll_s: float = Field(10, gt=0, le=600, description="Seconds between two calls of squeue.")

    @model_validator(mode="after")
    def _no_secrets(self) -> Self:
        for name, value in self.environment.items():
            if not _VARIABLE.fullmatch(name):
                raise ValueError(_NO_VARIABLE)
            if is_secret(name) or value != without_secrets(value):
                message = f"{name} is a secret, which scripts would show: name it in "
                raise ValueError(f"{message}pass_environment, and set it in the shell")
        for text in (*self.sbatch_args, *self.srun_args, *self.setup):
            if text != without_secrets(text):
                raise ValueError(f"{without_secrets(text)!r} holds a secret: pass it by a variable")
        return self

    def changed(self, other: "SlurmSettings") -> "SlurmSettings":
        """These settings under those that another gives; variables and images are added."""
        given = other.model_dump(exclude_unset=True)
        for name in ("environment", "images"):
            given[name] = {**getattr(self, name), **getattr(other, name)}
        return SlurmSettings.model_validate({**self.model_dump(exclude_unset=True), **given})

    def seconds(self, timeout_s: float) -> int:
        """The seconds that a job of a case may take; Slurm counts in minutes."""
        limit_s = _seconds(self.time_limit) if self.time_limit else None
        return max(60, int(min(timeout_s, limit_s or timeout_s)))


def load(file: Path | None, words: Iterable[str]) -> SlurmSettings:
    """The settings of a file, else of perfdb.toml, under those of `--slurm`. Raises ConfigError."""
    document = config.table(TABLE, file)
    where = document.where if document else str(file or config.FILE)
    site = checked(document, SlurmSettings, ConfigError) if document else SlurmSettings()
    given = Document("--slurm", _of_words(words), {})
    settings = site.changed(checked(given, SlurmSettings, ConfigError))
    if settings.system is None:
        remedy = f"give the system of the nodes in [{TABLE}], or with --slurm system=…"
        raise ConfigError(Diagnostic(where, f"no {TABLE}.system", remedy=remedy))
    of_node = settings.gpus_per_node or catalog.system(settings.system).gpus_per_node
    if of_node is None:
        remedy = "say how many processes a node takes"
        raise ConfigError(Diagnostic(where, f"no {TABLE}.gpus_per_node", remedy=remedy))
    return settings.changed(SlurmSettings(gpus_per_node=of_node))


def _of_words(words: Iterable[str]) -> dict[str, object]:
    """The settings in words: key=value; key=one,two; environment.NAME=value."""
    plain: dict[str, str] = {}
    tables: dict[str, dict[str, str]] = {}
    lists: dict[str, list[str]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ConfigError(Diagnostic("--slurm", f"{word!r} is not KEY=VALUE"))
        name, _, inner = key.partition(".")
        field = SlurmSettings.model_fields.get(name)
        if inner:
            tables.setdefault(name, {})[inner] = value
        elif field and get_origin(field.annotation) is tuple:
            lists.setdefault(name, []).append(value)
        else:
            plain[name] = value
    return {**plain, **lists, **tables}
