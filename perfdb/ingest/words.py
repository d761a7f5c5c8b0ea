"""What the command line says of pages, logs and runs, checked."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from perfdb import aggregation, attribute, formats
from perfdb.attribute import Said
from perfdb.catalog import names
from perfdb.formats import LogFormat
from perfdb.ingest.companions import Companions
from perfdb.ingest.compression import Budget
from perfdb.ingest.spellings import Spellings
from perfdb.pages.base import PageContext


@dataclass(frozen=True)
class LogOptions:
    """What --set and --format say of logs, --window of logs and runs, and the --archive-limit."""

    settings: tuple[str, ...] = ()
    format: str | None = None
    window: str | None = None
    archive_limit_gib: int | None = None


@dataclass(frozen=True)
class Words:
    """All that the command line says of pages and logs, checked, and what was met of it so far.

    `depth`: how many archives the source lies in that is read; `scratch`: the temporary folder.
    """

    context: PageContext = field(default_factory=PageContext)
    said: Said = field(default_factory=Said)
    format: LogFormat | None = None
    window: aggregation.Window | None = None
    budget: Budget = field(default_factory=Budget)
    companions: Companions = field(default_factory=Companions)
    spellings: Spellings = field(default_factory=Spellings)
    depth: int = 0
    scratch: Path | None = None

    @property
    def any_of_logs(self) -> bool:
        """Whether anything was said that changes what is read out of a log."""
        return self.said != Said() or self.window is not None


def words(context: PageContext, options: LogOptions, scratch: Path | None = None) -> Words:
    """The options of the command line, checked. Raises InputError."""
    limit = options.archive_limit_gib
    framework = context.framework and names.framework(context.framework)
    context = replace(context, framework=framework or context.framework)
    return Words(
        context,
        attribute.said(context, options.settings),
        formats.named(options.format) if options.format else None,
        aggregation.named(options.window) if options.window else None,
        Budget(limit << 30) if limit else Budget(),
        scratch=scratch,
    )
