"""What the command line states about pages, logs and runs: as it is written, and checked."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Self

from pydantic import PositiveFloat

from perfdb import aggregation, catalog, formats, yamlfile
from perfdb.catalog import names
from perfdb.catalog.names import ModelName, Refusal
from perfdb.errors import Diagnostic, InputError
from perfdb.formats import LogFormat, ParsedLog
from perfdb.ingest.companions import Folders
from perfdb.ingest.find import Source
from perfdb.ingest.unpack import Budget
from perfdb.pages.base import PageContext
from perfdb.record import PartialCase, Release

SET: Final = "--set"

BESIDE: Final = "beside"
"""Among what is stated of a result without a run: the SHA-256 of the files that state its case."""

_TEXTS: Final = ("release", "container")
"""Fields whose values are texts, whatever they look like."""

_READERS: Final = {"model": names.model, "system": names.system, "precision": names.precision}
"""How the catalogue reads the names of fields."""


@dataclass(frozen=True)
class LogOptions:
    """--set, --attribution and --format of logs, --window of logs and runs, --archive-limit."""

    settings: tuple[str, ...] = ()
    format: str | None = None
    window: str | None = None
    attribution: str | None = None
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


class Settings(PartialCase):
    """What --set takes: the fields of a case, the release and its container, a page's peak."""

    release: str | None = None
    container: str | None = None
    peak_tflops: PositiveFloat | None = None

    def but(self, other: "Settings") -> "Settings":
        """The same, but for what others state, options by name."""
        stated = self.model_dump(exclude_unset=True) | other.model_dump(exclude_unset=True)
        if self.options and other.options:
            stated["options"] = {**self.options, **other.options}
        return Settings.model_validate(stated)


@dataclass(frozen=True)
class FileSettings:
    """What a file of attributions states of files, or of one result of each; `place`: where."""

    paths: frozenset[str]
    item: str
    settings: Settings
    place: Diagnostic


@dataclass(frozen=True)
class Checked:
    """The options, checked, with the temporary folder and what the store knows.

    `releases`: the spelling of each framework's versions, which `attribution` extends. `found`: the
    items of `items` that a file has.
    """

    context: PageContext = field(default_factory=PageContext)
    settings: Settings = field(default_factory=Settings)
    items: Mapping[str, Settings] = field(default_factory=dict)
    """What is stated of one result of a file, by the result's line or name."""
    format: LogFormat | None = None
    window: aggregation.Window | None = None
    budget: Budget = field(default_factory=Budget)
    scratch: Path | None = None
    folders: Folders = field(default_factory=Folders)
    releases: dict[str, dict[str, None]] = field(default_factory=dict)
    found: set[str] = field(default_factory=set)
    by_file: tuple[FileSettings, ...] = ()
    """What --attribution states, where --set does not."""
    read: set[str] = field(default_factory=set)
    """The real paths of the files that were read, with --attribution."""

    def of_file(self, path: Path) -> "Checked":
        """The options for one file, with all of the budget left."""
        fresh = replace(self, budget=replace(self.budget))
        if not self.by_file:
            return fresh
        real, stated, items = os.path.realpath(path), Settings(), dict[str, Settings]()
        self.read.add(real)
        for one in self.by_file:
            if real in one.paths and one.item:
                items[one.item] = items.get(one.item, Settings()).but(one.settings)
            elif real in one.paths:
                stated = stated.but(one.settings)
        for name, settings in self.items.items():
            items[name] = items.get(name, Settings()).but(settings)
        return replace(fresh, settings=stated.but(self.settings), items=items)

    def not_found(self) -> Iterator[Diagnostic]:
        """The results that --attribution names and the files that were read do not have."""
        for one in self.by_file:
            if one.item and one.item not in self.found and not self.read.isdisjoint(one.paths):
                yield one.place

    def of_item(self, log: ParsedLog) -> "Checked":
        """The options for one result of a file."""
        names = [name for name in item_names(log) if name in self.items]
        self.found.update(names)
        settings = self.settings
        for name in names:
            settings = settings.but(self.items[name])
        return replace(self, settings=settings)

    @property
    def any_of_logs(self) -> bool:
        """Whether any option changes what is read out of a log."""
        return (self.context, self.settings, self.window) != (PageContext(), Settings(), None)

    @property
    def stated(self) -> dict[str, object]:
        """What the options state, as the store keeps it with what was read."""
        context = {k: v for k, v in vars(self.context).items() if v is not None and k != "case"}
        settings = self.settings.model_dump(mode="json", exclude_unset=True)
        stated = {"set": settings or None, "window": self.window and self.window.name}
        return context | {name: value for name, value in stated.items() if value}

    @classmethod
    def of_stated(cls, stated: Mapping[str, object], release: Release) -> Self:
        """The options that a result of a release was read with. Raises ValueError, InputError."""
        names = [it.name for it in fields(PageContext) if it.name != "case"]
        context: dict[str, Any] = {name: stated[name] for name in names if name in stated}
        window = stated.get("window")
        made = cls(
            PageContext(**context),
            Settings.model_validate(stated.get("set", {})),
            window=None if window is None else aggregation.named(str(window)),
            releases={release.framework: {release.version: None}} if release.version else {},
        )
        if made.stated != {k: v for k, v in stated.items() if k != BESIDE}:
            raise ValueError(f"no options state {json.dumps(stated, ensure_ascii=False)}")
        return made


def checked(
    options: Options, scratch: Path | None = None, versions: Iterable[tuple[str, str]] = ()
) -> Checked:
    """The options of the command line, and the versions of frameworks in the store.

    Raises InputError with everything that is wrong.
    """
    logs, context = options.logs, options.context
    framework = context.framework and (names.framework(context.framework) or context.framework)
    settings, items = _settings(logs.settings)
    of_items = (it for name, one in items.items() for it in _unknown(f"{SET} {name}:{{}}", one))
    if problems := [*_unknown("--{}", context), *_unknown(SET + " {}", settings), *of_items]:
        raise InputError(problems)
    releases: dict[str, dict[str, None]] = {}
    for name, version in versions:
        releases.setdefault(name, {})[version] = None
    return Checked(
        replace(context, framework=framework),
        settings,
        items,
        formats.named(logs.format) if logs.format else None,
        aggregation.named(logs.window) if logs.window else None,
        Budget(logs.archive_limit_gib << 30) if logs.archive_limit_gib else Budget(),
        scratch,
        releases=releases,
        by_file=_attributions(Path(logs.attribution)) if logs.attribution else (),
    )


def item_names(log: ParsedLog) -> tuple[str, ...]:
    """What --set may call a result of a file: its name, if it has one, and its line."""
    line = log.steps[0].line if log.steps else log.emitted_line
    return tuple(filter(None, (log.item, str(line) if line else None)))


def unknown_model(settings: Settings) -> Iterator[Diagnostic]:
    """A note on a model of --set that the catalogue lacks, which is kept as it is written."""
    reading = names.model(settings.model) if settings.model else None
    if isinstance(reading, ModelName) and reading.name not in catalog.models():
        close = get_close_matches(reading.name, catalog.models(), n=1)
        remedy = f"did you mean {close[0]!r}?" if close else None
        message = f"no model {reading.name!r} in the catalogue"
        yield Diagnostic(f"{SET} model", message, remedy=remedy)


def _settings(given: Sequence[str]) -> tuple[Settings, dict[str, Settings]]:
    """The fields of --set, checked: those of all results, and those of single ones by their names.

    Raises InputError.
    """
    by_item: dict[str, list[str]] = {}
    problems = []
    for setting in given:
        name, _, text = setting.partition("=")
        item, _, field_name = name.rpartition(":")
        if not (field_name.isidentifier() and text.strip()) or name.startswith(":"):
            message = f"{setting!r} is not FIELD=VALUE"
            problems.append(Diagnostic(SET, message, remedy="write --set num_gpus=8"))
        by_item.setdefault(item, []).append(f"{field_name}={text}")
    if problems:
        raise InputError(problems)
    read = {item: _of_one(item, settings) for item, settings in by_item.items()}
    return read.pop("", Settings()), read


def _of_one(item: str, settings: Sequence[str]) -> Settings:
    """The fields that --set states of one result, or of all. Raises InputError."""
    where = f"{SET} {item}" if item else SET
    pairs = [setting.partition("=") for setting in settings]
    # A release is no number, or 25.10 would be 25.1.
    cells = (f"{k}: {json.dumps(v.strip()) if k in _TEXTS else v}" for k, _, v in pairs)
    document = yamlfile.parse(where, "\n".join(cells))
    if isinstance(document, yamlfile.Unreadable):
        raise InputError(_of_settings(document.problems, settings))
    found = yamlfile.validate(document, Settings)
    if isinstance(found, list):
        raise InputError(_of_settings(found, settings))
    return found


def _attributions(path: Path) -> tuple[FileSettings, ...]:
    """What a YAML file states: fields by PATH, GLOB or PATH#ITEM, relative to its folder.

    Raises InputError with everything that is wrong.
    """
    try:
        document = yamlfile.parse(str(path), path.read_bytes().decode())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Diagnostic(str(path), f"cannot be read: {error}")) from error
    if isinstance(document, yamlfile.Unreadable):
        raise InputError(document.problems)
    if not isinstance(document.content, Mapping):
        remedy = "write `train.log: {num_gpus: 8}`"
        raise InputError(document.problem((), "holds no files with their fields", remedy))
    problems, found = list[Diagnostic](), list[FileSettings]()
    for key, own in document.items().items():
        name, _, item = str(key).partition("#")
        place = (key,)
        is_relative = bool(name) and not Path(name).is_absolute()
        files = path.parent.glob(name) if is_relative else ()
        paths = frozenset(map(os.path.realpath, files))
        settings = yamlfile.validate(own, Settings)
        if isinstance(settings, list):
            problems += settings
            continue
        if not paths:
            remedy = "name one, or a glob, relative to the folder of this file"
            problems.append(document.problem(place, "names no file", remedy))
        problems += (own.problem((it.where,), it.message, it.remedy)
                     for it in _unknown("{}", settings))  # fmt: skip
        missing = document.problem(place, "names no result of its file by name or line")
        found.append(FileSettings(paths, item, settings, missing))
    if problems:
        raise InputError(problems)
    return tuple(found)


def _of_settings(problems: Iterable[Diagnostic], settings: Sequence[str]) -> Iterator[Diagnostic]:
    """The same problems, named after the setting rather than its line."""
    for one in problems:
        known = one.field is None and one.line is not None and one.line <= len(settings)
        setting = f" {settings[one.line - 1]}" if known and one.line else ""
        yield Diagnostic(one.where + setting, one.message, one.field, remedy=one.remedy)


def _unknown(option: str, stated: PageContext | Settings) -> Iterator[Diagnostic]:
    """A problem for each name that the catalogue does not know."""
    for name, read in _READERS.items():
        value = getattr(stated, name, None)
        reading = None if value is None else read(value)
        if isinstance(reading, Refusal):
            yield Diagnostic(option.format(name), reading.message, remedy=reading.remedy)
