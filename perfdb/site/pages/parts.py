"""Parts that several kinds of pages use: column heads, links in cells, notes, words of labels."""

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from markupsafe import Markup

from perfdb import units
from perfdb.catalog import titles
from perfdb.record import Result
from perfdb.site.cells import HtmlCell, gpus
from perfdb.site.grouping import release_title
from perfdb.site.tables import HtmlHead
from perfdb.site.templates import facts, link, macro, paragraph


def heads(*titles: str) -> list[HtmlHead]:
    """Column heads. A title with `#` in front is of numbers, with `~` of sentences.

    What follows a `|` is the hint that explains the title.
    """
    made = []
    for title in titles:
        name, _, hint = title.partition("|")
        kind = name[0]
        name = name[1:] if kind in "#~" else name
        made.append(HtmlHead(name, hint or None, numeric=kind == "#", wide=kind == "~"))
    return made


def link_cell(text: str, document: str, anchor: str = "") -> HtmlCell:
    """A link to a document, sorted by its text."""
    return HtmlCell(link(text, document, anchor), sort=text)


def note(*sentences: str) -> Markup:
    """A note below a drawing or table; empty without a sentence."""
    return paragraph(" ".join(filter(None, sentences)), "perf-note")


def rows_left_out(count: int) -> str:
    """'1 row with open errors is left out.'; empty for none."""
    verb = "is" if count == 1 else "are"
    return f"{units.counted(count, 'row')} with open errors {verb} left out." if count else ""


def precision_of(result: Result) -> str:
    """'FP8-CS'; empty where no precision is stated."""
    return titles.precision(result.precision)


def release_of(result: Result) -> str:
    """'Megatron-Bridge 26.06'."""
    return release_title(result.framework, result.release)


LABELS: Final[Mapping[str, Callable[[Result], str]]] = {
    "system": lambda one: one.system_title,
    "model": lambda one: one.model_title,
    "qualified model": lambda one: titles.qualified(one.model_title, one.qualifiers),
    "model qualifiers": lambda one: one.qualifiers,
    "task": lambda one: titles.task(one.task),
    "framework": release_of,
    "precision": precision_of,
    "number of GPUs": lambda one: gpus(one.num_gpus, one.system),
    "sequence length": lambda one: f"sequence {one.sequence_length:,}",
    "global batch size": lambda one: f"GBS {one.global_batch_size:,}",
    "variant": lambda one: f"variant {titles.framework(one.variant)}" if one.variant else "",
    "FLOPs convention": lambda one: one.flops_convention or "",
    "origin": lambda one: str(one.origin),
}
"""The parts of a label by their names; a part is empty where the result does not state it."""


def words(parts: Iterable[str], result: Result) -> tuple[str, ...]:
    """The words of a result for each part of a label."""
    return tuple(LABELS[part](result) for part in parts)


def label(parts: Iterable[str], result: Result, separator: str = " · ") -> str:
    """'DGX-H100 · BF16 · 8 GPUs': the parts that the result states."""
    return separator.join(filter(None, words(parts, result)))


def differing(parts: Iterable[str], results: Sequence[Result]) -> list[str]:
    """The parts in which results differ: without them their labels would look the same."""
    return [part for part in parts if len({LABELS[part](one) for one in results}) > 1]


def flat(values: Mapping[str, object], space: str = " ") -> list[tuple[str, str]]:
    """Names and values, those of a mapping each on a line of its own; unknown ones left out.

    `space`: what stands between the words of names.
    """
    lines: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            lines += flat({f"{name}: {key}": one for key, one in value.items()}, space)
        elif value not in (None, ""):
            lines.append((name.replace("_", space), json_text(value)))
    return lines


def json_text(value: object) -> str:
    """A value as it is written in JSON; text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def drawer(
    word: str, known: Mapping[str, object], recipe: str, anchor: str
) -> tuple[Markup, Markup]:
    """How to have a number again, as `perfdb reproduce WORD` says it, behind a line to open.

    `known` is the document of `perfdb.compare.reproduce.Provenance`, `recipe` leads to its recipe,
    `anchor` to the drawer; it may be empty. It is in two parts: files that are not HTML may be
    between them.
    """
    commands = {
        "Print all of this as text; add --run to run the case again and compare:": shlex.join(
            ["perfdb", "reproduce", word]
        ),
        "Run only this case, on a machine with enough GPUs:": known.get("run_again"),
        "Original command:": known.get("command"),
    }
    corrected = known.get("corrections")
    first = {
        "recipe": recipe,
        "case": known.get("case"),
        "container image": known.get("container"),
        "image digest": known.get("container_digest"),
    } | {
        f"{name}, as printed and in the recipe": " → ".join(map(json_text, pair))
        for name, pair in (corrected.items() if isinstance(corrected, Mapping) else ())
    }
    groups = {"made from": flat(first)}
    for name in ("configuration", "environment", "versions"):
        values = known.get(name)
        groups[name] = flat(values, "_") if isinstance(values, Mapping) else []
    tables = [(name, facts(f"{name} of {word}", it)) for name, it in groups.items() if it]
    shown = [(text, it) for text, it in commands.items() if it]
    return macro("drawer", "head", shown, anchor), macro("drawer", "foot", tables)
