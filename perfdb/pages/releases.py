"""Which framework, in which release and container, headings and cells name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from perfdb import units
from perfdb.pages import cells, names
from perfdb.pages.cells import Wrong
from perfdb.pages.dotted import CALENDAR, DOTTED, ENDING, joined

SPELLINGS: Final[Mapping[str, str]] = {
    "dfm": r"(?:NeMo\s+)?DFM",
    "automodel": r"(?:NeMo\s+)?Auto-?Model",
    "megatron-bridge": r"(?:NeMo\s+)?Megatron[- ]Bridge",
    "megatron-lm": r"Megatron[- ]LM",
    "megatron-core": r"Megatron[- ]Core",
    "torchtitan": r"torchtitan",
    "nemo": r"NeMo(?:\s+Framework)?",
}
"""How pages write the names of frameworks."""
_IN_NEMO_CONTAINERS: Final = frozenset(
    {"dfm", "automodel", "megatron-bridge", "megatron-core", "nemo"}
)
"""Frameworks of which a NeMo container holds the release of its own version."""

_ALONE = re.compile(
    rf"(?:(?:previous|last|current|latest|new)\s+)?(?:(?:version|release)\s*:?\s*)?"
    rf"\(?v?({DOTTED})\)?",
    re.IGNORECASE,
)
_DATED = re.compile(CALENDAR)
_BARE = re.compile(rf"({CALENDAR})")
_CELL = re.compile(r"(?:v(?=[0-9]))?([0-9][\w.+-]*|main|master|nightly|dev)", re.IGNORECASE)
_CONTAINER = re.compile(rf"NeMo\s+v?({CALENDAR})\s+container", re.IGNORECASE)
_RELEASE = re.compile(
    rf"v?([0-9]+\.[0-9][\w.]*{ENDING})\s+(?:NeMo\s+)?(?:Container|Release)"
    rf"|(?:Container|Release)\s+v?([0-9]+\.[0-9][\w.]*{ENDING})",
    re.IGNORECASE,
)
_IN_CONTAINER = re.compile(
    rf"\bnemo[\s:-]*([0-9]{{2}}\.[0-9]{{2}}\w*(?:\.\w+(?:-\w+)*)*{ENDING})", re.IGNORECASE
)
_TAG = re.compile(r"(?<!\S)\S*?\bnemo:[0-9]{2}\.[0-9]{2}(?:[\w.+-]*\w)?", re.IGNORECASE)
_AMONG = re.compile(
    rf"(?<![\w.-])v?(2[0-9]\.(?:0[1-9]|1[0-2])(?:rc[0-9]+)?(?:\.(?![0-9]{{4}}\b)\w+)*{ENDING})"
    r"(?![\w.%]|\s*(?:%|[x×]\b|[BGTM]B\b|[BT]\b|m?s\b|sec|min|hours?|tok|TFLOP|GPUs?|steps?))",
    re.IGNORECASE,
)
"""A release of NeMo among other words."""
_OF_OTHERS = re.compile(
    r"(?:torch|cuda|driver|triton|ubuntu|tensorrt|python|os|slurm|enroot|pytorch|ofed|hpc-?x|nccl"
    r"|ucx|cudnn|nvshmem|jax|maxtext|rapids|tensorflow|sdk|toolkit|firmware|kernel)"
    r"(?:\s+(?:ngc|container|image|release|version))*[\s:-]*\Z",
    re.IGNORECASE,
)
_NEAR: Final = 40
"""Characters before a release that may say that it is of something else."""
_OUTSIDE = re.compile(
    rf"\b(?:{names.COMPARING}|since|before|until|than|over|relative|not|instead)\b", re.IGNORECASE
)
"""What is in a heading that names a release which the rows need not be of."""
_BRACKETS = re.compile(r"\([^()]*\)")
_PARTS = re.compile(r"\s*[,;|–—]\s*")
_SECTION = re.compile(r"[1-9][0-9]?(?:\.[0-9]{1,2})+\s*[|–—]")
"""The number of a section stands before a dash, too: `3.1 – Pre-training`."""
_FOREIGN = re.compile(
    r"((?:Megatron-)?DeepSpeed|(?:Hugging ?Face|HF) (?:Transformers|Trainer|Accelerate|TRL)|Axolotl"
    r"|LLaMA-?Factory|torchtune|torchtitan|MaxText|Colossal-?AI|LLM Foundry|Unsloth|LitGPT)"
    rf"(?:\s+v?({DOTTED}))?",
    re.IGNORECASE,
)
"""A framework that is no part of another one, and its version."""
_BESIDE = re.compile(r"(?:for\s+)?(?:comparison|compared|baseline|reference)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Whose:
    """What rows are of. None: it is not said."""

    framework: str | None = None
    release: str | None = None
    container: str | None = None

    def then(self, nearer: "Whose") -> "Whose":
        """Both; what is nearer holds, and nothing else of another framework or release does."""
        framework = nearer.framework or self.framework
        if self.framework not in (None, framework):
            return Whose(framework, nearer.release or nearer.of_container, nearer.container)
        dated = self.release is None or _DATED.fullmatch(self.release)
        inside = release_in(nearer.container, framework) if dated else None
        version = _as_spelled(nearer.release or inside, self.release)
        moved = version and self.release and version != self.release
        kept = None if moved else self.container
        return Whose(framework, version or self.release, nearer.container or kept)

    @property
    def of_container(self) -> str | None:
        """The release that the container's name holds."""
        return release_in(self.container, self.framework)

    @property
    def name(self) -> str:
        """'nemo 25.04 (nemo:25.04)', as far as it is said."""
        container = self.container and f"({self.container})"
        return " ".join(filter(None, (self.framework, self.release, container)))


@dataclass(frozen=True)
class InHeading:
    """What a heading says; `unclear`: why nobody can tell."""

    whose: Whose = Whose()
    unclear: str | None = None


def names_framework(framework: str, text: str) -> bool:
    """Whether a text names a framework."""
    return re.search(rf"\b{SPELLINGS[framework]}\b", text, re.IGNORECASE) is not None


def frameworks_in(text: str) -> tuple[str, ...]:
    """The frameworks that a text names, also those that no page of NeMo is of; each once."""
    known = (name for name in SPELLINGS if names_framework(name, text))
    return tuple(dict.fromkeys((*known, *(units.slug(one[1]) for one in _FOREIGN.finditer(text)))))


def of_heading(printed: str, own: str | None) -> InHeading:
    """What a heading names: a version alone, a framework with a version, a container.

    `own` is the framework of the page: its name with a version is one too. What stands in brackets
    counts where nothing outside of them does.
    """
    words = joined(printed)
    bare = _BRACKETS.sub(" ", words)
    found = _versions(bare, own) or _versions(words, own) or _foreign(bare)
    others = [one for one in dated(bare) if found and one != found[0].release]
    also = others and found[0].release in dated(bare)
    compared = names.compares(words) and len({*re.findall(CALENDAR, bare)}) > 1
    if len(found) > 1 or also or compared:
        return InHeading(unclear=f"the heading {words!r} names several releases")
    if not found and (other := _other(words, own)):
        return InHeading(unclear=f"the heading {words!r} speaks of {other}, without its release")
    whose = found[0] if found else _alone(words, own)
    if whose == Whose():
        return _of_words(words, own)
    inside = _CONTAINER.search(words)
    container = f"NeMo {inside[1]}" if inside else whose.container
    return InHeading(replace(whose, container=container))


def _of_words(words: str, own: str | None) -> InHeading:
    """The release that a heading names among other words, or the container."""
    bare = _BRACKETS.sub(" ", words)
    text = bare if dated(bare) else words
    found = dated(text)
    if len(found) > 1:
        return InHeading(unclear=f"the heading {words!r} names several releases")
    if found and _OUTSIDE.search(text):
        return InHeading(unclear=f"the heading {words!r} names {found[0]}, not that of the rows")
    inside, tag = _CONTAINER.search(words), _TAG.search(words)
    container = f"NeMo {inside[1]}" if inside else tag and tag[0]
    version = release_in(container, own) if container else next(iter(found), None)
    return InHeading(Whose(None, version, container))


def dated(printed: str) -> tuple[str, ...]:
    """The releases of NeMo that are named among words, each once."""
    words = joined(printed)
    found = (
        (words[max(0, one.start() - _NEAR) : one.start()], one[1]) for one in _AMONG.finditer(words)
    )
    return tuple(dict.fromkeys(one for before, one in found if not _OF_OTHERS.search(before)))


def several(container: str) -> str | None:
    """Why nobody can tell of which release a container is; None where it names one, or none."""
    named = len(dated(container)) > 1
    return f"the container {container!r} names several releases" if named else None


def _versions(words: str, own: str | None) -> list[Whose]:
    """Each framework that has a version behind its name; a container has none."""
    known = {own: r"[-\s]?".join(map(re.escape, re.split(r"[-\s]", own)))} if own else {}
    found = (
        Whose(name, version[1])
        for name, pattern in {**known, **SPELLINGS}.items()
        for version in re.finditer(
            rf"(?<![\w-]){pattern}(?:\s+(?:version|release))?\s+v?"
            rf"({CALENDAR if name == 'nemo' else DOTTED})(?!\s+container)",
            words,
            re.IGNORECASE,
        )
    )
    return list(dict.fromkeys(found))


def _foreign(words: str) -> list[Whose]:
    """Frameworks that parts of a heading are, and not only name: `DeepSpeed`, `LitGPT 0.5`."""
    found = filter(None, map(_FOREIGN.fullmatch, map(str.strip, _PARTS.split(words))))
    return [Whose(units.slug(one[1]), one[2]) for one in found]


def _other(words: str, own: str | None) -> str | None:
    """Another framework that a heading holds against the page's, without a version."""
    if not _BESIDE.match(words):
        return None
    found = (
        re.search(rf"(?<![\w-]){pattern}(?!\w)", words, re.IGNORECASE)
        for name, pattern in SPELLINGS.items()
        if name != own
    )
    return next((one[0] for one in found if one), None)


def _alone(words: str, own: str | None) -> Whose:
    """A version that stands alone, or says that it is one of a release or container."""
    whole = _RELEASE.fullmatch(words)
    parts = (*_PARTS.split(words), _BRACKETS.sub("", words).strip())
    found = whole or next(filter(None, map(_ALONE.fullmatch, parts)), None)
    version = next(filter(None, found.groups())) if found else None
    numbered = own == "nemo" or _SECTION.match(words)
    if numbered and version and not whole and not _DATED.fullmatch(version):
        return Whose()
    if not whole or "container" not in words.casefold():
        return Whose(None, version)
    inside = f"NeMo {version}"
    return Whose(None, release_in(inside, own), inside)


def _as_spelled(version: str | None, other: str | None) -> str | None:
    """A version as another place spells it: `2.3` is `v2.3`."""
    same = version and other and version.casefold() == other.casefold().removeprefix("v")
    return other if same else version


def release_in(container: str | None, framework: str | None) -> str | None:
    """The release that a container's name holds: `NeMo 25.04` is 25.04 of what is in it."""
    if framework not in _IN_NEMO_CONTAINERS or several(container or ""):
        return None
    name = joined(container or "")
    found = _IN_CONTAINER.search(name) or _RELEASE.fullmatch(name) or _BARE.fullmatch(name)
    return (found[1] or found[found.re.groups]) if found else None


def of_cells(texts: Mapping[str, str]) -> Whose | Mapping[str, Wrong]:
    """What the cells of a row say of its framework, release and container; or what is wrong."""
    stated = {name: text for name, text in texts.items() if not cells.absent(text)}
    framework = _framework(joined(stated.get("framework", "")))
    release = _release(joined(stated.get("release", "")))
    if isinstance(release, Wrong):
        return {"release": release}
    if wrong := several(stated.get("container", "")):
        return {"container": Wrong(wrong, "name one")}
    both = {one.framework for one in (framework, release) if one.framework}
    if len(both) > 1:
        said = " and ".join(sorted(both))
        return {"framework": Wrong(f"the row says {said}", "correct one of them")}
    return Whose(
        next(iter(both), None), release.release or framework.release, stated.get("container")
    )


def framework_named(printed: str) -> str | None:
    """The framework that a text as a whole is a name of: `NVIDIA NeMo` is nemo; None: none."""
    known = SPELLINGS.items()
    named = (n for n, p in known if re.fullmatch(rf"(?:NVIDIA\s+)?{p}", printed, re.IGNORECASE))
    return next(named, None)


def _framework(printed: str) -> Whose:
    """`NeMo`, `NeMo 25.04`; one that is not known keeps its name."""
    if found := _versions(printed, None):
        return found[0]
    return Whose(framework_named(printed) or units.slug(printed) or None)


def _release(printed: str) -> Whose | Wrong:
    found = _versions(printed, None)
    if found or not printed:
        return found[0] if found else Whose()
    version = _CELL.fullmatch(printed)
    if version is None:
        return Wrong(f"{printed!r} is no release", "write its version: 26.02")
    return Whose(None, version[1])


def contradict(near: Whose, over: Whose) -> bool:
    """Whether what is said nearer to rows is not what is said further away."""
    pairs = (
        (near.framework, over.framework),
        (near.release, over.release),
        (near.container, over.container),
    )
    return any(first and second and first != second for first, second in pairs)
