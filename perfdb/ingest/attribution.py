"""The case and release that a log is of: by the command line, the log, and files next to it.

--set overrides the log, the log the files next to it, and these the other options (--system and
the like), which count where nothing else states the field. What nobody states is not guessed.
"""

import json
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Final

from perfdb import catalog, metrics, versions, yamlfile
from perfdb.catalog import names
from perfdb.catalog.names import Refusal
from perfdb.errors import Diagnostic, InputError
from perfdb.formats import ParsedLog, experiment
from perfdb.formats.numbers import count
from perfdb.formats.precision import FP8
from perfdb.hardware import is_secret
from perfdb.ingest.companions import Companion
from perfdb.pages.base import PageContext
from perfdb.record import Case, PartialCase, Release

SET: Final = "--set"
RELEASE: Final = "release"
"""What --set takes besides the fields of a case."""

REQUIRED: Final = (
    "framework", "model", "system", "num_gpus", "sequence_length", "global_batch_size", "task",
)  # fmt: skip
"""The fields of a case that must be known of a log."""

OPTIONS: Final = ("framework", "system", "precision")
"""The fields of a case that have options of their own."""

_THE_LOG: Final = "the log"
_SUBJECT: Final = ("framework", "model", "system", "task")
_SCALED: Final = "the launcher ran a proxy or changed the model"
_LIKELY: Final = (
    "Megatron-Bridge prints such iteration lines, too: --format megatron_bridge says that it did"
)


@dataclass(frozen=True)
class StatedOptions:
    """What the command line states for logs; `case` and `release` are from --set."""

    case: PartialCase = field(default_factory=PartialCase)
    release: str | None = None
    fallback: PartialCase = field(default_factory=PartialCase)
    version: str | None = None
    container: str | None = None


@dataclass(frozen=True)
class Claims:
    """What a log, a file next to it or the name of one states, and how a note calls it."""

    name: str
    log: ParsedLog


@dataclass(frozen=True)
class Attributed:
    """The case and the release that a log is of."""

    case: Case
    release: Release


@dataclass(frozen=True)
class Missing:
    """The required fields that nothing states, and whether the release is missing too."""

    fields: tuple[str, ...]
    release: bool = False
    reason: str = ""
    """Why a field counts as missing although something states it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The fields, and the release where it is missing."""
        return (*self.fields, RELEASE) if self.release else self.fields

    def problem(self, where: str, line: int | None = None) -> Diagnostic:
        """What is missing, and the options that would state it."""
        options = [f"{SET} {name}=…" for name in self.fields]
        options += ["--release …"] if self.release else []
        message = f"names no {', '.join(self.names)}" + (self.reason and f" ({self.reason})")
        return Diagnostic(where, message, line=line, remedy=f"pass {' '.join(options)}")


class _Settings(PartialCase):
    release: str | None = None


def stated(context: PageContext, settings: Sequence[str] = ()) -> StatedOptions:
    """What the options and each `FIELD=VALUE` of --set state, names as the catalogue has them.

    Raises InputError with everything that is wrong.
    """
    options = PartialCase.model_validate(
        {name: value for name in OPTIONS if (value := getattr(context, name)) is not None}
    )
    checked = _settings(settings)
    problems = [*_unknown("--{}", options), *_unknown(SET + " {}", checked)]
    if problems:
        raise InputError(problems)
    fields = checked.model_dump(exclude_unset=True, exclude={RELEASE})
    case, fallback = catalogued(PartialCase.model_validate(fields)), catalogued(options)
    return StatedOptions(case, checked.release, fallback, context.release, context.container)


def unknown_model(stated: StatedOptions) -> Diagnostic | None:
    """A model of --set that the catalogue lacks; it is kept as it is written."""
    model = stated.case.model
    if model is None or model in catalog.models():
        return None
    close = get_close_matches(model, catalog.models(), n=1)
    remedy = f"did you mean {close[0]!r}?" if close else None
    return Diagnostic(f"{SET} model", f"no model {model!r} in the catalogue", remedy=remedy)


def _settings(settings: Sequence[str]) -> _Settings:
    """The fields of --set, checked. Raises InputError."""
    pairs = [setting.partition("=") for setting in settings]
    problems = [
        Diagnostic(SET, f"{setting!r} is not FIELD=VALUE", remedy="write --set num_gpus=8")
        for setting, (name, _, text) in zip(settings, pairs, strict=True)
        if not name.isidentifier() or not text.strip()
    ]
    if problems:
        raise InputError(problems)
    # A release is no number, or 25.10 would be 25.1.
    cells = (
        (name, json.dumps(text.strip()) if name == RELEASE else text) for name, _, text in pairs
    )
    text = "\n".join(f"{name}: {cell}" for name, cell in cells)
    document = yamlfile.parse(SET, text) if pairs else yamlfile.Document(SET, {}, {})
    if isinstance(document, yamlfile.Unreadable):
        raise InputError(_of_settings(document.problems, settings))
    checked = yamlfile.validate(document, _Settings)
    if isinstance(checked, list):
        raise InputError(_of_settings(checked, settings))
    return checked


def _of_settings(problems: Iterable[Diagnostic], settings: Sequence[str]) -> Iterator[Diagnostic]:
    """The same problems, named after the setting rather than its line."""
    for problem in problems:
        line, field_ = problem.line, problem.field
        known = field_ is None and line is not None and line <= len(settings)
        setting = f" {settings[line - 1]}" if known and line else ""
        yield Diagnostic(problem.where + setting, problem.message, field_, remedy=problem.remedy)


def _unknown(option: str, case: PartialCase) -> Iterator[Diagnostic]:
    """A problem for each name that the catalogue does not know."""
    for name, read in (
        ("model", names.model),
        ("system", names.system),
        ("precision", names.precision),
    ):
        value = getattr(case, name)
        reading = None if value is None else read(value)
        if isinstance(reading, Refusal):
            yield Diagnostic(option.format(name), reading.message, remedy=reading.remedy)


def catalogued(case: PartialCase) -> PartialCase:
    """The same, with the catalogue's names; a model or system that it lacks is left out."""
    fields = case.model_dump(exclude_unset=True)
    if case.framework is not None:
        fields["framework"] = names.framework(case.framework) or case.framework
    if case.model is not None:
        model = names.model(case.model)
        if isinstance(model, Refusal):
            fields.pop("model")
        else:
            fields["model"] = model.name
            fields |= {"qualifiers": model.qualifiers} if model.qualifiers else {}
    if case.system is not None:
        system = names.system(case.system)
        fields.pop("system") if isinstance(system, Refusal) else fields.update(system=system)
    if case.precision is not None:
        precision = names.precision(case.precision)
        fields["precision"] = case.precision if isinstance(precision, Refusal) else precision
    return PartialCase.model_validate(fields)


def accompanies(companion: ParsedLog, log: ParsedLog) -> bool:
    """Whether a file may be of the run of a log: not if it names another framework, model, …"""
    theirs, own = catalogued(companion.configuration), catalogued(log.configuration)
    return all(_agree(getattr(theirs, name), getattr(own, name)) for name in _SUBJECT)


def _agree(a: str | None, b: str | None) -> bool:
    return a is None or b is None or a == b


def with_layout(case: Case) -> Case:
    """The case with DP and GA where its other fields give them; else as they are stated."""
    tensor, pipeline, context = case.tensor_parallel, case.pipeline_parallel, case.context_parallel
    ranks, batch = case.data_parallel, case.local_batch_size or case.micro_batch_size
    if tensor and pipeline and context and case.num_gpus % (tensor * pipeline * context) == 0:
        ranks = metrics.data_parallel(case.num_gpus, tensor, pipeline, context)
    steps = case.gradient_accumulation
    if ranks and batch and case.global_batch_size % (batch * ranks) == 0:
        steps = metrics.gradient_accumulation(case.global_batch_size, batch, ranks)
    return case.model_copy(update={"data_parallel": ranks, "gradient_accumulation": steps})


class KnownVersions:
    """How the versions of each framework are spelled in the store: 25.09 and 25.09.00 are one."""

    def __init__(self, known: Iterable[tuple[str, str]] = ()) -> None:
        self._known: dict[str, dict[str, None]] = {}
        for framework, version in known:
            self._known.setdefault(framework, {})[version] = None

    def spelled(self, release: Release, option: str | None) -> Release:
        """A release as the command line spells it, else as the store does."""
        if release.version is None:
            return release
        known = self._known.setdefault(release.framework, {})
        first = (option, release.version if release.version in known else None, *known)
        same = (one for one in first if one and versions.is_same(one, release.version))
        version = versions.plain(next(same, release.version))
        known[version] = None
        return release.model_copy(update={"version": version})


@dataclass(frozen=True)
class Attribution:
    """A log, the files next to it and the command line: what the log is of by them."""

    where: str
    log: ParsedLog
    files: Sequence[Companion]
    stated: StatedOptions
    known: KnownVersions
    forced: bool = False
    """Whether --format names its format."""

    @cached_property
    def companions(self) -> Sequence[Companion]:
        """The files next to it that may be of its run, by it and by its experiment's name."""
        run = [self.log, *(one.log for one in self._names)]
        return [file for file in self.files if all(accompanies(file.log, one) for one in run)]

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of these files, but of those whose notes name them."""
        return tuple(file.source.path for file in self.companions if not file.log.notes)

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """What the files next to it state about its figures."""
        return tuple(note for file in self.companions for note in file.log.notes)

    @property
    def with_environment(self) -> ParsedLog:
        """The log with the environment that it and the files next to it state, but for secrets."""
        logs = (self.log, *(file.log for file in self.companions))
        merged = ChainMap(*(dict(one.environment) for one in logs))
        shown = {name: value for name, value in sorted(merged.items()) if not is_secret(name)}
        return replace(self.log, environment=shown)

    @cached_property
    def of(self) -> Attributed | Missing:
        """The case and the release of the log, or what is missing to know them."""
        whole = self._whole
        missing = tuple(name for name in REQUIRED if getattr(whole, name) is None)
        if missing:
            return self._missing(whole.framework, missing)
        case = with_layout(Case.model_validate(whole.model_dump(exclude_none=True)))
        containers = (one.container for one in self._of(case.framework) if one.container)
        release = Release(
            framework=case.framework,
            version=self._version(case.framework),
            container=next(containers, self.stated.container),
        )
        option = self.stated.release or self.stated.version
        return Attributed(case, self.known.spelled(release, option))

    @property
    def contradictions(self) -> tuple[Diagnostic, ...]:
        """What --set states instead of something that the log's step times follow from."""
        own, insisted = _fields(catalogued(self.log.configuration)), _fields(self.stated.case)
        remedy = "leave the option out: the log is right, or of another run"
        found = (
            f"says {name} {own[name]}, {SET} says {insisted[name]}; "
            f"its step times follow from {name}"
            for name in own
            if name in self.log.timed_by and insisted.get(name, own[name]) != own[name]
        )
        return tuple(Diagnostic(self.where, message, remedy=remedy) for message in found)

    def remarks(self) -> Iterator[Diagnostic]:
        """What was read and is not used, and what is doubtful."""
        yield from self.other_runs()
        for one in (Claims(_THE_LOG, self.log), *self._files):
            doubts = ", ".join(self._doubts(one.log))
            if doubts:
                message = f"{one.name} says {doubts}: what holds is not clear"
                message = message.removeprefix(f"{_THE_LOG} ")
                yield Diagnostic(self.where, message, remedy=f"{SET} says it")
        yield from self._unused()
        likely = self.log.likely_framework
        configured = (self.stated.fallback, self.stated.case, *self._cases)
        if likely and not self.forced and not any(one.framework for one in configured):
            message = f"nothing says its framework: {likely} is taken"
            yield Diagnostic(self.where, message, remedy=_LIKELY)
        if isinstance(self.of, Attributed) and (sizes := _sizes(self.log, self.of.case.model)):
            yield Diagnostic(self.where, sizes)

    def other_runs(self) -> Iterator[Diagnostic]:
        """The files next to it that are of another run by the experiment's name alone."""
        for file in self.files:
            if accompanies(file.log, self.log) and file not in self.companions:
                message = f"{file.name} is of another run, by {self._names[0].name}: it is not used"
                yield Diagnostic(self.where, message)

    def _missing(self, framework: str | None, missing: tuple[str, ...]) -> Missing:
        doubts = [
            one.log.doubts[name]
            for name in missing
            for one in self._claims
            if name in one.log.doubts
        ]
        reasons = [f"says {doubt}" for doubt in doubts]
        reasons += [_SCALED] if "model" in missing and self._is_scaled else []
        return Missing(missing, self._version(framework) is None, ", ".join(reasons))

    @cached_property
    def _names(self) -> Sequence[Claims]:
        """What the experiment's name states: that is what ran; a launcher's notes may be others."""
        of_name, nodes = experiment.of_path(self.where), experiment.nodes_of_path(self.where)
        golden = experiment.golden_values(self.where)
        found = [*self._named("the experiment's name", of_name, nodes)]
        return [*found, *self._named("the file's name", golden)]

    @cached_property
    def _files(self) -> Sequence[Claims]:
        return [Claims(file.name, file.log) for file in self.companions]

    @cached_property
    def _claims(self) -> Sequence[Claims]:
        """All that states something about the log, in the order in which it counts."""
        path = None if experiment.of_path(self.where) else experiment.sizes_of_path(self.where)
        sizes = self._named("the path", path)
        return [Claims(_THE_LOG, self.log), *self._names, *self._files, *sizes]

    @cached_property
    def _cases(self) -> Sequence[PartialCase]:
        return [catalogued(one.log.configuration) for one in self._claims]

    def _named(
        self, name: str, case: PartialCase | None, num_nodes: int | None = None
    ) -> Iterator[Claims]:
        if case is not None:
            claims = Claims(name, ParsedLog(case, num_nodes=num_nodes))
            if accompanies(claims.log, self.log):
                yield claims

    @cached_property
    def _is_scaled(self) -> bool:
        """Whether a file next to the log states that what ran was no model of the catalogue."""
        stated = (one.log.configuration for one in self._claims if one.log.outcome is None)
        return any("model" in one.model_fields_set and one.model is None for one in stated)

    @cached_property
    def _whole(self) -> PartialCase:
        whole = self.stated.case
        if self._is_scaled:
            whole = whole.completed_by(PartialCase(model=None))
        for case in self._cases:
            whole = whole.completed_by(case)
        if whole.precision == FP8 and self.stated.case.precision is None:
            others = (one.precision or "" for one in (*self._cases, self.stated.fallback))
            recipe = next((one for one in others if one.startswith(f"{FP8}_")), FP8)
            whole = whole.model_copy(update={"precision": recipe})
        num_nodes = next((one.log.num_nodes for one in self._claims if one.log.num_nodes), None)
        whole = _with_gpus(whole.completed_by(self.stated.fallback), num_nodes)
        return whole.completed_by(PartialCase(framework=self.log.likely_framework))

    def _of(self, framework: str | None) -> Iterator[ParsedLog]:
        """The logs and files of this framework."""
        return (one.log for one in self._claims if _agree(one.log.framework, framework))

    def _version(self, framework: str | None) -> str | None:
        found = (one.framework_version for one in self._of(framework) if one.framework_version)
        return self.stated.release or next(found, self.stated.version)

    def _doubts(self, log: ParsedLog) -> Iterator[str]:
        insisted = {*self.stated.case.model_fields_set, *(self.stated.case.options or ())}
        return (doubt for name, doubt in log.doubts.items() if name not in insisted)

    def _unused(self) -> Iterator[Diagnostic]:
        """Each value that differs from that of an earlier source, which counts."""
        used: dict[str, tuple[object, str]] = {}
        for source, fields in self._sources():
            for name, value in fields.items():
                kept, by = used.setdefault(name, (value, source))
                if _is_same(name, kept, value) or (by == SET and source.startswith("--")):
                    continue
                yield self._difference(name, (by, kept), (source, value))

    def _difference(
        self, name: str, used: tuple[str, object], unused: tuple[str, object]
    ) -> Diagnostic:
        (by, kept), (source, value) = used, unused
        remedy = None
        if source.startswith("--"):
            message = f"{by} says {name} {kept}, {source} {value} is not taken"
            remedy = f"{SET} {name}={value} insists on it"
        elif by == SET:
            message = f"{source} says {name} {value}, {SET} says {kept}"
        else:
            message = f"{source} says {name} {value}; {by} says {name} {kept}, which holds"
        return Diagnostic(self.where, message.removeprefix(f"{_THE_LOG} "), remedy=remedy)

    def _sources(self) -> Iterator[tuple[str, Mapping[str, object]]]:
        """The fields that each source states, in the order in which they count."""
        stated, framework = self.stated, self._whole.framework
        yield SET, _fields(stated.case) | ({RELEASE: stated.release} if stated.release else {})
        for one, case in zip(self._claims, self._cases, strict=True):
            nodes = PartialCase(system=self._whole.system)
            gpus = _with_gpus(nodes, one.log.num_nodes).num_gpus
            version = one.log.framework_version if _agree(one.log.framework, framework) else None
            extra = {"num_gpus": gpus, RELEASE: version}
            yield one.name, {**{k: v for k, v in extra.items() if v}, **_fields(case)}
        for name, value in _fields(stated.fallback).items():
            yield f"--{name}", {name: value}
        if stated.version:
            yield f"--{RELEASE}", {RELEASE: stated.version}


def _fields(case: PartialCase) -> dict[str, object]:
    """The fields that are stated, each option by itself."""
    fields = case.model_dump(exclude_none=True)
    options: dict[str, object] = fields.pop("options", {})
    return fields | {f"option {name}": value for name, value in options.items()}


def _is_same(name: str, one: object, other: object) -> bool:
    """Whether two values of a field are the same: spellings of a release, FP8 and which FP8."""
    if name == RELEASE:
        return versions.is_same(str(one), str(other))
    is_fp8 = FP8 in (one, other) and all(str(it).startswith(FP8) for it in (one, other))
    return one == other or is_fp8


def _with_gpus(case: PartialCase, num_nodes: int | None) -> PartialCase:
    """The case with the number of GPUs that so many nodes of its system have."""
    system = catalog.systems().get(case.system or "")
    if case.num_gpus or num_nodes is None or system is None or system.gpus_per_node is None:
        return case
    return case.model_copy(update={"num_gpus": count(num_nodes * system.gpus_per_node)})


def _sizes(log: ParsedLog, model: str) -> str | None:
    """A sentence if the log prints other sizes of its model than the catalogue has of this one."""
    models = catalog.models()
    if model not in models or not (differing := _differing(log, models[model])):
        return None
    printed = ", ".join(f"{name} {log.shape[name]}" for name in differing)
    known = ", ".join(f"{name} {getattr(models[model], name) or 'none'}" for name in differing)
    same = [one.name for one in models.values() if not _differing(log, one)]
    others = f", as {' and '.join(same)}" if same else ""
    return f"says {printed}{others}; {model} has {known}"


def _differing(log: ParsedLog, model: catalog.Model) -> Sequence[str]:
    """The sizes that differ; programs do not agree which MLP they print of experts."""
    unsure = ("ffn_hidden_size",) if model.num_experts else ()
    return [
        name
        for name, size in log.shape.items()
        if name not in unsure and size != getattr(model, name)
    ]
