"""What headings, labels and lines of text say of the tables below them, in the page's own words."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Final

from perfdb import catalog
from perfdb.pages import beside, names, releases, sentences, systems, unlisted
from perfdb.pages.cells import Wrong, absent, cleaned
from perfdb.pages.held import Recipe, Sections, Statement
from perfdb.pages.outline import Said
from perfdb.pages.releases import InHeading, Whose

_ON: Final = (
    "gpu",
    "gpus",
    "accelerator",
    "accelerators",
    "hardware",
    "platform",
    "machine",
    "instance",
    "node",
    "cluster",
)
_KEYS: Final = "|".join(
    ("System", "Precision", "Container", "Model", "Task", "Release", "Framework", *_ON)
)
_STATEMENT = re.compile(rf"({_KEYS})\s*:\s*(.+)", re.IGNORECASE)
_BETWEEN = re.compile(rf"\s*[,;|]\s*(?=(?:{_KEYS})\s*:)", re.IGNORECASE)
_BARE_TASK = re.compile(
    r"(?:(?:pre-?training|(?:lora\s+|full\s+|supervised\s+)?fine-?tuning|sft|lora)"
    r"\s*(?:\([^()]*\))?\s*)(?:performance|results|throughput)?",
    re.IGNORECASE,
)
_PARTS = re.compile(r"\s*[,;|]\s*")
_OF_TABLE = re.compile(r"\W*the (?:\w+ (?:in|of) the )?tables? (?:below|shows?)\b", re.IGNORECASE)
"""How an item of a list begins that says something of the table below it."""
_BRACKETS = re.compile(r"\s*\([^()]*\)\Z")
_TAG = re.compile(r"[\w.+/-]*[0-9][\w.+/-]*")
"""A release that is no number: `r2.0.0`, `core_v0.13.0`."""
_VERSION = re.compile(r"[0-9]+\.[0-9][\w.]*")
_AGAINST = re.compile(
    rf"\b(?:{names.COMPARING}|relative to|instead|unlike|except|than(?!\s+[0-9])|not on)\b",
    re.IGNORECASE,
)
"""What is in a heading that names a system which the rows need not be of."""
_BACKENDS: Final = ("automodel", "megatron-core")
_OF_RECIPE: Final = "expected performance"
"""The heading of NVIDIA's recipes above figures that they measured."""


def in_force(said: Iterable[Said], own: str | None = None) -> Statement:
    """All that is said, outermost first; `own`: the framework of the page.

    A page without marked headings starts a section with a line such as `Fine-Tuning Performance`;
    the system and precision of the section before do not hold for it.
    """
    sections = Sections()
    for one in said:
        if one.heading:
            sections.heading(_of_heading(one.text, own), one)
        elif not one.only_pairs and _is_task(one.text):
            sections.task(_of_task(one.text), titled=one.titled)
        elif one.titled:
            sections.line(_of_heading(one.text, own), one)
        else:
            sections.line(_of_line(one.text, only_pairs=one.only_pairs, listed=one.listed), one)
    return sections.together


@lru_cache(maxsize=4096)
def alone(one: Said, own: str | None = None) -> Statement:
    """What one line says; every table below it asks for that."""
    return in_force([one], own)


@lru_cache(maxsize=4096)
def _is_task(line: str) -> bool:
    bare = line.rstrip(" #:")
    return bool(_BARE_TASK.fullmatch(bare)) or beside.is_task(bare)


def of_opening(text: str) -> Statement:
    """The task that the words above all sections name; none where all fine-tuning is another.

    What is named in passing is no task of the rows: `a library to fine-tune LLMs`.
    """
    of_runs = [one for one in sentences.parts(text) if sentences.is_of_runs(one)]
    tasks = names.tasks(" ".join(of_runs))
    if len(tasks) != 1:
        return Statement()
    said = [names.other_task(one) for one in of_runs if names.tasks(one)]
    if tasks[0] != "pretrain" and all(said):
        return Statement(no_task=f"the text says {said[0]!r}, which is no task")
    return Statement(task=tasks[0])


def _of_heading(text: str, own: str | None) -> Statement:
    words = cleaned(text)
    release = releases.of_heading(words, own)
    backends = (name for name in _BACKENDS if releases.names_framework(name, words))
    precision = sentences.precision_of_title(words)
    bare = _without(words, precision) if precision else words
    named = Statement(
        system=next(filter(catalog.named_system, (bare, *_PARTS.split(bare))), None),
        precision=precision,
        not_measured=_not_measured(words, "heading"),
        unclear=release.unclear or ("" if release.whose.name else None),
        backend=next(backends, None),
        **asdict(release.whose),
    )
    said = named.then(_on(bare, "heading")).then(_model_in(bare)).then(_of_task(words))
    return _with_recipe(said.then(_of_line(words)), words)


def _with_recipe(said: Statement, words: str) -> Statement:
    """What a title or `Precision: FP8-CS` says; a sentence may be of some of the rows alone."""
    if said.precision is None or unlisted.is_of_others(words, said.model):
        return said
    return said.model_copy(update={"recipe": Recipe(name=said.precision)})


def _on(words: str, where: str) -> Statement:
    """The system or GPU that is named among words, or why nobody can tell which it is."""
    found = systems.mentioned(words)
    if len(found) == 1 and not _AGAINST.search(words):
        return _run_on(found[0])
    why = f"the {where} {words!r} names {' and '.join(found)}, and not the system of the rows"
    return Statement(no_system=why if found else None)


def _not_measured(words: str, where: str) -> str | None:
    said = None if words.casefold() == _OF_RECIPE else names.not_measured(words)
    return f"the {where} says {said!r}" if said else None


def _model_in(heading: str) -> Statement:
    """The model that a heading names, and the system or GPU: `Llama3 70B on DGX-B200`."""
    found = beside.read(heading)
    if isinstance(found, Wrong) or not catalog.named_model(found.name):
        return Statement()
    return _run_on(found.said.get("beside_model")).then(Statement(model=found.name))


def _run_on(named: str | None) -> Statement:
    """The system that is named, or has the GPU that is; the GPU where several systems have it."""
    system = named and (named if _is_system(named) else systems.beside_model(named))
    return Statement(system=system, beside_model=None if system else named)


def _of_task(words: str) -> Statement:
    """The task that words name, or why they leave it open."""
    tasks = names.tasks(words)
    said = names.other_task(words) if tasks else names.no_task(words)
    if len(tasks) == 1 and not said:
        return Statement(task=tasks[0], no_task="")
    if tasks and not said:
        return Statement(no_task=f"the heading {words!r} names several tasks")
    return Statement(no_task=f"the heading says {said!r}, which is no task" if said else None)


def _without(words: str, word: str) -> str:
    """`DGX-H100 (BF16)` without BF16."""
    it = re.escape(word)
    found = rf"[\s,;|]*(?:[(\[]{it}[)\]]|(?<![\w-]){it}(?![\w-]))[,;|]*"
    return re.sub(found, " ", words).strip()


def _is_system(words: str) -> bool:
    return bool(catalog.named_system(words) or re.match(r"[DH]GX[- ]\w*[0-9]", words))


@lru_cache(maxsize=4096)
def _of_line(text: str, *, only_pairs: bool = False, listed: bool = False) -> Statement:
    """`System: DGX-H100, Precision: BF16`, or a sentence that names the precision."""
    pairs = _pairs(text, listed=listed)
    if pairs is None:
        is_of_table = listed and _OF_TABLE.match(text)
        return Statement() if only_pairs and not is_of_table else _of_sentences(cleaned(text))
    said = _whose(pairs)
    container = pairs.get("container", "")
    of_release = said.whose.framework or said.whose.release or releases.dated(container)
    named = Statement(
        system=pairs.get("system"),
        precision=pairs.get("precision"),
        unclear=said.unclear or ("" if of_release else None),
        **asdict(said.whose),
    )
    on = _on(", ".join(pairs[key] for key in _ON if key in pairs), "text")
    stated = on.then(_of_model(pairs)).then(named).then(_of_task(pairs.get("task", "")))
    return _with_recipe(stated, text)


def _pairs(text: str, *, listed: bool) -> dict[str, str] | None:
    """What a line states, by key; None where it is no statement."""
    stated = [_STATEMENT.fullmatch(part) for part in _BETWEEN.split(cleaned(text))]
    pairs = {match[1].casefold(): match[2] for match in stated if match}
    if len(pairs) < len(stated):
        return None
    if listed:
        pairs = {key: value for key, value in pairs.items() if _is_stated(key, value)}
    return pairs


def _is_stated(key: str, value: str) -> bool:
    """Whether an item of a list states something: that of a glossary says what a word means."""
    if key == "task":
        return beside.is_task(value)
    return key == "framework" or re.search("[0-9]", value) is not None


def _whose(pairs: Mapping[str, str]) -> InHeading:
    """What a line says of framework, release and container: as cells would, or in one word."""
    printed, container = pairs.get("release", ""), pairs.get("container", "")
    bare = _BRACKETS.sub("", printed)
    found = (releases.of_cells({**pairs, "release": it}) for it in (printed, bare))
    if said := next((one for one in found if isinstance(one, Whose)), None):
        return InHeading(said)
    plain = Whose(None, printed if _TAG.fullmatch(printed) else None, container or None)
    several = f"the text {printed!r} names several releases"
    two = len(_VERSION.findall(printed)) > 1
    return InHeading(plain, several if two else releases.several(container))


def no_release(said: Said) -> str | None:
    """What stands behind `Release:` in a line and is none: `|release|`, `see above`."""
    pairs = (None if said.heading else _pairs(said.text, listed=said.listed)) or {}
    printed = pairs.get("release", "")
    found = None if absent(printed) else _whose(pairs)
    return printed if found and not (found.whose.release or found.unclear) else None


def _of_model(pairs: Mapping[str, str]) -> Statement:
    """`Model: Llama3 8B (FP8)`: a model, and what is said beside it."""
    printed = pairs.get("model")
    found = beside.read(printed or "")
    if isinstance(found, Wrong):
        return Statement(model=printed)
    named = Statement(model=found.name or None, precision=found.said.get("precision"))
    on = _run_on(found.said.get("beside_model"))
    return on.then(named).then(_of_task(found.said.get("task", "")))


def _of_sentences(text: str) -> Statement:
    """What sentences say of the figures below: their precision, or that nobody measured them."""
    word = sentences.not_measured(text)
    said = f"the text says {word!r}" if word else None
    return Statement(precision=sentences.precision_of_rows(text), not_measured=said)
