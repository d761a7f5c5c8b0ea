"""Narrows a question to a framework, a system or models, by names that the store knows."""

from dataclasses import dataclass, field, replace
from typing import Final

from sqlalchemy import Column, Connection, select

from perfdb import catalog
from perfdb.db.tables import cases, models, results, systems
from perfdb.errors import Diagnostic, InputError, suggestion
from perfdb.queries import Rows


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


_COLUMNS: Final[dict[str, Column[str]]] = {
    "framework": cases.c.framework, "system": systems.c.name, "model": models.c.name,
}  # fmt: skip


def known(connection: Connection, only: Only) -> Only:
    """The same with the store's name of the model. Raises InputError for names not in the store."""
    asked = only if only.model is None else replace(only, model=spelled(only.model))
    problems = []
    for name, column in _COLUMNS.items():
        value = getattr(asked, name)
        names = [] if value is None else connection.scalars(select(column).distinct()).all()
        if value is not None and value not in names:
            remedy = suggestion(value, names) if names else "the store is empty: `perfdb ingest`"
            problems.append(Diagnostic(f"--{name}", f"no results of {value!r}", remedy=remedy))
    if problems:
        raise InputError(problems)
    return asked


def spelled(model: str) -> str:
    """The store's name of a model, however it is spelled: 'LLAMA3-8B' is llama3-8b."""
    return catalog.named_model(model) or model


def narrowed(question: Rows, only: Only) -> Rows:
    """A question about results, narrowed to a framework, system and model."""
    asked = {name: getattr(only, name) for name in _COLUMNS}
    return question.where(
        *(_COLUMNS[name] == value for name, value in asked.items() if value is not None)
    )


def within(connection: Connection, question: Rows, scope: Scope) -> Rows:
    """A question about results, narrowed to a scope. Raises InputError for unknown names."""
    asked = narrowed(question, known(connection, scope.only))
    if scope.release_ids is None:
        return asked
    return asked.where(results.c.release_id.in_(scope.release_ids))
