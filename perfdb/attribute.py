"""Which case and release a log is of: by the command line, the log itself and what lies beside it.

Where two say it, --set holds over the log, the log over its companions, and they over the options
(--system and the like), which say what is said nowhere else. What nobody says is not guessed. Pure.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from perfdb import catalog, following, versions, yamlfile
from perfdb.catalog import names
from perfdb.catalog.names import Refusal
from perfdb.errors import Diagnostic, InputError
from perfdb.formats import ParsedLog
from perfdb.formats.precision import FP8
from perfdb.pages.base import PageContext
from perfdb.record import Case, PartialCase, Release

OPTION: Final = "--set"
RELEASE: Final = "release"
"""What --set takes beside the fields of a case."""

REQUIRED: Final = (
    "framework", "model", "system", "num_gpus", "sequence_length", "global_batch_size", "task",
)  # fmt: skip
"""The fields of a case that must be known of a log."""

SUBJECT: Final = ("framework", "model", "system", "task")
"""What a run is of, whatever its sizes."""

OPTIONS: Final = ("framework", "system", "precision")
"""The fields of a case that have options of their own."""

SCALED: Final = "the launcher ran a proxy or changed the model"


@dataclass(frozen=True)
class Said:
    """What the command line gives for logs."""

    configuration: PartialCase = field(default_factory=PartialCase)
    """What --set gives: it overrides the log."""
    fallback: PartialCase = field(default_factory=PartialCase)
    version: str | None = None
    container: str | None = None
    release: str | None = None
    """The version that --set gives: it overrides the log."""


@dataclass(frozen=True)
class Sayer:
    """A source beside a log that says something of it, and how a note names it."""

    name: str
    said: ParsedLog


@dataclass(frozen=True)
class Attributed:
    """The case and the release that a log is of."""

    case: Case
    release: Release


@dataclass(frozen=True)
class Missing:
    """The required fields that are given nowhere, and whether the release is missing too."""

    fields: tuple[str, ...]
    release: bool = False
    why: str = ""
    """Why a field counts as missing although it is given."""

    @property
    def names(self) -> tuple[str, ...]:
        """The fields, and the release where it is missing."""
        return (*self.fields, "release") if self.release else self.fields

    def problem(self, where: str, line: int | None = None) -> Diagnostic:
        """What is missing, and the options that would say it."""
        options = [f"{OPTION} {name}=…" for name in self.fields]
        options += ["--release …"] if self.release else []
        message = f"names no {', '.join(self.names)}" + (self.why and f" ({self.why})")
        return Diagnostic(where, message, line=line, remedy=f"pass {' '.join(options)}")


def said(context: PageContext, settings: Sequence[str] = ()) -> Said:
    """What the options and each `FIELD=VALUE` of --set say, names as the catalogue has them.

    Raises InputError with everything that is wrong.
    """
    options = PartialCase.model_validate(
        {name: value for name in OPTIONS if (value := getattr(context, name)) is not None}
    )
    given = _settings(settings)
    problems = [*_unknown("--{}", options), *_unknown(OPTION + " {}", given)]
    if problems:
        raise InputError(problems)
    fields = given.model_dump(exclude_unset=True, exclude={RELEASE})
    insisted = catalogued(PartialCase.model_validate(fields))
    fallback = catalogued(options)
    return Said(insisted, fallback, context.release, context.container, given.release)


class _Settings(PartialCase):
    release: str | None = None


def _settings(settings: Sequence[str]) -> _Settings:
    """The fields that --set gives, checked. Raises InputError."""
    pairs = [setting.partition("=") for setting in settings]
    problems = [
        Diagnostic(OPTION, f"{setting!r} is not FIELD=VALUE", remedy="write --set num_gpus=8")
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


def _of_settings(problems: Sequence[Diagnostic], settings: Sequence[str]) -> Iterator[Diagnostic]:
    """The same problems, named after the setting rather than its line."""
    for problem in problems:
        line, field_ = problem.line, problem.field
        known = field_ is None and line is not None and line <= len(settings)
        setting = f" {settings[line - 1]}" if known and line else ""
        yield Diagnostic(problem.where + setting, problem.message, field_, remedy=problem.remedy)


def _unknown(option: str, given: PartialCase) -> Iterator[Diagnostic]:
    """A problem for each given name that the catalogue does not know."""
    readings = {
        "model": names.model(given.model) if given.model is not None else None,
        "system": names.system(given.system) if given.system is not None else None,
        "precision": names.precision(given.precision) if given.precision is not None else None,
    }
    for name, reading in readings.items():
        if isinstance(reading, Refusal):
            yield Diagnostic(option.format(name), reading.message, remedy=reading.remedy)


def attributed(
    log: ParsedLog, companions: Sequence[ParsedLog], words: Said
) -> Attributed | Missing:
    """The case and the release of a log, or what is missing to know them."""
    sayers = (log, *companions)
    whole = _whole(sayers, words)
    missing = tuple(name for name in REQUIRED if getattr(whole, name) is None)
    if missing:
        version = _version(whole.framework, sayers, words)
        said = (sayer.doubts[name] for name in missing for sayer in sayers if name in sayer.doubts)
        why = [f"says {doubt}" for doubt in said]
        why += [SCALED] if "model" in missing and any(map(_is_scaled, sayers)) else []
        return Missing(missing, version is None, ", ".join(why))
    case = following.with_what_follows(Case.model_validate(whole.model_dump(exclude_none=True)))
    return Attributed(case, _release(case.framework, sayers, words))


def _whole(sayers: Sequence[ParsedLog], words: Said) -> PartialCase:
    whole = words.configuration
    if any(map(_is_scaled, sayers)):
        whole = whole.completed_by(PartialCase(model=None))
    for sayer in sayers:
        whole = whole.completed_by(catalogued(sayer.configuration))
    if words.configuration.precision is None:
        others = (*(sayer.configuration for sayer in sayers), words.fallback)
        whole = _with_scaling(whole, map(catalogued, others))
    num_nodes = next((sayer.num_nodes for sayer in sayers if sayer.num_nodes), None)
    whole = following.with_gpus(whole.completed_by(words.fallback), num_nodes)
    return whole.completed_by(PartialCase(framework=sayers[0].likely_framework))


def _with_scaling(whole: PartialCase, others: Iterable[PartialCase]) -> PartialCase:
    """FP8 of which nothing more is said is that FP8 which the first of others says it is."""
    if whole.precision != FP8:
        return whole
    said = (one.precision or "" for one in others)
    scaled = (precision for precision in said if precision.startswith(f"{FP8}_"))
    return whole.model_copy(update={"precision": next(scaled, FP8)})


def _is_scaled(sayer: ParsedLog) -> bool:
    """Whether a file beside a log says that what ran was no model of the catalogue."""
    given = sayer.configuration
    return sayer.outcome is None and "model" in given.model_fields_set and given.model is None


def other_release(log: ParsedLog, words: Said, beside: Sequence[Sayer] = ()) -> str | None:
    """A sentence if the command line and the log, or a file beside it, give different releases."""
    sayers = (Sayer("", log), *beside)
    framework = _whole([sayer.said for sayer in sayers], words).framework
    versioned = (sayer for sayer in sayers if _version_by(framework, [sayer.said]) is not None)
    first = next(versioned, None)
    asked = words.release or words.version
    if first is None or asked is None:
        return None
    version = str(first.said.framework_version)
    if versions.is_same(version, asked):
        return None
    sentence = f"{first.name} says {RELEASE} {version}, ".lstrip()
    if words.release:
        return f"{sentence}{OPTION} says {asked}"
    return f"{sentence}--{RELEASE} {asked} is not taken"


def likely_framework(
    log: ParsedLog, words: Said, companions: Sequence[ParsedLog] = ()
) -> str | None:
    """The framework that a log is taken for, where neither it nor anything else says which."""
    configurations = (words.configuration, words.fallback, log.configuration)
    said = (*configurations, *(one.configuration for one in companions))
    return None if any(one.framework for one in said) else log.likely_framework


def unknown_model(words: Said) -> Diagnostic | None:
    """A model that --set names and the catalogue lacks; it is taken as it is written."""
    model = words.configuration.model
    if model is None or model in catalog.models():
        return None
    close = get_close_matches(model, catalog.models(), n=1)
    remedy = f"did you mean {close[0]!r}?" if close else None
    return Diagnostic(f"{OPTION} model", f"no model {model!r} in the catalogue", remedy=remedy)


def accompanies(companion: ParsedLog, log: ParsedLog) -> bool:
    """Whether a file may be of the run of a log: not if it names another framework, model, …"""
    theirs, own = catalogued(companion.configuration), catalogued(log.configuration)
    return all(_agree(getattr(theirs, name), getattr(own, name)) for name in SUBJECT)


def _agree(a: str | None, b: str | None) -> bool:
    return a is None or b is None or a == b


def catalogued(given: PartialCase) -> PartialCase:
    """The same, with the catalogue's names; a model or system that it lacks is left out."""
    fields = given.model_dump(exclude_unset=True)
    if given.framework is not None:
        fields["framework"] = names.framework(given.framework) or given.framework
    if given.model is not None:
        model = names.model(given.model)
        if isinstance(model, Refusal):
            fields.pop("model")
        else:
            fields["model"] = model.name
            fields |= {"qualifiers": model.qualifiers} if model.qualifiers else {}
    if given.system is not None:
        system = names.system(given.system)
        fields.pop("system") if isinstance(system, Refusal) else fields.update(system=system)
    if given.precision is not None:
        precision = names.precision(given.precision)
        fields["precision"] = given.precision if isinstance(precision, Refusal) else precision
    return PartialCase.model_validate(fields)


def _version(framework: str | None, sayers: Sequence[ParsedLog], words: Said) -> str | None:
    return words.release or _version_by(framework, sayers) or words.version


def _version_by(framework: str | None, sayers: Sequence[ParsedLog]) -> str | None:
    """The version that the first file of this framework gives."""
    of_framework = [sayer for sayer in sayers if _agree(sayer.framework, framework)]
    return next(
        (sayer.framework_version for sayer in of_framework if sayer.framework_version), None
    )


def _release(framework: str, sayers: Sequence[ParsedLog], words: Said) -> Release:
    """Version and container: from --set, else the first file with them, else an option."""
    of_framework = [sayer for sayer in sayers if _agree(sayer.framework, framework)]
    containers = [sayer.container for sayer in of_framework if sayer.container]
    return Release(
        framework=framework,
        version=_version(framework, sayers, words),
        container=next(iter(containers), words.container),
    )
