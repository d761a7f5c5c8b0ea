"""What headings, labels and lines of text say of the tables below them, in the page's own words."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Final

from perfdb import catalog
from perfdb.pages import beside, names, releases, systems
from perfdb.pages.cells import Wrong, cleaned
from perfdb.pages.outline import Said
from perfdb.pages.releases import Whose
from perfdb.record import Frozen, Task

_KEYS: Final = "System|Precision|Container|Model|Task|Release|Framework"
_STATEMENT = re.compile(rf"({_KEYS})\s*:\s*(.+)", re.IGNORECASE)
_BETWEEN = re.compile(rf"\s*[,;|]\s*(?=(?:{_KEYS})\s*:)", re.IGNORECASE)
_BARE_TASK = re.compile(
    r"(?:(?:pre-?training|fine-?tuning|sft|lora)\s*(?:\([^()]*\))?\s*)(?:performance)?",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+(?:-\w+)*")
_PARTS = re.compile(r"\s*[,;|]\s*")
_SENTENCE_ENDS = re.compile(r"(?<=[.;!?])\s+")
_AT_PRECISION = re.compile(
    r"\b(?:with|at|in)\s+(?:the\s+)?(\w+(?:-\w+)*)(?:\s+precision\b|\s*[.;!]?\s*$)", re.IGNORECASE
)
_BESIDE = re.compile(
    rf"\b(?:{names.COMPARING}|relative|baseline|reference|instead|unlike|not|no|except|unless|but)\b",
    re.IGNORECASE,
)
"""What is in a sentence, or a heading, that names a precision which the rows need not have."""
_BACKENDS: Final = ("automodel", "megatron-core")


class Statement(Frozen):
    """What a text says. None: nothing."""

    system: str | None = None
    precision: str | None = None
    container: str | None = None
    model: str | None = None
    task: Task | None = None
    no_task: str | None = None
    """Why rows without a task of their own are of none; empty where a task is said."""
    not_measured: str | None = None
    """The word that tells that figures are projected, or the like."""
    framework: str | None = None
    release: str | None = None
    unclear: str | None = None
    """Why nobody can tell of which release rows are; empty where one is said."""
    backend: str | None = None

    @property
    def whose(self) -> Whose:
        """What is said of the framework, its release and container."""
        return Whose(self.framework, self.release, self.container)

    def then(self, nearer: "Statement") -> "Statement":
        """Both; where the nearer one says something, that holds."""
        whose = asdict(self.whose.then(nearer.whose))
        return self.model_copy(update=nearer.model_dump(exclude_none=True) | whose)


def in_force(said: Iterable[Said], own: str | None = None) -> Statement:
    """All that is said, outermost first; `own`: the framework of the page.

    A page without marked headings starts a section with a line such as `Fine-Tuning Performance`;
    the system and precision of the section before do not hold for it.
    """
    headings = together = Statement()
    for one in said:
        if one.heading:
            together = together.then(_of_heading(one.text, own))
            headings = together
        elif _BARE_TASK.fullmatch(one.text.rstrip(" #")):
            kept = Statement.model_validate(asdict(together.whose))
            together = headings.then(kept).then(_of_task(one.text))
        else:
            together = together.then(_of_line(one.text, only_pairs=one.noted))
    return together


def _of_heading(text: str, own: str | None) -> Statement:
    words = cleaned(text)
    release = releases.of_heading(words, own)
    backends = (name for name in _BACKENDS if releases.names_framework(name, words))
    precision = None if _BESIDE.search(words) else _only_precision(words)
    bare = _without(words, precision) if precision else words
    system = next(filter(_is_system, (bare, *_PARTS.split(bare))), None)
    named = Statement(
        system=system,
        precision=precision,
        not_measured=names.not_measured(words),
        unclear=release.unclear or ("" if release.whose.name else None),
        backend=next(backends, None),
        **asdict(release.whose),
    )
    return named.then(_model_in(bare)).then(_of_task(words)).then(_of_line(words))


def _model_in(heading: str) -> Statement:
    """The model that a heading names, and the system: `Llama3 70B on DGX-B200`."""
    found = beside.read(heading)
    if isinstance(found, Wrong) or not catalog.named_model(found.name):
        return Statement()
    on = found.said.get("beside_model")
    return Statement(model=found.name, system=on and systems.beside_model(on))


def _of_task(words: str) -> Statement:
    """The task that words name, or why they leave it open."""
    tasks = names.tasks(words)
    if len(tasks) == 1:
        return Statement(task=tasks[0], no_task="")
    if tasks:
        return Statement(no_task=f"the heading {words!r} names several tasks")
    said = names.no_task(words)
    return Statement(no_task=f"the heading says {said!r}, which is no task" if said else None)


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
    it = re.escape(word)
    found = rf"[\s,;|]*(?:[(\[]{it}[)\]]|(?<![\w-]){it}(?![\w-]))[,;|]*"
    return re.sub(found, " ", words).strip()


def _is_system(words: str) -> bool:
    return bool(catalog.named_system(words) or re.match(r"[DH]GX[- ]\w*[0-9]", words))


def _of_line(text: str, *, only_pairs: bool = False) -> Statement:
    """`System: DGX-H100, Precision: BF16`, or a sentence that names the precision."""
    stated = [_STATEMENT.fullmatch(part) for part in _BETWEEN.split(cleaned(text))]
    pairs = {match[1].casefold(): match[2] for match in stated if match}
    if len(pairs) < len(stated):
        return Statement() if only_pairs else Statement(precision=_in_sentences(text))
    return (
        _of_model(pairs)
        .then(
            Statement(
                system=pairs.get("system"),
                precision=pairs.get("precision"),
                unclear="" if "release" in pairs or "framework" in pairs else None,
                **asdict(_whose(pairs)),
            )
        )
        .then(_of_task(pairs.get("task", "")))
    )


def _whose(pairs: Mapping[str, str]) -> Whose:
    found = releases.of_cells(pairs)
    plain = Whose(None, pairs.get("release"), pairs.get("container"))
    return found if isinstance(found, Whose) else plain


def _of_model(pairs: Mapping[str, str]) -> Statement:
    """`Model: Llama3 8B (FP8)`: a model, and what is said beside it."""
    printed = pairs.get("model")
    found = beside.read(printed or "")
    if isinstance(found, Wrong):
        return Statement(model=printed)
    on = found.said.get("beside_model")
    return Statement(
        model=found.name or None,
        precision=found.said.get("precision"),
        system=on and (systems.beside_model(on) or on),
    ).then(_of_task(found.said.get("task", "")))


def _in_sentences(text: str) -> str | None:
    """The precision that sentences say, where they name no other to hold it against."""
    precision = _only_precision(text)
    said = (sentence for sentence in _SENTENCE_ENDS.split(text) if not _BESIDE.search(sentence))
    at = (match[1] for sentence in said for match in _AT_PRECISION.finditer(sentence))
    return precision if precision in at else None
