"""What pages show: frozen values, kept as one JSON file a page.

What only one kind of page shows stands in its module.
"""

from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path

from pydantic import ConfigDict

from perfdb.messages import NoteText
from perfdb.record import Finding, Frozen, Severity
from perfdb.rundir import RunDir
from perfdb.site import addresses
from perfdb.stated import Stated

RECIPE = RunDir(Path()).recipe.name
"""What the recipe is called among the files of a run."""

MOST_STEPS = 1000
"""Rows of the table of steps; a page with more of them is slow to open, the file has them all."""


class Row(Frozen):
    """A row of a query; columns that a page has no use for are left behind."""

    model_config = ConfigDict(extra="ignore")


class Flag(Frozen):
    """That the audit objects to a result: '1 error', how grave it is, and where the page says more.

    `kind`: error, warning, or explained where all of it is acknowledged.
    """

    said: str
    kind: str
    anchor: str


class Result(Row, Stated):
    """A result with its case, release and source, as perfdb.queries.results gives it."""

    framework: str
    release: str | None
    build: int = 0
    """Its release's place among those that only the hash of a commit tells apart."""
    container: str | None = None
    system_title: str
    model: str
    model_title: str
    qualifiers: str = ""
    task: str
    micro_batch_size: int | None = None
    local_batch_size: int | None = None
    gradient_accumulation: int | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    context_parallel: int | None = None
    expert_parallel: int | None = None
    expert_tensor_parallel: int | None = None
    virtual_pipeline: int | None = None
    data_parallel: int | None = None
    fsdp_enabled: bool | None = None
    fsdp_size: int | None = None
    sequence_parallel: bool | None = None
    kernels: str = ""
    variant: str | None = None
    options: Mapping[str, object] = {}
    step_time_mean_s: float | None = None
    step_time_stdev_s: float | None = None
    step_time_p10_s: float | None = None
    step_time_p90_s: float | None = None
    step_time_last_s: float | None = None
    peak_tflops: float | None = None
    flops_convention: str | None = None
    formula_version: int | None = None
    window: str | None = None
    num_steps: int | None = None
    num_results: int = 1
    num_finished: int = 1
    outcome: str
    source: str
    source_line: int | None = None
    source_sha256: str
    source_url: str | None = None
    published_on: date | None = None
    raw: Mapping[str, str] = {}
    extras: Mapping[str, str] = {}
    emitted: Mapping[str, float | None] = {}
    notes: tuple[NoteText, ...] = ()
    case_key: str = ""
    workload_key: str = ""
    run_id: str | None = None
    recipe: str | None = None
    started_at: datetime | None = None
    flag: Flag | None = None
    findings: str = ""
    result_id: int = 0

    @property
    def has_open_errors(self) -> bool:
        """Whether the audit calls it an error, and nobody has explained that."""
        return self.flag is not None and self.flag.kind == Severity.ERROR


class Step(Row):
    """A step of a run."""

    step: int
    step_time_s: float
    loss: float | None = None
    grad_norm: float | None = None
    peak_memory_bytes: int | None = None
    skipped: bool = False
    source_line: int


class RunFile(Row):
    """A file of a run directory, by its name in there."""

    run_id: str
    name: str
    sha256: str
    size_bytes: int


class Run(Row):
    """A run, as perfdb.queries.catalog gives it."""

    id: int = 0
    run_id: str
    recipe: str | None = None
    outcome: str
    error: str | None = None
    exit_code: int | None = None
    attempt: int
    started_at: datetime | None = None
    ended_at: datetime | None = None
    ingested_at: datetime | None = None
    warmup_steps: int
    environment: Mapping[str, object]
    command: tuple[str, ...]
    summary: Mapping[str, object] | None = None


class Link(Frozen):
    """A document of the site, and what it is called where it is linked."""

    text: str
    document: str


class RunPage(Frozen):
    """Everything on the page of a run. `recipe_text`: None where the run kept no recipe file.

    `others` are the other runs of its case and release; `lines` those of the file that its steps
    are from, by their numbers; none of a file that is large.
    """

    run: Run
    result: Result
    steps: tuple[Step, ...]
    files: tuple[RunFile, ...]
    recipe_text: str | None
    others: tuple[Link, ...] = ()
    lines: Mapping[int, str] = {}

    @property
    def measured_file(self) -> RunFile | None:
        """The file that the steps are from."""
        return next((file for file in self.files if file.sha256 == self.result.source_sha256), None)

    @property
    def recipe_file(self) -> RunFile | None:
        """The file that the recipe's text is in."""
        return next((file for file in self.files if file.name == RECIPE), None)


class Tab(Frozen):
    """The results of one tab: those of a system, or of a model."""

    name: str
    title: str
    results: tuple[Result, ...]


class Section(Frozen):
    """The results of one task, and of one variant where the release has several."""

    task: str
    variant: str | None
    tabs: tuple[Tab, ...]


class ReleasePage(Frozen):
    """Everything on the page of a release of a framework. `also` are pages that say more of it."""

    framework: str
    release: str | None
    containers: tuple[str, ...]
    sections: tuple[Section, ...]
    also: tuple[Link, ...] = ()

    @property
    def document(self) -> str:
        """The name of the page."""
        return addresses.of_release(self.framework, self.release)

    @property
    def label(self) -> str:
        """What {ref} calls it: 'ref-performance-nemo-25.04'."""
        return addresses.label(self.framework, self.release)

    @property
    def results(self) -> tuple[Result, ...]:
        """Every result of the page."""
        return tuple(
            result for section in self.sections for tab in section.tabs for result in tab.results
        )


class RunsPage(Frozen):
    """The list of all runs."""

    results: tuple[Result, ...]


class SourcePage(Frozen):
    """A published page, as it was when it was read, and its results in force.

    `source_url` and `published_on` are what it says of its original. `newest` is the state of the
    page that was read last, None where this is it; `earlier` counts the rows of the page that an
    earlier state still stands for. `corrections` say of results, by their number in the store, what
    they said before.
    """

    path: str
    sha256: str
    text: str
    read_at: datetime | None = None
    source_url: str | None = None
    published_on: date | None = None
    newest: Link | None = None
    earlier: tuple[tuple[Link, int], ...] = ()
    results: tuple[Result, ...] = ()
    corrections: Mapping[int, str] = {}


class Audited(Frozen):
    """A result that has findings, the gravest first. `anchor` names its entry."""

    result: Result
    anchor: str
    findings: tuple[Finding, ...]
