"""What the text above a table speaks of, and does not state: what no row of the table is of."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from perfdb.errors import Diagnostic
from perfdb.pages import names, releases, sentences, statements, systems
from perfdb.pages.attributed import Attributed
from perfdb.pages.outline import Said, Table

_INTRODUCES: Final = re.compile(r".{1,60}:", re.DOTALL)
"""A line that says what comes below it: `And on DGX-B200:`."""
_MOST_WORDS: Final = 3
"""Of a line between tables that says nothing but what it names: `*DGX-B200*`."""
_FIELDS: Final = {
    "System": ("system", "beside_model", "no_system"),
    "Task": ("task", "no_task"),
    "Release": ("release", "unclear"),
}
"""What a line `System: DGX-H100`, or a heading, states of each."""


def of_table(
    where: str, table: Table, own: Sequence[Attributed], on: Sequence[str]
) -> Iterator[Diagnostic]:
    """Systems, tasks and releases in sentences nearest to a table that none of its rows is of.

    `own` are its rows, `on` the systems that they are of.
    """
    versions = [one.setting.whose.release for one in own]
    held = {
        "System": list(on),
        "Task": list(map(_task, own)),
        "Release": list(filter(None, versions)),
    }
    for key, of in held.items():
        for one in _nearest(key, table) if of else ():
            if words := _others(key, one.text, of):
                count_as = " and ".join(dict.fromkeys(of))
                message = f"the text speaks of {' and '.join(words)}; the rows count as {count_as}"
                remedy = f"put theirs in a heading, a column, or a line `{key}: NAME`"
                yield Diagnostic(where, message, line=one.line, remedy=remedy)


def _nearest(key: str, table: Table) -> Iterator[Said]:
    """The lines of a table below what states such a thing last."""
    nearer = takewhile(lambda one: not _states(key, one), reversed(table.said))
    return filter(_is_of_table, nearer)


def _states(key: str, one: Said) -> bool:
    said = statements.alone(one)
    return any(getattr(said, name) for name in _FIELDS[key])


def _is_of_table(one: Said) -> bool:
    """Whether a line is of what follows it, and does not name things in passing."""
    text = one.text.strip(" *_")
    if one.heading or one.only_pairs or sentences.BESIDE.search(text):
        return False
    alone = one.tables > 0 and len(text.split()) <= _MOST_WORDS
    return alone or bool(_INTRODUCES.fullmatch(text)) or sentences.is_of_runs(text)


def _others(key: str, text: str, of: Sequence[str]) -> Sequence[str]:
    """What a text names of a kind, where no row is of any of it."""
    if key == "System":
        found = systems.mentioned(text)
        return () if any(systems.may_be(word, one) for word in found for one in of) else found
    if key == "Task" and (word := names.no_task(text)):
        return (word,)
    named = names.tasks(text) if key == "Task" else releases.dated(text)
    return () if set(named) & set(of) else named


def _task(row: Attributed) -> str:
    return names.task(row.texts.get("task", "")) or row.setting.said.task or "pretrain"
