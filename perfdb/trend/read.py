"""What a trend reads from the store: the results that words mean."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from sqlalchemy import Connection

from perfdb.compare import Choice
from perfdb.compare.releases import in_order
from perfdb.errors import Diagnostic, InputError
from perfdb.queries import catalog
from perfdb.queries import results as trend
from perfdb.queries.results import current
from perfdb.queries.scope import Only, known, narrowed, spelled
from perfdb.record import Origin
from perfdb.trend.base import Timed
from perfdb.versions import is_numbered


def results(connection: Connection, words: Sequence[str], only: Only) -> tuple[Timed, ...]:
    """The results in force of the models or keys that were asked for, of these alone.

    Without a word they are all. Raises InputError for every word that means nothing in the store,
    and where nothing is left.
    """
    names = connection.scalars(catalog.model_names()).all()
    wanted = [spelled(word) for word in words]
    everything = trend.of_words(wanted) if wanted else current()
    question = narrowed(everything, known(connection, only))
    found = tuple(Timed.model_validate(row) for row in connection.execute(question).mappings())
    problems = [
        _nothing(word, names)
        for word, name in zip(words, wanted, strict=True)
        if not connection.execute(trend.of_words([name]).limit(1)).first()
    ]
    if not found and not problems:
        problems = [_nothing_left(words, only)]
    if problems:
        raise InputError(problems)
    return found


def versions(
    connection: Connection, choices: Sequence[Choice]
) -> Mapping[tuple[str, Origin], Sequence[str]]:
    """The releases of each framework that have results of an origin, in the order of `choices`.

    Unstated releases and rolling branches are left out, as they have no place in that order.
    """
    of_ids: dict[int, set[tuple[str, Origin]]] = defaultdict(set)
    for row in connection.execute(catalog.all_releases()).mappings():
        of_ids[row["release_id"]].add((row["framework"], Origin(row["origin"])))
    found: dict[tuple[str, Origin], list[str]] = defaultdict(list)
    numbered = {
        one for choice in choices if is_numbered(choice.version) for one in choice.release_ids
    }
    for number, name in in_order(choices).items():
        for key in of_ids[number] if number in numbered else ():
            if name not in found[key]:
                found[key].append(name)
    return found


def is_key(word: str) -> bool:
    """Whether a word is the beginning of a key rather than the name of a model."""
    return re.fullmatch(rf"[0-9a-fA-F]{{{trend.KEY_LENGTH},64}}", word) is not None


def _nothing(word: str, names: Sequence[str]) -> Diagnostic:
    if not names:
        remedy = "the store holds no results; fill it with `perfdb ingest`"
    elif close := get_close_matches(spelled(word), names, n=3, cutoff=0.5):
        remedy = f"did you mean {' or '.join(close)}?"
    else:
        remedy = f"known models: {', '.join(names)}; or give the beginning of a key"
    return Diagnostic("trend", f"no results of {word!r}", remedy=remedy)


def _nothing_left(words: Sequence[str], only: Only) -> Diagnostic:
    if not _options(only):
        return Diagnostic("trend", "no results", remedy="fill the store with `perfdb ingest`")
    asked = " ".join(filter(None, (", ".join(words), _said(only))))
    remedy = f"leave out one of {', '.join(_options(only))}"
    return Diagnostic("trend", f"no results of {asked}", remedy=remedy)


def _options(only: Only) -> list[str]:
    return [f"--{name}" for name, value in vars(only).items() if value is not None]


def _said(only: Only) -> str:
    said = {"framework": "of", "system": "on"}
    return " ".join(f"{word} {value}" for name, word in said.items() if (value := vars(only)[name]))
