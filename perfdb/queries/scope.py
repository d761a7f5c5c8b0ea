"""Narrows a question to a framework, a system or models, by names that the store knows."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from sqlalchemy import Column, Connection, Select, select

from perfdb import catalog
from perfdb.db.tables import cases, models, results, systems
from perfdb.errors import Diagnostic, InputError, suggestion


@dataclass(frozen=True)
class Only:
    """The framework, system and model to look at. None: all."""

    framework: str | None = None
    system: str | None = None
    model: str | None = None


EVERY: Final = Only()


@dataclass(frozen=True)
class Scope:
    """Which results, by what they are of and by their releases. None: of all releases."""

    only: Only = field(default_factory=Only)
    release_ids: tuple[int, ...] | None = None


COLUMNS: dict[str, Column[str]] = {
    "framework": cases.c.framework,
    "system": systems.c.name,
    "model": models.c.name,
}


def known(connection: Connection, only: Only) -> Only:
    """The same, models by the store's names. Raises InputError for every name not in the store."""
    model = None if only.model is None else spelled(only.model)
    asked = replace(only, model=model)
    problems = list(_unknown(connection, asked))
    if problems:
        raise InputError(problems)
    return asked


def spelled(model: str) -> str:
    """The store's name of a model, however it is spelled: 'LLAMA3-8B' is llama3-8b."""
    return catalog.named_model(model) or model


def narrowed(question: Select[*tuple[object, ...]], only: Only) -> Select[*tuple[object, ...]]:
    """A question about results, narrowed to these."""
    for name, column in COLUMNS.items():
        value = getattr(only, name)
        if value is not None:
            question = question.where(column == value)
    return question


def within(
    connection: Connection, question: Select[*tuple[object, ...]], scope: Scope
) -> Select[*tuple[object, ...]]:
    """A question about results, narrowed to a scope. Raises InputError for unknown names."""
    asked = narrowed(question, known(connection, scope.only))
    if scope.release_ids is None:
        return asked
    return asked.where(results.c.release_id.in_(scope.release_ids))


def _unknown(connection: Connection, only: Only) -> Iterator[Diagnostic]:
    for name, column in COLUMNS.items():
        if (value := getattr(only, name)) is None:
            continue
        names = connection.scalars(select(column).distinct()).all()
        if value not in names:
            remedy = suggestion(value, names) if names else "the store is empty: `perfdb ingest`"
            yield Diagnostic(f"--{name}", f"no results of {value!r}", remedy=remedy)
