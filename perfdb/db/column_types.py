"""The types of columns that no database has: moments in UTC, and notes as JSON."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy import JSON, DateTime, Dialect, Text
from sqlalchemy.types import TypeDecorator

from perfdb.record import Note, NoteCode


class Moment(TypeDecorator[datetime]):
    """A moment in UTC: SQLite gives back no offset, PostgreSQL that of its session."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """As it is stored; SQLite would leave out the offset."""
        if value is None or value.tzinfo:
            return value and value.astimezone(UTC)
        return value.replace(tzinfo=UTC)

    process_result_value = process_bind_param


def to_json(note: Note) -> Mapping[str, object]:
    """A note as the store has it."""
    return {"code": note.code.value, "params": dict(note.params)}


def of_json(stored: Mapping[str, object]) -> Note:
    """The note that was stored."""
    params = stored["params"]
    return Note(NoteCode(str(stored["code"])), dict(params) if isinstance(params, Mapping) else {})


class NoteType(TypeDecorator[Note]):
    """One note, or NULL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Note | None, dialect: Dialect) -> str | None:
        """As it is stored."""
        return None if value is None else json.dumps(to_json(value), ensure_ascii=False)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Note | None:
        """As it is read."""
        return None if value is None else of_json(json.loads(value))


class NotesType(TypeDecorator[tuple[Note, ...]]):
    """Any number of notes, in their order."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: Sequence[Note] | None, dialect: Dialect) -> object:
        """As they are stored."""
        return [to_json(note) for note in value or ()]

    def process_result_value(self, value: object, dialect: Dialect) -> tuple[Note, ...]:
        """As they are read."""
        return tuple(map(of_json, value)) if isinstance(value, list) else ()
