"""The case and release that a log is of: by the command line, the log, and files next to it.

Each source states fields, and the first that states a field counts: --set, the log, the name of
the experiment, the files next to the log, sizes in its path, and the other options. What nobody
states is not guessed.
"""

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from perfdb import catalog, metrics, versions
from perfdb.catalog import names
from perfdb.catalog.names import Refusal
from perfdb.errors import Diagnostic
from perfdb.formats import ParsedLog, experiment, settle
from perfdb.formats.numbers import count
from perfdb.formats.precision import FP8
from perfdb.hardware import is_secret, without_secrets
from perfdb.ingest.companions import Companion
from perfdb.ingest.options import SET, Checked
from perfdb.record import Case, PartialCase, Release

RELEASE: Final = "release"

REQUIRED: Final = (
    "framework", "model", "system", "num_gpus", "sequence_length", "global_batch_size", "task",
)  # fmt: skip
"""The fields of a case that must be known of a log."""

MOST_ITEMS: Final = 8
"""Results of a file that a message names."""

_THE_LOG: Final = "the log"
_SUBJECT: Final = ("framework", "model", "system", "task")
_OPTION: Final = "option "
"""What precedes the name of an option that is a field of its own."""

_LIKELY: Final = (
    "Megatron-Bridge prints such iteration lines, too: --format megatron_bridge says that it did"
)


@dataclass(frozen=True)
class Claims:
    """What one source states: fields by the catalogue's names, each option as a field of its own.

    A field that is None is stated to be absent.
    """

    source: str
    fields: Mapping[str, object]
    log: ParsedLog = field(default_factory=lambda: ParsedLog(PartialCase()))

    @property
    def known(self) -> Mapping[str, object]:
        """The fields that have a value."""
        return {name: value for name, value in self.fields.items() if value is not None}

    def is_of(self, other: "Claims") -> bool:
        """Whether two sources may be of one run: not if they name two frameworks, models, …"""
        theirs, own = self.known, other.known
        return all(theirs.get(it) in (None, own.get(it, theirs.get(it))) for it in _SUBJECT)


@dataclass(frozen=True)
class Attribution:
    """What a log is of, and what to tell the user about it.

    If fields are `missing`, there is no case; `reason` is why one of them is, though it is stated.
    `companions` are the files next to the log that are of its run, and `other_runs` notes on those
    that are not. `contradictions` reject the log.
    """

    log: ParsedLog
    companions: tuple[Companion, ...]
    other_runs: tuple[Diagnostic, ...] = ()
    contradictions: tuple[Diagnostic, ...] = ()
    case: Case | None = None
    release: Release | None = None
    missing: tuple[str, ...] = ()
    reason: str = ""
    remarks: tuple[Diagnostic, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the companions, except those that notes name."""
        return tuple(file.source.path for file in self.companions if not file.log.notes)

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """What the companions state about the figures of the log."""
        return tuple(note for file in self.companions for note in file.log.notes)

    def problem(
        self,
        where: str,
        line: int | None = None,
        *,
        items: Sequence[str] = (),
        differing: Sequence[str] = (),
    ) -> Diagnostic:
        """What is missing, and the options that would state it.

        `items`: the names of the results of the file that lack the same; `differing`: the fields
        in which the results of the file differ, so that no value is that of all.
        """
        of_item = ("ITEM:" if len(items) > 1 else f"{items[0]}:") if items and differing else ""
        options = [
            "--release …" if it == RELEASE else f"{SET} {of_item}{it}=…" for it in self.missing
        ]
        message = f"names no {', '.join(self.missing)}" + (self.reason and f" ({self.reason})")
        remedy = f"pass {' '.join(options)}"
        if of_item:
            more = " or …" if items[MOST_ITEMS:] else ""
            names_of = f", where ITEM is {' or '.join(items[:MOST_ITEMS])}{more}"
            remedy += names_of if len(items) > 1 else ""
            remedy += f": results of the file differ in {', '.join(differing)}"
        return Diagnostic(where, message, line=line, remedy=remedy)


def attribute(
    where: str, log: ParsedLog, files: Sequence[Companion], options: Checked
) -> Attribution:
    """What a log is of, by the options, the log at a path and the files next to it."""
    own = Claims(_THE_LOG, catalogued(log.configuration), log)
    of_name = _of_experiment(where, own)
    beside = ((it, Claims(it.name, catalogued(it.log.configuration), it.log)) for it in files)
    near = [(it, one) for it, one in beside if one.is_of(own)]
    used = [(it, one) for it, one in near if all(map(one.is_of, of_name))]
    other_runs = tuple(
        Diagnostic(where, f"{it.name} is of another run, by {of_name[0].source}: it is not used")
        for it, _ in near
        if it not in [companion for companion, _ in used]
    )
    sizes = None if experiment.of_path(where) else experiment.sizes_of_path(where)
    claims = [own, *of_name, *(one for _, one in used), *_named("the path", sizes, own)]
    stated = _statements(claims, log, options)
    found = Attribution(
        replace(log, environment=_environment([log, *(it.log for it, _ in used)])),
        tuple(it for it, _ in used),
        other_runs,
        tuple(_contradictions(where, log, own.known, stated[0].known)),
    )
    case = _case(stated)
    if isinstance(case, tuple):
        logs = [one.log for one in claims]
        reasons = [f"says {one.doubts[it]}" for it in case for one in logs if it in one.doubts]
        if "model" in case and _is_scaled(logs):
            reasons.append("the launcher ran a proxy or changed the model")
        return replace(found, missing=case, reason=", ".join(reasons))
    remarks = [*other_runs, *_doubts(where, [own, *(one for _, one in used)], options)]
    remarks += [*_unused(where, stated), *_of_pages(where, options)]
    if options.format is None and not any(one.known.get("framework") for one in stated[:-1]):
        message = f"nothing says its framework: {log.likely_framework} is taken"
        remarks.append(Diagnostic(where, message, remedy=_LIKELY))
    if sizes_differ := _sizes(log, case.model):
        remarks.append(Diagnostic(where, sizes_differ))
    release = _release(case.framework, stated, options)
    found = replace(found, log=settle.timed(where, found.log, case))
    return replace(found, case=case, release=release, remarks=tuple(remarks))


def catalogued(case: PartialCase) -> dict[str, object]:
    """The fields that are stated, by the catalogue's names; models and systems that it lacks are
    left out.
    """
    fields = case.model_dump(exclude_unset=True)
    options: Mapping[str, object] = fields.pop("options", None) or {}
    if case.framework is not None:
        fields["framework"] = names.framework(case.framework) or case.framework
    if case.model is not None:
        model = names.model(case.model)
        if isinstance(model, Refusal):
            del fields["model"]
        else:
            fields["model"] = model.name
            fields |= {"qualifiers": model.qualifiers} if model.qualifiers else {}
    if case.system is not None:
        system = names.system(case.system)
        fields.pop("system") if isinstance(system, Refusal) else fields.update(system=system)
    if case.precision is not None:
        precision = names.precision(case.precision)
        fields["precision"] = case.precision if isinstance(precision, Refusal) else precision
    return fields | {_OPTION + name: value for name, value in options.items()}


def with_layout(case: Case) -> Case:
    """The case with DP and GA if its other fields give them; else as they are stated."""
    tensor, pipeline, context = case.tensor_parallel, case.pipeline_parallel, case.context_parallel
    ranks, batch = case.data_parallel, case.local_batch_size or case.micro_batch_size
    if tensor and pipeline and context and case.num_gpus % (tensor * pipeline * context) == 0:
        ranks = metrics.data_parallel(case.num_gpus, tensor, pipeline, context)
    steps = case.gradient_accumulation
    if ranks and batch and case.global_batch_size % (batch * ranks) == 0:
        steps = metrics.gradient_accumulation(case.global_batch_size, batch, ranks)
    return case.model_copy(update={"data_parallel": ranks, "gradient_accumulation": steps})


def _of_experiment(where: str, log: Claims) -> list[Claims]:
    """What the names of the experiment and of golden values state: that is what ran, while a
    launcher's file may be of another run.
    """
    nodes = experiment.nodes_of_path(where)
    found = _named("the experiment's name", experiment.of_path(where), log, nodes)
    return [*found, *_named("the file's name", experiment.golden_values(where), log)]


def _named(
    source: str, case: PartialCase | None, log: Claims, num_nodes: int | None = None
) -> Iterator[Claims]:
    if case is not None:
        one = Claims(source, catalogued(case), ParsedLog(case, num_nodes=num_nodes))
        if one.is_of(log):
            yield one


def _statements(claims: Sequence[Claims], log: ParsedLog, options: Checked) -> tuple[Claims, ...]:
    """What all sources state, in the order in which they count.

    A number of nodes is one of GPUs by the system. A release counts only if it is of the framework.
    """
    context, insisted = options.context, Claims(SET, catalogued(options.settings))
    others = tuple(
        Claims(f"--{name}", catalogued(PartialCase.model_validate({name: value})))
        for name in ("framework", "system", "precision")
        if (value := getattr(context, name)) is not None
    )
    stated = ChainMap(*(dict(one.fields) for one in (insisted, *claims, *others)))
    framework = stated.get("framework") or log.likely_framework
    completed = []
    for one in claims:
        version = one.log.framework_version if _agrees(one.log, framework) else None
        gpus = _num_gpus(stated.get("system"), one.log.num_nodes)
        derived = {"num_gpus": gpus, RELEASE: version}
        known = {name: value for name, value in derived.items() if value is not None}
        completed.append(replace(one, fields=known | dict(one.fields)))
    scaled = [Claims("", {"model": None})] if _is_scaled(one.log for one in claims) else []
    likely = Claims("", {"framework": log.likely_framework})
    release = [Claims(f"--{RELEASE}", {RELEASE: context.release})] if context.release else []
    return (insisted, *scaled, *completed, *others, *release, likely)


def _case(stated: Sequence[Claims]) -> Case | tuple[str, ...]:
    """The case by all that is stated, or the required fields that are missing."""
    merged = ChainMap(*(dict(one.fields) for one in stated))
    missing = tuple(name for name in REQUIRED if merged.get(name) is None)
    if missing:
        return (*missing, RELEASE) if merged.get(RELEASE) is None else missing
    fields = {name: value for name, value in merged.items() if value is not None}
    for name in (RELEASE, "container", "peak_tflops"):  # of releases and pages
        fields.pop(name, None)
    recipes = (str(one.fields.get("precision")) for one in stated)
    if fields.get("precision") == FP8 and "precision" not in stated[0].known:
        fields["precision"] = next((it for it in recipes if it.startswith(f"{FP8}_")), FP8)
    options = {it.removeprefix(_OPTION): fields.pop(it) for it in [*fields] if _OPTION in it}
    return with_layout(Case.model_validate(fields | {"options": options}))


def _release(framework: str, stated: Sequence[Claims], options: Checked) -> Release:
    """The release, spelled as on the command line, else as in the store: 25.09 is 25.09.00."""
    version = next((str(one.fields[RELEASE]) for one in stated if one.fields.get(RELEASE)), None)
    containers = (it.log.container for it in stated if _agrees(it.log, framework))
    stated_box = (options.settings.container, *containers, options.context.container)
    container = next(filter(None, stated_box), None)
    if version is not None:
        known = options.releases.setdefault(framework, {})
        option = options.settings.release or options.context.release
        first = (option, version if version in known else None, *known)
        same = (one for one in first if one and versions.is_same(one, version))
        version = versions.plain(next(same, version))
        known[version] = None
    return Release(framework=framework, version=version, container=container)


def _agrees(log: ParsedLog, framework: object) -> bool:
    return log.framework is None or framework is None or log.framework == framework


def _num_gpus(system: object, num_nodes: int | None) -> int | None:
    """The number of GPUs that so many nodes of a system have."""
    known = catalog.systems().get(str(system))
    if num_nodes is None or known is None or known.gpus_per_node is None:
        return None
    return count(num_nodes * known.gpus_per_node)


def _is_scaled(logs: Iterable[ParsedLog]) -> bool:
    """Whether a file next to the log states that what ran was no model of the catalogue."""
    stated = (one.configuration for one in logs if one.outcome is None)
    return any("model" in one.model_fields_set and one.model is None for one in stated)


def _environment(logs: Sequence[ParsedLog]) -> Mapping[str, str]:
    """The environment that the logs state, the first first, without secrets."""
    merged = ChainMap(*(dict(one.environment) for one in logs))
    known = {name: value for name, value in merged.items() if not is_secret(name)}
    return {name: without_secrets(known[name]) for name in sorted(known)}


def _contradictions(
    where: str, log: ParsedLog, own: Mapping[str, object], insisted: Mapping[str, object]
) -> Iterator[Diagnostic]:
    """What --set states instead of something that the log's step times follow from."""
    remedy = "leave the option out: the log is right, or of another run"
    for name in own:
        if name in log.timed_by and insisted.get(name, own[name]) != own[name]:
            message = f"says {name} {own[name]}, {SET} says {insisted[name]}; "
            message += f"its step times follow from {name}"
            yield Diagnostic(where, message, remedy=remedy)


def _doubts(where: str, claims: Iterable[Claims], options: Checked) -> Iterator[Diagnostic]:
    """Fields that a source contradicts itself in."""
    insisted = {*options.settings.model_fields_set, *(options.settings.options or ())}
    for one in claims:
        doubts = [doubt for name, doubt in one.log.doubts.items() if name not in insisted]
        if doubts:
            message = f"{one.source} says {', '.join(doubts)}: what holds is not clear"
            yield Diagnostic(where, message.removeprefix(f"{_THE_LOG} "), remedy=f"{SET} says it")


def _unused(where: str, stated: Iterable[Claims]) -> Iterator[Diagnostic]:
    """Each value that differs from that of an earlier source, which counts."""
    used: dict[str, tuple[object, str]] = {}
    for one in stated:
        for name, value in one.known.items() if one.source else ():
            kept, by = used.setdefault(name, (value, one.source))
            is_option, remedy = one.source.startswith("--"), None
            if _is_same(name, kept, value) or (by == SET and is_option):
                continue
            if is_option:
                message = f"{by} says {name} {kept}, {one.source} {value} is not taken"
                remedy = f"{SET} {name}={value} insists on it"
            elif by == SET:
                message = f"{one.source} says {name} {value}, {SET} says {kept}"
            else:
                message = f"{one.source} says {name} {value}; {by} says {name} {kept}, which holds"
            yield Diagnostic(where, message.removeprefix(f"{_THE_LOG} "), remedy=remedy)


def _of_pages(where: str, options: Checked) -> Iterator[Diagnostic]:
    """What --set states that only a page takes."""
    if options.settings.peak_tflops:
        message = f"{SET} peak_tflops is of pages only; it is not taken"
        yield Diagnostic(where, message, remedy="define a system with its peaks in perfdb.toml")


def _is_same(name: str, one: object, other: object) -> bool:
    """Whether two values of a field are the same: spellings of a release, FP8 and which FP8."""
    if name == RELEASE:
        return versions.is_same(str(one), str(other))
    is_fp8 = FP8 in (one, other) and all(str(it).startswith(FP8) for it in (one, other))
    return one == other or is_fp8


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
    """The sizes that differ; programs do not agree which MLP of experts they print."""
    unsure = ("ffn_hidden_size",) if model.num_experts else ()
    return [
        name
        for name, size in log.shape.items()
        if name not in unsure and size != getattr(model, name)
    ]
