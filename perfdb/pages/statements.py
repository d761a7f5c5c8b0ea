"""What headings, labels and lines of text say of the tables below them, in the page's own words."""

import re
from collections.abc import Iterable
from typing import Final

from perfdb import catalog
from perfdb.pages import names
from perfdb.pages.cells import Wrong, cleaned
from perfdb.pages.outline import Said
from perfdb.record import Frozen, Task

_KEYS: Final = "System|Precision|Container|Model|Task|Release"
_STATEMENT = re.compile(rf"({_KEYS})\s*:\s*(.+)", re.IGNORECASE)
_BETWEEN = re.compile(rf"\s*[,;|]\s*(?=(?:{_KEYS})\s*:)", re.IGNORECASE)
_BARE_TASK = re.compile(
    r"(?:(?:pre-?training|fine-?tuning|sft|lora)\s*(?:\([^()]*\))?\s*)(?:performance)?",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+(?:-\w+)*")
_SENTENCE_ENDS = re.compile(r"(?<=[.;!?])\s+")
_AT_PRECISION = re.compile(
    r"\b(?:with|at|in)\s+(?:the\s+)?(\w+(?:-\w+)*)(?:\s+precision\b|\s*[.;!]?\s*$)", re.IGNORECASE
)
_BESIDE = re.compile(
    rf"\b(?:{names.COMPARING}|relative|baseline|reference|instead|unlike|not|no|except|unless|but)\b",
    re.IGNORECASE,
)
"""What is in a sentence, or a heading, that names a precision which the rows need not have."""
_RELEASE = re.compile(
    r"v?([0-9]+\.[0-9][\w.]*)\s+(?:NeMo\s+)?(?:Container|Release)"
    r"|(?:Container|Release)\s+v?([0-9]+\.[0-9][\w.]*)",
    re.IGNORECASE,
)
_VERSIONED = re.compile(
    r"NeMo(?: Framework)? v?([0-9]{2}\.[0-9]{2}[\w.]*)(?: performance.*)?", re.I
)
_IN_CONTAINER = re.compile(r"\bnemo[\s:-]*([0-9]{2}\.[0-9]{2}[\w.]*)", re.IGNORECASE)
_BACKENDS: Final = (
    ("automodel", re.compile(r"\bAuto-?Model\b", re.IGNORECASE)),
    ("megatron-core", re.compile(r"\bMegatron[- ]Core\b", re.IGNORECASE)),
)


class Statement(Frozen):
    """What a text says. None: nothing."""

    system: str | None = None
    precision: str | None = None
    container: str | None = None
    model: str | None = None
    task: Task | None = None
    no_task: str | None = None
    """A word for what is no task of training, such as inference; empty where a task is said."""
    release: str | None = None
    backend: str | None = None

    def then(self, nearer: "Statement") -> "Statement":
        """Both; where the nearer one says something, that holds."""
        return self.model_copy(update=nearer.model_dump(exclude_none=True))


def in_force(said: Iterable[Said]) -> Statement:
    """All that is said, outermost first.

    A page without marked headings starts a section with a line such as `Fine-Tuning Performance`;
    the system and precision of the section before do not hold for it.
    """
    headings = together = Statement()
    for one in said:
        if one.heading:
            together = together.then(_of_heading(one.text))
            headings = together
        elif _BARE_TASK.fullmatch(one.text.rstrip(" #")):
            kept = Statement(container=together.container, release=together.release)
            together = headings.then(kept).then(Statement(task=names.task(one.text)))
        else:
            together = together.then(_of_line(one.text))
    return together


def _of_heading(text: str) -> Statement:
    words = cleaned(text)
    release = _RELEASE.fullmatch(words) or _VERSIONED.fullmatch(words)
    version = next(filter(None, release.groups())) if release else None
    backends = (name for name, pattern in _BACKENDS if pattern.search(words))
    precision = None if _BESIDE.search(words) else _only_precision(words)
    bare = _without(words, precision) if precision else words
    task = names.task(words)
    named = Statement(
        system=bare if _is_system(bare) else None,
        model=bare if catalog.named_model(bare) else None,
        precision=precision,
        task=task,
        no_task="" if task else names.no_task(words),
        release=version,
        container=f"NeMo {version}" if version and "container" in words.casefold() else None,
        backend=next(backends, None),
    )
    return named.then(_of_line(words))


def precisions_named(text: str) -> str:
    """`BF16 and FP8`: the words for precisions that a text has; empty where it has none."""
    return " and ".join(_precisions(text))


def _precisions(text: str) -> list[str]:
    words = {name: word for word in _WORD.findall(text) if (name := catalog.precision_of(word))}
    return list(words.values())


def _only_precision(text: str) -> str | None:
    """The word for a precision, where a text names just one."""
    words = _precisions(text)
    return words[0] if len(words) == 1 else None


def _without(words: str, word: str) -> str:
    """`DGX-H100 (BF16)` without BF16."""
    return re.sub(
        rf"[\s,;|]*[(\[]?(?<![\w-]){re.escape(word)}(?![\w-])[)\]]?[,;|]*", " ", words
    ).strip()


def _is_system(words: str) -> bool:
    return not isinstance(names.system(words), Wrong) or bool(
        re.match(r"[DH]GX[- ]\w*[0-9]", words)
    )


def _of_line(text: str) -> Statement:
    """`System: DGX-H100, Precision: BF16`, or a sentence that names the precision."""
    stated = [_STATEMENT.fullmatch(part) for part in _BETWEEN.split(cleaned(text))]
    pairs = {match[1].casefold(): match[2] for match in stated if match}
    if len(pairs) < len(stated):
        return Statement(precision=_in_sentences(text))
    task = names.task(pairs.get("task", ""))
    return Statement(
        system=pairs.get("system"),
        precision=pairs.get("precision"),
        container=pairs.get("container"),
        model=pairs.get("model"),
        task=task,
        no_task="" if task else None,
        release=pairs.get("release"),
    )


def _in_sentences(text: str) -> str | None:
    """The precision that sentences say, where they name no other to hold it against."""
    precision = _only_precision(text)
    said = (sentence for sentence in _SENTENCE_ENDS.split(text) if not _BESIDE.search(sentence))
    at = (match[1] for sentence in said for match in _AT_PRECISION.finditer(sentence))
    return precision if precision in at else None


def release_in(container: str | None) -> str | None:
    """The release that a container's name holds: `NeMo 25.04` is 25.04."""
    found = _IN_CONTAINER.search(container or "") or _RELEASE.fullmatch(container or "")
    return (found[1] or found[found.re.groups]) if found else None
