"""What comparisons and trends read from the store: releases, results, and their open errors."""

import dataclasses
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from sqlalchemy import Connection

from perfdb.audit.review import Entry, explained
from perfdb.compare.releases import Choice, KnownRelease, choices, in_order, named
from perfdb.errors import Diagnostic, InputError
from perfdb.queries import catalog
from perfdb.queries import results as queries
from perfdb.queries.scope import Only, Scope, known, narrowed, spelled, within
from perfdb.record import Finding, Origin, Result
from perfdb.versions import is_numbered

_ATTRIBUTES: Final = frozenset(one.name for one in dataclasses.fields(Result))


def known_releases(connection: Connection) -> tuple[Choice, ...]:
    """The releases that have results, as a person can name them."""
    rows = connection.execute(catalog.all_releases()).mappings()
    return choices(KnownRelease.model_validate(row) for row in rows)


def release_ids(connection: Connection, name: str | None) -> tuple[int, ...] | None:
    """The releases in the store that a name means; None without one. Raises InputError."""
    return None if name is None else named(name, known_releases(connection)).release_ids


def results_of(
    connection: Connection, choice: Choice, only: Only | None = None
) -> tuple[Result, ...]:
    """Every current result of the releases that a name means, narrowed to `only`.

    Raises InputError for a framework, system or model that the store does not have.
    """
    scope = Scope(only or Only(), choice.release_ids)
    return tuple(queries.read(connection, within(connection, queries.current(), scope)))


def of_rows(rows: Iterable[Mapping[str, object]]) -> tuple[Result, ...]:
    """Results from rows of `perfdb.queries.results.current`, as mappings by column."""
    make: Callable[..., Result] = Result
    return tuple(
        make(**{name: value for name, value in row.items() if name in _ATTRIBUTES}) for row in rows
    )


def open_errors(connection: Connection, known: Sequence[Entry]) -> frozenset[int]:
    """The results, by their number, in which the last audit found errors that nobody accepts.

    `known` are the findings that are accepted.
    """
    rows = connection.execute(queries.current_errors()).mappings()
    found = explained(map(Finding.model_validate, rows), known)
    return frozenset(it.result_id for it in found if it.result_id is not None and it.is_open_error)


def results_of_words(
    connection: Connection, words: Sequence[str], only: Only
) -> tuple[Result, ...]:
    """The current results of the models or keys that were asked for, narrowed to `only`.

    Without a word they are all. Raises InputError for every word that means nothing in the store,
    and where nothing is left.
    """
    wanted = [spelled(word) for word in words]
    everything = queries.of_words(wanted) if wanted else queries.current()
    question = narrowed(everything, known(connection, only))
    found = tuple(queries.read(connection, question))
    lacking = [
        word
        for word, name in zip(words, wanted, strict=True)
        if not connection.execute(queries.of_words([name]).limit(1)).first()
    ]
    if lacking:
        names = connection.scalars(catalog.model_names()).all()
        raise InputError(_no_model(word, names) for word in lacking)
    if not found:
        raise InputError(_nothing_left(words, only))
    return found


def _no_model(word: str, names: Sequence[str]) -> Diagnostic:
    if not names:
        remedy = "the store holds no results; fill it with `perfdb ingest`"
    elif close := get_close_matches(spelled(word), names, n=3, cutoff=0.5):
        remedy = f"did you mean {' or '.join(close)}?"
    else:
        remedy = f"known models: {', '.join(names)}; or give the beginning of a key"
    return Diagnostic("trend", f"no results of {word!r}", remedy=remedy)


def _nothing_left(words: Sequence[str], only: Only) -> Diagnostic:
    narrowing = {name: value for name, value in vars(only).items() if value is not None}
    if not narrowing:
        return Diagnostic("trend", "no results", remedy="fill the store with `perfdb ingest`")
    asked = [", ".join(words)] if words else []
    asked += [f"of {only.framework}"] if only.framework else []
    asked += [f"on {only.system}"] if only.system else []
    remedy = f"leave out one of {', '.join(f'--{name}' for name in narrowing)}"
    return Diagnostic("trend", f"no results of {' '.join(asked)}", remedy=remedy)


def versions(
    connection: Connection, choices: Sequence[Choice]
) -> Mapping[tuple[str, Origin], Sequence[str]]:
    """The releases of each framework that have results of an origin, in the order of `choices`.

    Unstated releases and rolling branches are left out, as they have no place in that order.
    """
    of_ids: dict[int, set[tuple[str, Origin]]] = defaultdict(set)
    for row in connection.execute(catalog.all_releases()).mappings():
        of_ids[row["release_id"]].add((row["framework"], Origin(row["origin"])))
    numbered = {
        one for choice in choices if is_numbered(choice.version) for one in choice.release_ids
    }
    found: dict[tuple[str, Origin], dict[str, None]] = defaultdict(dict)
    for number, name in in_order(choices).items():
        for key in of_ids[number] if number in numbered else ():
            found[key][name] = None
    return {key: list(names) for key, names in found.items()}


def is_key(word: str) -> bool:
    """Whether a word is the beginning of a key rather than the name of a model."""
    return re.fullmatch(rf"[0-9a-fA-F]{{{queries.KEY_LENGTH},64}}", word) is not None
