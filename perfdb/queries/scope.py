"""Narrows a question to a framework, a system or models, by names that the store knows."""

from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Column, Connection, select

from perfdb import catalog
from perfdb.db.tables import cases, models, results, systems
from perfdb.errors import Diagnostic, InputError, nearest
from perfdb.queries import Rows

Names = str | tuple[str, ...] | None
"""A name, or several, any of which fits; None and none: all."""


@dataclass(frozen=True)
class Scope:
    """The framework, system, model and releases to look at. None: all."""

    framework: Names = None
    system: Names = None
    model: Names = None
    release_ids: tuple[int, ...] | None = None

    @property
    def options(self) -> dict[str, tuple[str, ...]]:
        """The values of the options of a command that narrow it, such as `--system`."""
        asked = {name: getattr(self, name) for name in _COLUMNS}
        return {
            name: (value,) if isinstance(value, str) else value
            for name, value in asked.items()
            if value
        }


EVERY: Final = Scope()

_COLUMNS: Final[dict[str, Column[str]]] = {
    "framework": cases.c.framework, "system": systems.c.name, "model": models.c.name,
}  # fmt: skip


def spelled(model: str) -> str:
    """The store's name of a model, however it is spelled: 'LLAMA3-8B' is llama3-8b."""
    return catalog.named_model(model) or model


def within(connection: Connection, question: Rows, scope: Scope) -> Rows:
    """A question about results, narrowed to a scope.

    Raises InputError for a framework, system or model that the store does not have.
    """
    asked = replace(scope, model=tuple(map(spelled, scope.options.get("model", ())))).options
    problems = []
    for name, value in ((name, value) for name, values in asked.items() for value in values):
        names = connection.scalars(select(_COLUMNS[name]).distinct()).all()
        if value not in names:
            remedy = nearest(value, names) if names else "the store is empty: `perfdb ingest`"
            problems.append(Diagnostic(f"--{name}", f"no results of {value!r}", remedy=remedy))
    if problems:
        raise InputError(problems)
    if asked:
        of_cases = select(cases.c.id).select_from(cases.join(systems).join(models))
        wanted = (_COLUMNS[name].in_(values) for name, values in asked.items())
        question = question.where(results.c.case_id.in_(of_cases.where(*wanted).correlate(None)))
    if scope.release_ids is None:
        return question
    return question.where(results.c.release_id.in_(scope.release_ids))
