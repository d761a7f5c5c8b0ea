"""What a trend follows: the results in force of a workload or a case, with when they were run."""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Select, or_, select

from perfdb.db.tables import cases, models, results
from perfdb.queries.results import current

KEY_LENGTH = 6
"""The least number of characters by which a key is recognised."""


def of_words(words: Iterable[str]) -> Select[*tuple[object, ...]]:
    """The results in force whose model is a word, or whose workload or case key begins with it."""
    return current().where(or_(*map(_is_meant, words)))


def models_with_results() -> Select[str]:
    """The names of the models that have results in force."""
    return (
        select(models.c.name)
        .join(cases, cases.c.model_id == models.c.id)
        .join(results, results.c.case_id == cases.c.id)
        .where(~results.c.superseded)
        .distinct()
        .order_by(models.c.name)
    )


def _is_meant(word: str) -> ColumnElement[bool]:
    named = models.c.name == word
    if len(word) < KEY_LENGTH:
        return named
    keys = (cases.c.workload_key, cases.c.key)
    return or_(named, *(key.startswith(word.lower(), autoescape=True) for key in keys))
