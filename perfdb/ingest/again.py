"""Parses the runs of a batch, but for those that the store has: these need not even be opened."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sqlalchemy import Engine

from perfdb.db import runs
from perfdb.db.session import retried
from perfdb.ingest.read import Read, RunFound, Unchanged, parse_run


def parsed(engine: Engine, batch: Sequence[Read | RunFound]) -> Iterator[Read]:
    """Parse the runs of a batch, but for those that the store has, read from the same bytes."""
    claimed = [one.claimed_id() if isinstance(one, RunFound) else None for one in batch]
    run_ids = set(filter(None, claimed))
    there = retried(partial(_runs_there, engine, run_ids)) if run_ids else {}
    stamps: dict[int, str] = {}
    for one, run_id in zip(batch, claimed, strict=True):
        stored = there.get(run_id or "")
        unchanged = _unchanged(one, stored) if isinstance(one, RunFound) and stored else None
        if unchanged and stored and unchanged.restamped:
            stamps[stored.id] = unchanged.restamped
        yield unchanged or (parse_run(one) if isinstance(one, RunFound) else one)
    if stamps:
        retried(partial(_restamp, engine, stamps))


def _unchanged(found: RunFound, stored: runs.Known) -> Unchanged | None:
    """The files are read where the system says something else of them than it did."""
    window, stamp = found.window.name if found.window else None, found.seen.stamp
    if not stored.is_read(found.seen.parser_version, window):
        return None
    unchanged = Unchanged(str(found.run.path), stored.run_id, stored.withdrawn)
    if stamp is not None and stamp == stored.stamp:
        return unchanged
    try:
        is_same = found.files.content_hash == stored.content_hash
    except OSError:
        return None  # the parser says of which file
    return replace(unchanged, restamped=stamp) if is_same else None


def _restamp(engine: Engine, stamps: Mapping[int, str]) -> None:
    with engine.begin() as connection:
        runs.stamp(connection, stamps)


def _runs_there(engine: Engine, run_ids: Iterable[str]) -> Mapping[str, runs.Known]:
    with engine.connect() as connection:
        return runs.known(connection, run_ids)
