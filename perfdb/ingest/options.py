"""What the command line states about pages, logs and runs: as it is written, and checked."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfdb import aggregation, formats
from perfdb.catalog import names
from perfdb.formats import LogFormat
from perfdb.ingest.attribution import KnownVersions, StatedOptions, stated
from perfdb.ingest.companions import Folders
from perfdb.ingest.compression import Budget
from perfdb.ingest.find import Source
from perfdb.pages.base import PageContext


@dataclass(frozen=True)
class LogOptions:
    """--set and --format of logs, --window of logs and runs, and the --archive-limit."""

    settings: tuple[str, ...] = ()
    format: str | None = None
    window: str | None = None
    archive_limit_gib: int | None = None


@dataclass(frozen=True)
class Options:
    """What pages and logs do not state themselves, and who watches the sources go by."""

    context: PageContext = field(default_factory=PageContext)
    watched: Callable[[Sequence[Source]], Iterable[Source]] = iter
    logs: LogOptions = field(default_factory=LogOptions)

    @property
    def of_pages_and_logs(self) -> tuple[str, ...]:
        """The options that state what something is, which a run directory does itself."""
        values = {**vars(self.context), "set": self.logs.settings or None}
        return tuple(f"--{name}" for name, value in values.items() if value is not None)


@dataclass(frozen=True)
class Checked:
    """The options, checked, with the temporary folder and what is known from the store."""

    context: PageContext = field(default_factory=PageContext)
    stated: StatedOptions = field(default_factory=StatedOptions)
    format: LogFormat | None = None
    window: aggregation.Window | None = None
    budget: Budget = field(default_factory=Budget)
    scratch: Path | None = None
    folders: Folders = field(default_factory=Folders)
    versions: KnownVersions = field(default_factory=KnownVersions)

    @property
    def any_of_logs(self) -> bool:
        """Whether any option changes what is read out of a log."""
        return self.stated != StatedOptions() or self.window is not None

    def fresh(self) -> "Checked":
        """The same, with all of the budget left."""
        return replace(self, budget=replace(self.budget))


def checked(
    options: Options, scratch: Path | None = None, versions: Iterable[tuple[str, str]] = ()
) -> Checked:
    """The options of the command line. Raises InputError."""
    logs, context = options.logs, options.context
    limit, framework = logs.archive_limit_gib, context.framework
    framework = framework and (names.framework(framework) or framework)
    context = replace(context, framework=framework)
    return Checked(
        context,
        stated(context, logs.settings),
        formats.named(logs.format) if logs.format else None,
        aggregation.named(logs.window) if logs.window else None,
        Budget(limit << 30) if limit else Budget(),
        scratch,
        versions=KnownVersions(versions),
    )
