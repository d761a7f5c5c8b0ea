"""Which case and release a log is of: by the command line, the log itself and what lies beside it.

Where two say it, --set holds over the log, the log over its companions, and they over the options
(--system and the like), which say what is said nowhere else. What nobody says is not guessed. Pure.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from perfdb import catalog, following, versions, yamlfile
from perfdb.errors import InputError, Problem
from perfdb.formats import Configuration, ParsedLog
from perfdb.pages import PageContext, names
from perfdb.pages.cells import Wrong
from perfdb.record import Case, Release

OPTION: Final = "--set"
RELEASE: Final = "release"
"""What --set takes beside the fields of a case."""

REQUIRED: Final = (
    "framework", "model", "system", "num_gpus", "sequence_length", "global_batch_size", "task",
)  # fmt: skip
"""The fields of a case that must be said of a log."""

SUBJECT: Final = ("framework", "model", "system", "task")
"""What a run is of, whatever its sizes."""

SCALED: Final = "the launcher ran a proxy or changed the model"


@dataclass(frozen=True)
class Said:
    """What the command line says of logs."""

    configuration: Configuration = field(default_factory=Configuration)
    """What --set insists on."""
    fallback: Configuration = field(default_factory=Configuration)
    version: str | None = None
    container: str | None = None
    release: str | None = None
    """The version that --set insists on."""


@dataclass(frozen=True)
class Sayer:
    """What says something of a log beside it, by the words that a note names it with."""

    name: str
    said: ParsedLog


@dataclass(frozen=True)
class Attributed:
    """What a log is of."""

    case: Case
    release: Release


@dataclass(frozen=True)
class Missing:
    """The required fields that nobody says, and whether nobody says the release either."""

    fields: tuple[str, ...]
    release: bool = False
    why: str = ""
    """Why a field is missing that somebody says."""

    @property
    def names(self) -> tuple[str, ...]:
        """The fields, and the release where it is missing."""
        return (*self.fields, "release") if self.release else self.fields

    def problem(self, where: str, line: int | None = None) -> Problem:
        """What is missing, and the options that would say it."""
        options = [f"{OPTION} {name}=…" for name in self.fields]
        options += ["--release …"] if self.release else []
        message = f"names no {', '.join(self.names)}" + (self.why and f" ({self.why})")
        return Problem(where, message, line=line, remedy=f"pass {' '.join(options)}")


def said(context: PageContext, settings: Sequence[str] = ()) -> Said:
    """What the options and each `FIELD=VALUE` of --set say, names as the catalogue has them.

    Raises InputError with everything that is wrong.
    """
    options = Configuration.model_validate(
        {
            name: value
            for name in ("framework", "system", "precision")
            if (value := getattr(context, name)) is not None
        }
    )
    given = _settings(settings)
    problems = [*_unknown("--{}", options), *_unknown(OPTION + " {}", given)]
    if problems:
        raise InputError(problems)
    fields = given.model_dump(exclude_unset=True, exclude={RELEASE})
    insisted = _catalogued(Configuration.model_validate(fields))
    fallback = _catalogued(options)
    return Said(insisted, fallback, context.release, context.container, given.release)


class _Settings(Configuration):
    release: str | None = None


def _settings(settings: Sequence[str]) -> _Settings:
    """The fields that --set gives, checked. Raises InputError."""
    pairs = [setting.partition("=") for setting in settings]
    problems = [
        Problem(OPTION, f"{setting!r} is not FIELD=VALUE", remedy="write --set num_gpus=8")
        for setting, (name, _, text) in zip(settings, pairs, strict=True)
        if not name.isidentifier() or not text.strip()
    ]
    if problems:
        raise InputError(problems)
    text = "\n".join(f"{name}: {_yaml(name, value)}" for name, _, value in pairs)
    document = yamlfile.parse(OPTION, text) if pairs else yamlfile.Document(OPTION, {}, {})
    if isinstance(document, yamlfile.Unreadable):
        raise InputError(_of_settings(document.problems, settings))
    checked = yamlfile.validate(document, _Settings)
    if isinstance(checked, list):
        raise InputError(_of_settings(checked, settings))
    return checked


def _yaml(name: str, value: str) -> str:
    """A value as YAML reads it; a release is no number, or 25.10 would be 25.1."""
    return json.dumps(value.strip()) if name == RELEASE else value


def _of_settings(problems: Sequence[Problem], settings: Sequence[str]) -> Iterator[Problem]:
    """The same problems, named after the setting rather than its line."""
    for one in problems:
        known = one.field is None and one.line is not None and one.line <= len(settings)
        setting = f" {settings[one.line - 1]}" if known and one.line else ""
        yield Problem(one.where + setting, one.message, one.field, remedy=one.remedy)


def _unknown(option: str, given: Configuration) -> Iterator[Problem]:
    """What the catalogue does not know of that which was given."""
    readings = {
        "model": names.model(given.model) if given.model is not None else None,
        "system": names.system(given.system) if given.system is not None else None,
        "precision": names.precision(given.precision) if given.precision is not None else None,
    }
    for name, reading in readings.items():
        if isinstance(reading, Wrong):
            yield Problem(option.format(name), reading.message, remedy=reading.remedy)


def attributed(
    log: ParsedLog, companions: Sequence[ParsedLog], words: Said
) -> Attributed | Missing:
    """The case and the release of a log, or what is missing to know them."""
    sayers = (log, *companions)
    whole = _whole(sayers, words)
    missing = tuple(name for name in REQUIRED if getattr(whole, name) is None)
    if missing:
        version = _version(whole.framework, sayers, words)
        is_scaled = "model" in missing and any(map(_is_scaled, sayers))
        return Missing(missing, version is None, SCALED if is_scaled else "")
    case = following.with_what_follows(Case.model_validate(whole.model_dump(exclude_none=True)))
    return Attributed(case, _release(case.framework, sayers, words))


def _whole(sayers: Sequence[ParsedLog], words: Said) -> Configuration:
    whole = words.configuration
    if any(map(_is_scaled, sayers)):
        whole = whole.completed_by(Configuration(model=None))
    for one in sayers:
        whole = whole.completed_by(_catalogued(one.configuration))
    num_nodes = next((one.num_nodes for one in sayers if one.num_nodes), None)
    return following.with_gpus(whole.completed_by(words.fallback), num_nodes)


def _is_scaled(one: ParsedLog) -> bool:
    """Whether a file beside a log says that what ran was no model of the catalogue."""
    said = one.configuration
    return one.outcome is None and "model" in said.model_fields_set and said.model is None


def contradictions(
    log: ParsedLog, words: Said, beside: Sequence[Sayer] = ()
) -> Iterator[tuple[str, str]]:
    """Each field of which --set says something else than would hold without it, and a sentence.

    That names who says it, and both; nothing stands for the log itself.
    """
    insisted, told = _said(words.configuration), set[str]()
    for one in (Sayer("", log), *beside):
        own = _said(_catalogued(one.said.configuration))
        for name, mine in own.items():
            theirs = insisted.get(name)
            if name not in told and theirs is not None and mine != theirs:
                yield name, f"{one.name} says {name} {mine}, {OPTION} says {theirs}".lstrip()
        told.update(own)


def _said(given: Configuration) -> dict[str, object]:
    """The fields that are said, each option by itself."""
    fields = given.model_dump(exclude_none=True)
    options: dict[str, object] = fields.pop("options", {})
    return fields | {f"option {name}": value for name, value in options.items()}


def other_release(log: ParsedLog, words: Said, beside: Sequence[Sayer] = ()) -> str | None:
    """That the command line says another release than the log or what lies beside it, and both."""
    sayers = (Sayer("", log), *beside)
    framework = _whole([one.said for one in sayers], words).framework
    versioned = (one for one in sayers if _version_by(framework, [one.said]) is not None)
    first = next(versioned, None)
    asked = words.release or words.version
    if first is None or asked is None:
        return None
    version = str(first.said.framework_version)
    if versions.is_same(version, asked):
        return None
    said = f"{first.name} says {RELEASE} {version}, ".lstrip()
    if words.release:
        return f"{said}{OPTION} says {asked}"
    return f"{said}--{RELEASE} {asked} is not taken"


def unknown_model(words: Said) -> Problem | None:
    """A model that --set names and the catalogue lacks; it is taken as it is written."""
    model = words.configuration.model
    if model is None or model in catalog.models():
        return None
    close = get_close_matches(model, catalog.models(), n=1)
    remedy = f"did you mean {close[0]!r}?" if close else None
    return Problem(f"{OPTION} model", f"no model {model!r} in the catalogue", remedy=remedy)


def accompanies(companion: ParsedLog, log: ParsedLog) -> bool:
    """Whether a file may speak of the run of a log: one that names another subject does not."""
    one, other = _catalogued(companion.configuration), _catalogued(log.configuration)
    return all(_agree(getattr(one, name), getattr(other, name)) for name in SUBJECT)


def _agree(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


def _catalogued(given: Configuration) -> Configuration:
    """The same, with the catalogue's names; a system that it lacks is not said."""
    fields = given.model_dump(exclude_unset=True)
    if given.model is not None:
        model = names.model(given.model)
        if isinstance(model, Wrong):
            fields.pop("model")
        else:
            fields["model"] = model.name
            fields |= {"qualifiers": model.qualifiers} if model.qualifiers else {}
    if given.system is not None:
        system = names.system(given.system)
        fields.pop("system") if isinstance(system, Wrong) else fields.update(system=system)
    if given.precision is not None:
        precision = names.precision(given.precision)
        fields["precision"] = given.precision if isinstance(precision, Wrong) else precision
    return Configuration.model_validate(fields)


def _version(framework: str | None, sayers: Sequence[ParsedLog], words: Said) -> str | None:
    return words.release or _version_by(framework, sayers) or words.version


def _version_by(framework: str | None, sayers: Sequence[ParsedLog]) -> str | None:
    """The version by the first file that says it of this framework."""
    of_framework = [one for one in sayers if _agree(one.framework, framework)]
    return next((one.framework_version for one in of_framework if one.framework_version), None)


def _release(framework: str, sayers: Sequence[ParsedLog], words: Said) -> Release:
    """Version and container: by --set, else by the first that says it, else by an option."""
    of_framework = [one for one in sayers if _agree(one.framework, framework)]
    containers = [one.container for one in of_framework if one.container]
    return Release(
        framework=framework,
        version=_version(framework, sayers, words),
        container=next(iter(containers), words.container),
    )
