"""On which system a row was run: by what its cells name, systems or GPUs, and what stands above."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfdb import catalog
from perfdb.catalog import System
from perfdb.pages import cells, names
from perfdb.pages.cells import Wrong

_BY_GPU = ("hardware", "gpu", "beside_model")
"""Fields in which a GPU may stand for its system."""
_MENTIONED = re.compile(
    r"(?<![a-z0-9.])(?:[0-9]+\s*[x×]\s*)?"
    r"([dh]gx[- ]?[a-z]{1,2}[0-9]\w*|(?:[abhrv]|g[bh]|vr|mi)[0-9]{3}x?|h20|l40s?|gaudi ?[0-9]"
    r"|tpu ?v[0-9]\w*|trainium[0-9]?)(?:nvl[0-9]+)?s?(?![a-z0-9])"
    r"([-, (\[]+(?:[0-9]+ ?gi?b[-, (\[]+)?(?:pcie|nvl|mig|cnx)(?![a-z0-9])[)\]]?)?",
    re.IGNORECASE,
)
_OF_GPU = re.compile(
    r"(?:[0-9]+[ ]?[x×*]|nvidia|gpus?|hopper|blackwell|ultra|grace|superchips?|[dh]gx|nodes?"
    r"|servers?|systems?|clusters?|sxm[0-9]?|hbm3e?|[0-9]+[ ]?gi?b|nvl[0-9]+|nvlink|nvswitch"
    r"|tensor[ ]cores?|with|and|of|each|per)(?![a-z0-9])",
    re.IGNORECASE,
)
"""What may stand beside the word of a GPU: an H100 PCIe is of no DGX, and no precision is a GPU."""
_COUNT = re.compile(r"\b([0-9]+) ?[x×*]", re.IGNORECASE)
_MAKER = re.compile("[dh]gx[- ]?", re.IGNORECASE)


@dataclass(frozen=True)
class _Named:
    """What a cell names: a system, or GPUs that several systems may have."""

    text: str
    systems: frozenset[str]
    is_system: bool


def of_row(texts: Mapping[str, str], above: str | Wrong | None, given: str | None) -> str | Wrong:
    """The system of a row; `above` is named above its table, `given` where nothing else is.

    Where nobody can tell what is named above, a row that names none itself is on none.
    """
    if (printed := texts.get("system", "")) and cells.absent(printed):
        return _above(None)
    kind = names.gpus(texts.get("num_gpus", "")).kind
    of_kind = names.system_of_gpu(kind) if kind else None
    named = [*_named(texts), *([_system_or_gpu(kind)] if kind else [])]
    if of_kind and (isinstance(of_kind, Wrong) or (len(named) == 1 and not (above or given))):
        return of_kind
    if wrong := next((one for one in named if isinstance(one, Wrong)), _miscounted(texts)):
        return wrong
    if isinstance(above, Wrong) and not named:
        return above
    context = None if isinstance(above, Wrong) else above
    return _agreed([one for one in named if isinstance(one, _Named)], context, given)


def possible(texts: Mapping[str, str], above: str | None) -> frozenset[str]:
    """The systems that a row may be of by its cells, else by what is named above; empty: any."""
    kind = names.gpus(texts.get("num_gpus", "")).kind
    named = [*_named(texts), *([_system_or_gpu(kind)] if kind else [])]
    known = catalog.named_system(above or "") or above
    if not named:
        return frozenset({known} if known else ())
    every = (frozenset({one.message}) if isinstance(one, Wrong) else one.systems for one in named)
    common = frozenset[str].intersection(*every)
    return frozenset({known}) if known in common else common


def mentioned(words: str) -> tuple[str, ...]:
    """The systems and GPUs that are named among other words, each once."""
    named = ("".join(parts) for parts in _MENTIONED.findall(words))
    found = {_MAKER.sub("", name).upper(): name for name in named}
    whole = {_MAKER.sub("", name).upper(): name for name in found.values() if _MAKER.match(name)}
    return tuple({**found, **whole}.values())


def beside_model(text: str) -> str | None:
    """The system that a word beside a model names; None of a GPU that several systems have."""
    named = _system_or_gpu(text)
    if isinstance(named, Wrong):
        return text
    return min(named.systems) if len(named.systems) == 1 else None


def may_be(text: str, system: str) -> bool:
    """Whether what a word names is a system, or a GPU that it has."""
    named = _system_or_gpu(text)
    return isinstance(named, _Named) and system in named.systems


def _agreed(named: Sequence[_Named], above: str | None, given: str | None) -> str | Wrong:
    context = above or given
    if not named:
        return _above(context)
    common = frozenset[str].intersection(*(one.systems for one in named))
    texts = " and ".join(dict.fromkeys(repr(one.text) for one in named))
    if not common:
        return Wrong(f"{texts} are not of one system", "correct one of them")
    known = catalog.named_system(context or "")
    if known in common:
        return known
    if above and not any(one.is_system for one in named):
        remedy = "correct one of them, or name the system in a column System"
        return Wrong(f"{texts} is not of {above!r}, which the page says above", remedy)
    if len(common) > 1:
        may_be = " or ".join(sorted(common))
        return Wrong(f"{texts} may be of {may_be}", "name the system in a column System")
    return min(common)


def _above(context: str | None) -> str | Wrong:
    if not context or cells.absent(context):
        remedy = "pass --system, or put `System: NAME` above the table"
        return Wrong("the page does not say which system", remedy)
    return names.system(context)


def _named(texts: Mapping[str, str]) -> Iterator[_Named | Wrong]:
    """What each cell of a row names."""
    if printed := texts.get("system", ""):
        known = names.system(printed)
        yield known if isinstance(known, Wrong) else _Named(printed, frozenset({known}), True)
    for text in (texts.get(name, "") for name in _BY_GPU):
        if not cells.absent(text):
            yield _system_or_gpu(text)


def _miscounted(texts: Mapping[str, str]) -> Wrong | None:
    """That `16x H100` counts GPUs which are no node, and the row has no whole multiple of them."""
    total = cells.whole(names.gpus(texts.get("num_gpus", "")).count)
    nodes = {one.gpus_per_node for one in catalog.systems().values()}
    for text in (texts.get(name, "") for name in _BY_GPU):
        counted = _COUNT.search(text)
        count = int(counted[1]) if counted else 0
        if count and count not in nodes and isinstance(total, int) and total % count:
            return Wrong(f"{text!r} is not of {total} GPUs", "correct one of them")
    return None


def _system_or_gpu(text: str) -> _Named | Wrong:
    if known := catalog.named_system(text):
        return _Named(text, frozenset({known}), True)
    found = [one for one in catalog.systems().values() if catalog.gpus_named(one, text)]
    if not found:
        remedy = "name a system of the catalogue: `perfdb systems` lists them"
        return Wrong(f"no system or GPU {text!r} in the catalogue", remedy)
    if len(found) > 1:
        return Wrong(f"{text!r} names several GPUs", "give each a row of its own")
    if more := _beside_gpu(found[0], text):
        remedy = "name the system in a column System, and the precision in one of its own"
        return Wrong(f"{text!r} says {more!r} of a GPU, which is not known", remedy)
    return _Named(text, frozenset(_that_have(found[0])), False)


def _beside_gpu(known: System, text: str) -> str:
    """The words beside that of a GPU that nobody knows to leave it the same one."""
    gpus = "|".join(catalog.gpus_named(known, text))
    bare = re.sub(rf"[dh]gx[- ]?(?={gpus})|(?:{gpus})s?", " ", text, flags=re.IGNORECASE)
    return " ".join(re.findall(r"[\w+]+", _OF_GPU.sub(" ", bare)))


def _that_have(known: System) -> Iterator[str]:
    """The systems of a GPU: a B200 is in a GB200 too."""
    words = {*known.detect, *(f"G{word}" for word in known.detect)}
    return (one.name for one in catalog.systems().values() if words & {*one.detect})
