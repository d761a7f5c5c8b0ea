"""The tables: what each column holds. migrations/ makes them; a test keeps the two equal.

Raw facts (sources, runs, steps, results' figures as read) are appended. A result that says
something else than before is a new revision of the same identity; `superseded` marks the old one.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator, TypeEngine

from perfdb.fields import BY_NAME, CONFIGURATION, DERIVED, WORKLOAD, Group, names
from perfdb.record import Case, Note, NoteCode


class Moment(TypeDecorator[datetime]):
    """A moment in UTC: SQLite gives back no offset, PostgreSQL that of its session."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
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

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Note | None, dialect: sa.Dialect) -> str | None:
        """As it is stored."""
        return None if value is None else json.dumps(to_json(value), ensure_ascii=False)

    def result_processor(
        self, dialect: sa.Dialect, coltype: object
    ) -> Callable[[Any], Note | None]:
        """What reads a cell. Nearly all are empty."""
        return lambda stored: None if stored is None else of_json(json.loads(stored))


class NotesType(TypeDecorator[tuple[Note, ...]]):
    """Any number of notes, in their order."""

    impl = sa.JSON
    cache_ok = True

    def process_bind_param(self, value: Sequence[Note] | None, dialect: sa.Dialect) -> object:
        """As they are stored."""
        return [to_json(note) for note in value or ()]

    def result_processor(
        self, dialect: sa.Dialect, coltype: object
    ) -> Callable[[Any], tuple[Note, ...]]:
        """What reads a cell. Nearly all are empty."""
        parsed = self.impl_instance.result_processor(dialect, coltype) or (lambda stored: stored)

        def read(stored: Any) -> tuple[Note, ...]:
            if stored == "[]":
                return ()
            found = parsed(stored)
            return tuple(map(of_json, found)) if isinstance(found, list) else ()

        return read


metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.Integer, primary_key=True)


def _reference(
    name: str, target: str, *, nullable: bool = False, index: bool | None = None
) -> sa.Column[int]:
    key = sa.ForeignKey(f"{target}.id", ondelete="CASCADE")
    return sa.Column(name, key, nullable=nullable, index=index)


systems = sa.Table(
    "systems",
    metadata,
    _id(),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("specification", sa.JSON, nullable=False, comment="the catalog's entry"),
)

models = sa.Table(
    "models",
    metadata,
    _id(),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("family", sa.Text, comment="NULL: a name on a page, not in the catalog"),
    sa.Column("specification", sa.JSON, nullable=False, comment="the catalog's entry; {} if none"),
)

releases = sa.Table(
    "releases",
    metadata,
    _id(),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("framework", sa.Text, nullable=False),
    sa.Column("version", sa.Text, comment="NULL: unattributed"),
    sa.Column("container", sa.Text),
    sa.Column("container_digest", sa.Text),
    sa.Column(
        "audited_version",
        sa.Integer,
        comment="of the audit that saw its results as they are; NULL: none has",
    ),
)


def _field_column(name: str) -> sa.Column[object]:
    """The column of a field of a case or a result."""
    case_field = Case.model_fields.get(name)
    is_required = name in _REQUIRED or (case_field is not None and case_field.default is not None)
    kind = _BIG.get(name) or _TYPES[BY_NAME[name].kind]
    default = "" if name in _JOINED else None
    comment = "joined by ', '" if name in _JOINED else _COMMENTS.get(name)
    nullable = not is_required or name in DERIVED
    return sa.Column(name, kind, nullable=nullable, server_default=default, comment=comment)


_TYPES: Final[Mapping[type, type[TypeEngine[Any]]]] = {
    str: sa.Text, int: sa.Integer, float: sa.Double, bool: sa.Boolean, dict: sa.JSON,
}  # fmt: skip
_BIG: Final = {"peak_memory_bytes": sa.BigInteger}
_JOINED: Final = ("qualifiers", "kernels")
_REQUIRED: Final = ("origin", "outcome")
_COMMENTS: Final = {
    "num_means": "of how many means they are; NULL: of single steps",
    "tokens_per_sec": "of all GPUs together, as printed",
    "peak_tflops": "the peak that mfu was computed with",
    "peak_memory_bytes": "the most of all steps of the run",
    "formula_version": "NULL: the figures are as printed",
    "origin": "measured | published",
    "gradient_accumulation": "as the row or the run states it",
    "data_parallel": "as the row or the run states it",
}

cases = sa.Table(
    "cases",
    metadata,
    _id(),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("workload_key", sa.Text, nullable=False, index=True),
    _reference("model_id", "models"),
    _reference("system_id", "systems"),
    *(
        _field_column(name)
        for name in (*WORKLOAD, *CONFIGURATION)
        if name not in ("model", "system")
    ),
)

sources = sa.Table(
    "sources",
    metadata,
    _id(),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False, index=True, comment="where it was when it was read"),
    sa.Column("parser", sa.Text, nullable=False),
    sa.Column("parser_version", sa.Integer, nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("ingested_at", Moment(), nullable=False),
    sa.Column("source_url", sa.Text, comment="of a page's original; NULL: the page does not say"),
    sa.Column("published_on", sa.Date, comment="of a page; NULL: the page does not say"),
    # Last: SQLite copies what is large to write a column behind it.
    sa.Column("content", sa.LargeBinary, nullable=False, comment="the bytes, zstd-compressed"),
    sa.UniqueConstraint("sha256", "path", "parser", "parser_version"),
)

runs = sa.Table(
    "runs",
    metadata,
    _id(),
    sa.Column("run_id", sa.Text, nullable=False, unique=True),
    _reference("case_id", "cases"),
    _reference("release_id", "releases"),
    _reference("source_id", "sources"),
    sa.Column("recipe", sa.Text, comment="NULL: read from a log, which has none"),
    sa.Column(
        "kind",
        sa.Text,
        nullable=False,
        server_default="benchmark",
        comment="benchmark | profile | checkpoint: only a benchmark has figures",
    ),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("exit_code", sa.Integer),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("started_at", Moment(), comment="NULL: read from a log"),
    sa.Column("ended_at", Moment()),
    sa.Column("warmup_steps", sa.Integer, nullable=False),
    sa.Column("measured_steps", sa.Integer, nullable=False),
    sa.Column("environment", sa.JSON, nullable=False),
    sa.Column("command", sa.JSON, nullable=False),
    sa.Column("summary", sa.JSON, comment="what the worker wrote at its end; NULL: nothing"),
    sa.Column("content_hash", sa.Text, nullable=False, comment="of every file it was read from"),
    sa.Column("withdrawn", sa.Text, comment="why it does not count; NULL: it does"),
    sa.Column("stamp", sa.Text, comment="of its files' sizes and times, to know them unread"),
)

run_files = sa.Table(
    "run_files",
    metadata,
    sa.Column("run_id", sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True, comment="the path inside the run directory"),
    _reference("source_id", "sources"),
    sqlite_with_rowid=False,
)

STEP_COLUMNS = (
    "step", "step_time_s", "step_time_min_s", "loss", "grad_norm", "tokens", "peak_memory_bytes",
    "skipped", "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu",
)  # fmt: skip
"""The columns of `steps` that the parts of perfdb call by the same name."""

steps = sa.Table(
    "steps",
    metadata,
    sa.Column("run_id", sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("step", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("step_time_s", sa.Double, nullable=False),
    sa.Column("step_time_min_s", sa.Double),
    sa.Column("loss", sa.Double),
    sa.Column("grad_norm", sa.Double),
    sa.Column("tokens", sa.BigInteger),
    sa.Column("peak_memory_bytes", sa.BigInteger),
    sa.Column("skipped", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("tokens_per_sec_per_gpu", sa.Double, comment="as the program printed it"),
    sa.Column("model_tflops_per_sec_per_gpu", sa.Double, comment="as the program printed it"),
    sa.Column("source_line", sa.Integer, nullable=False),
    sqlite_with_rowid=False,  # the rows lie in their key: one tree to write, not two
)

results = sa.Table(
    "results",
    metadata,
    _id(),
    sa.Column(
        "key", sa.Text, nullable=False, comment="identity: case, release, origin, run or page"
    ),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("superseded", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("superseded_at", Moment(), comment="NULL: current"),
    sa.Column("content_hash", sa.Text, nullable=False),
    _reference("case_id", "cases"),
    _reference("release_id", "releases", index=True),
    _reference("run_id", "runs", nullable=True, index=True),
    _reference("source_id", "sources"),
    sa.Column("source_line", sa.Integer),
    *map(_field_column, names(Group.METHOD, Group.FIGURE, Group.DERIVED)),
    sa.Column(
        "withheld", NoteType(), comment="why there are no figures; NULL: nothing is withheld"
    ),
    sa.Column("notes", NotesType(), nullable=False, comment="codes with parameters"),
    sa.Column(
        "raw", sa.JSON, nullable=False, comment="the text of each cell, by the column's title"
    ),
    sa.Column(
        "printed", sa.JSON, nullable=False, comment="the visible text of each cell, by field"
    ),
    sa.Column("extras", sa.JSON, nullable=False, comment="columns without a field"),
    sa.Column(
        "emitted", sa.JSON, nullable=False, comment="figures that the program printed itself"
    ),
    sa.Column(
        "stated", sa.JSON, nullable=False, comment="the options that it was read with; {}: none"
    ),
    sa.Column("created_at", Moment(), nullable=False),
    sa.UniqueConstraint("key", "revision"),
    sa.Index("ix_results_case_id_release_id", "case_id", "release_id"),
)

findings = sa.Table(
    "findings",
    metadata,
    _id(),
    _reference("result_id", "results", index=True),
    sa.Column("rule", sa.Text, nullable=False),
    sa.Column("severity", sa.Text, nullable=False),
    sa.Column("fields", sa.JSON, nullable=False),
    sa.Column("expected", sa.Text),
    sa.Column("found", sa.Text),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("suggestion", sa.Text),
)

ingest_log = sa.Table(
    "ingest_log",
    metadata,
    _id(),
    sa.Column("at", Moment(), nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False, comment="new | revised | rejected | unattributed"),
    sa.Column("line", sa.Integer),
    sa.Column("reason", sa.Text),
    sa.Column("stated_reason", sa.Text, comment="why somebody withdrew it, as --reason states"),
    sa.Column("perfdb_version", sa.Text, nullable=False),
    sa.Column("content_hash", sa.Text, nullable=False, comment="of the other columns"),
)


def took_its_place(following: sa.FromClause, earlier: sa.FromClause) -> sa.ColumnElement[bool]:
    """Whether a revision began as the one before it ended.

    Else that one had been withdrawn before, or its page has dropped it since.
    """
    return sa.and_(
        following.c.key == earlier.c.key,
        following.c.revision == earlier.c.revision + 1,
        following.c.created_at == earlier.c.superseded_at,
    )
