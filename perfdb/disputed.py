"""What is said of a log and does not hold, or contradicts what else is said of it. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from perfdb import catalog, following, versions
from perfdb.attribute import OPTION, OPTIONS, RELEASE, Said, Sayer, catalogued
from perfdb.errors import Diagnostic
from perfdb.formats import ParsedLog
from perfdb.formats.precision import FP8
from perfdb.record import PartialCase


def contradictions(
    log: ParsedLog, words: Said, beside: Sequence[Sayer] = ()
) -> Iterator[tuple[str, str]]:
    """Each field that --set changes from what it would be without it, with a sentence.

    The sentence names the file beside the log that gives the field, if not the log itself does,
    and both values. What the catalogue lacks holds nowhere: any option is said instead of it.
    """
    sayers = (Sayer("", log), *beside)
    insisted, seen, system = _stated(words.configuration), set[str](), _system(sayers, words)
    anything = _stated(words.fallback) | insisted
    for sayer in sayers:
        given = sayer.said.configuration
        of_nodes = following.with_gpus(PartialCase(system=system), sayer.said.num_nodes).num_gpus
        known = ({"num_gpus": of_nodes} if of_nodes else {}) | _stated(catalogued(given))
        own = _stated(given) | known
        for name, mine in own.items():
            theirs = (insisted if name in known else anything).get(name)
            if name not in seen and theirs is not None and mine != theirs:
                option = OPTION if name in insisted else f"--{name}"
                yield name, f"{sayer.name} says {name} {mine}, {option} says {theirs}".lstrip()
        seen.update(own)


def overruled(words: Said) -> Iterator[Diagnostic]:
    """Each option that --set contradicts: of logs it does not hold, of pages it does."""
    insisted, options = words.configuration, words.fallback
    pairs = [(name, getattr(insisted, name), getattr(options, name)) for name in OPTIONS]
    said = [(name, mine, theirs) for name, mine, theirs in pairs if mine != theirs]
    if words.release and words.version and not versions.is_same(words.release, words.version):
        said.append((RELEASE, words.release, words.version))
    for name, mine, theirs in said:
        if None not in (mine, theirs):
            message = f"says {mine}, --{name} says {theirs}, which is not taken for logs"
            yield Diagnostic(f"{OPTION} {name}", message)


def _system(sayers: Iterable[Sayer], words: Said) -> str | None:
    said = (catalogued(sayer.said.configuration).system for sayer in sayers)
    systems = (words.configuration.system, *said, words.fallback.system)
    return next(filter(None, systems), None)


def untaken(log: ParsedLog, words: Said, beside: Sequence[Sayer] = ()) -> Iterator[str]:
    """A sentence for each option but --set of which the log, or a file beside it, says another."""
    insisted = _stated(words.configuration)
    for name, theirs in _stated(words.fallback).items():
        for sayer in (Sayer("", log), *beside):
            own = _stated(catalogued(sayer.said.configuration)).get(name)
            if own is not None:
                if name not in insisted and not _is_as(own, theirs):
                    sentence = f"{sayer.name} says {name} {own}, --{name} {theirs} is not taken"
                    yield sentence.lstrip()
                break


def doubts(log: ParsedLog, words: Said) -> str | None:
    """A sentence on what a log says in words that contradict one another, and --set does not."""
    insisted = {*words.configuration.model_fields_set, *(words.configuration.options or ())}
    told = ", ".join(told for name, told in log.doubts.items() if name not in insisted)
    return f"says {told}: what holds is not clear" if told else None


def disagreements(first: Sayer, words: Said, beside: Sequence[Sayer]) -> Iterator[str]:
    """A sentence for each of those beside a log, and each before it, of whose values it has others.

    What --set says is not disputed, and to say which FP8 it was is no other value.
    """
    insisted = _stated(words.configuration)
    held: dict[str, tuple[object, str]] = {}
    for sayer in (first, *beside):
        theirs = _stated(catalogued(sayer.said.configuration))
        differing: dict[str, list[str]] = {}
        for name, value in theirs.items():
            mine, who = held.setdefault(name, (value, sayer.name))
            if name not in insisted and not _is_as(mine, value):
                differing.setdefault(who, []).append(name)
        for who, names in differing.items():
            other = ", ".join(f"{name} {theirs[name]}" for name in names)
            own = ", ".join(f"{name} {held[name][0]}" for name in names)
            yield f"{sayer.name} says {other}; {who} says {own}, which holds"


def shape(log: ParsedLog, model: str) -> str | None:
    """A sentence if the log prints other sizes of its model than the catalogue has of this one."""
    models = catalog.models()
    if model not in models or not (differing := _differing(log, models[model])):
        return None
    said = ", ".join(f"{name} {log.shape[name]}" for name in differing)
    has = ", ".join(f"{name} {getattr(models[model], name) or 'none'}" for name in differing)
    like = [one.name for one in models.values() if not _differing(log, one)]
    as_others = f", as {' and '.join(like)}" if like else ""
    return f"says {said}{as_others}; {model} has {has}"


def _differing(log: ParsedLog, model: catalog.Model) -> Sequence[str]:
    """The sizes of which a log says another; programs differ in whose MLP they print of experts."""
    unsure = ("ffn_hidden_size",) if model.num_experts else ()
    return [
        name
        for name, size in log.shape.items()
        if name not in unsure and size != getattr(model, name)
    ]


def _is_as(one: object, other: object) -> bool:
    """Whether two values of a field are the same, or FP8 and which FP8."""
    is_fp8 = FP8 in (one, other) and all(str(it).startswith(FP8) for it in (one, other))
    return one == other or is_fp8


def _stated(given: PartialCase) -> dict[str, object]:
    """The fields that are given, each option by itself."""
    fields = given.model_dump(exclude_none=True)
    options: dict[str, object] = fields.pop("options", {})
    return fields | {f"option {name}": value for name, value in options.items()}
