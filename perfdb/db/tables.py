"""The tables: what each column holds. migrations/ makes them; a test keeps the two equal.

Raw facts (sources, runs, steps, results' figures as read) are appended. A result that says
something else than before is a new revision of the same identity; `superseded` marks the old one.
"""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Date,
    Double,
    ForeignKey,
    FromClause,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    and_,
    false,
)
from sqlalchemy.types import TypeEngine

from perfdb.db.column_types import Moment, NotesType, NoteType
from perfdb.fields import BY_NAME, CONFIGURATION, DERIVED, WORKLOAD, Group, names
from perfdb.record import Case

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _id() -> Column[int]:
    return Column("id", Integer, primary_key=True)


def _reference(
    name: str, target: str, *, nullable: bool = False, index: bool | None = None
) -> Column[int]:
    key = ForeignKey(f"{target}.id", ondelete="CASCADE")
    return Column(name, key, nullable=nullable, index=index)


systems = Table(
    "systems",
    metadata,
    _id(),
    Column("name", Text, nullable=False, unique=True),
    Column("title", Text, nullable=False),
    Column("specification", JSON, nullable=False, comment="the catalog's entry"),
)

models = Table(
    "models",
    metadata,
    _id(),
    Column("name", Text, nullable=False, unique=True),
    Column("title", Text, nullable=False),
    Column("family", Text, comment="NULL: a name on a page, not in the catalog"),
    Column("specification", JSON, nullable=False, comment="the catalog's entry; {} if none"),
)

releases = Table(
    "releases",
    metadata,
    _id(),
    Column("key", Text, nullable=False, unique=True),
    Column("framework", Text, nullable=False),
    Column("version", Text, comment="NULL: unattributed"),
    Column("container", Text),
    Column("container_digest", Text),
    Column(
        "audited_version",
        Integer,
        comment="of the audit that saw its results as they are; NULL: none has",
    ),
)


def _field_column(name: str) -> Column[object]:
    """The column of a field of a case or a result."""
    case_field = Case.model_fields.get(name)
    is_required = name in _REQUIRED or (case_field is not None and case_field.default is not None)
    kind = _BIG.get(name) or _TYPES[BY_NAME[name].kind]
    default = "" if name in _JOINED else None
    comment = "joined by ', '" if name in _JOINED else _COMMENTS.get(name)
    nullable = not is_required or name in DERIVED
    return Column(name, kind, nullable=nullable, server_default=default, comment=comment)


_TYPES: Final[Mapping[type, type[TypeEngine[Any]]]] = {
    str: Text, int: Integer, float: Double, bool: Boolean, dict: JSON,
}  # fmt: skip
_BIG: Final = {"peak_memory_bytes": BigInteger}
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

cases = Table(
    "cases",
    metadata,
    _id(),
    Column("key", Text, nullable=False, unique=True),
    Column("workload_key", Text, nullable=False, index=True),
    _reference("model_id", "models"),
    _reference("system_id", "systems"),
    *(
        _field_column(name)
        for name in (*WORKLOAD, *CONFIGURATION)
        if name not in ("model", "system")
    ),
)

sources = Table(
    "sources",
    metadata,
    _id(),
    Column("sha256", Text, nullable=False),
    Column("path", Text, nullable=False, index=True, comment="where it was when it was read"),
    Column("parser", Text, nullable=False),
    Column("parser_version", Integer, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("ingested_at", Moment(), nullable=False),
    Column("source_url", Text, comment="of a page's original; NULL: the page does not say"),
    Column("published_on", Date, comment="of a page; NULL: the page does not say"),
    # Last: SQLite copies what is large to write a column behind it.
    Column("content", LargeBinary, nullable=False, comment="the bytes, zstd-compressed"),
    UniqueConstraint("sha256", "path", "parser", "parser_version"),
)

runs = Table(
    "runs",
    metadata,
    _id(),
    Column("run_id", Text, nullable=False, unique=True),
    _reference("case_id", "cases"),
    _reference("release_id", "releases"),
    _reference("source_id", "sources"),
    Column("recipe", Text, comment="NULL: read from a log, which has none"),
    Column("outcome", Text, nullable=False),
    Column("error", Text),
    Column("exit_code", Integer),
    Column("attempt", Integer, nullable=False),
    Column("started_at", Moment(), comment="NULL: read from a log"),
    Column("ended_at", Moment()),
    Column("warmup_steps", Integer, nullable=False),
    Column("measured_steps", Integer, nullable=False),
    Column("environment", JSON, nullable=False),
    Column("command", JSON, nullable=False),
    Column("summary", JSON, comment="what the worker wrote at its end; NULL: nothing"),
    Column("content_hash", Text, nullable=False, comment="of every file it was read from"),
    Column("withdrawn", Text, comment="why it does not count; NULL: it does"),
    Column("stamp", Text, comment="of its files' sizes and times, to know them unread"),
)

run_files = Table(
    "run_files",
    metadata,
    Column("run_id", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True, comment="the path inside the run directory"),
    _reference("source_id", "sources"),
    sqlite_with_rowid=False,
)

STEP_COLUMNS = (
    "step", "step_time_s", "step_time_min_s", "loss", "grad_norm", "tokens", "peak_memory_bytes",
    "skipped", "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu",
)  # fmt: skip
"""The columns of `steps` that the parts of perfdb call by the same name."""

steps = Table(
    "steps",
    metadata,
    Column("run_id", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("step_time_s", Double, nullable=False),
    Column("step_time_min_s", Double),
    Column("loss", Double),
    Column("grad_norm", Double),
    Column("tokens", BigInteger),
    Column("peak_memory_bytes", BigInteger),
    Column("skipped", Boolean, nullable=False, server_default=false()),
    Column("tokens_per_sec_per_gpu", Double, comment="as the program printed it"),
    Column("model_tflops_per_sec_per_gpu", Double, comment="as the program printed it"),
    Column("source_line", Integer, nullable=False),
    sqlite_with_rowid=False,  # the rows lie in their key: one tree to write, not two
)

results = Table(
    "results",
    metadata,
    _id(),
    Column("key", Text, nullable=False, comment="identity: case, release, origin, run or page"),
    Column("revision", Integer, nullable=False),
    Column("superseded", Boolean, nullable=False, server_default=false()),
    Column("superseded_at", Moment(), comment="NULL: current"),
    Column("content_hash", Text, nullable=False),
    _reference("case_id", "cases"),
    _reference("release_id", "releases"),
    _reference("run_id", "runs", nullable=True, index=True),
    _reference("source_id", "sources"),
    Column("source_line", Integer),
    *map(_field_column, names(Group.METHOD, Group.FIGURE, Group.DERIVED)),
    Column("withheld", NoteType(), comment="why there are no figures; NULL: nothing is withheld"),
    Column("notes", NotesType(), nullable=False, comment="codes with parameters"),
    Column("raw", JSON, nullable=False, comment="the text of each cell, by the column's title"),
    Column("printed", JSON, nullable=False, comment="the visible text of each cell, by field"),
    Column("extras", JSON, nullable=False, comment="columns without a field"),
    Column("emitted", JSON, nullable=False, comment="figures that the program printed itself"),
    Column("created_at", Moment(), nullable=False),
    UniqueConstraint("key", "revision"),
    Index("ix_results_case_id_release_id", "case_id", "release_id"),
)

findings = Table(
    "findings",
    metadata,
    _id(),
    _reference("result_id", "results"),
    Column("rule", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("fields", JSON, nullable=False),
    Column("expected", Text),
    Column("found", Text),
    Column("message", Text, nullable=False),
    Column("suggestion", Text),
)

ingest_log = Table(
    "ingest_log",
    metadata,
    _id(),
    Column("at", Moment(), nullable=False),
    Column("path", Text, nullable=False),
    Column("action", Text, nullable=False, comment="new | revised | rejected | unattributed"),
    Column("line", Integer),
    Column("reason", Text),
    Column("stated_reason", Text, comment="why somebody withdrew it, as --reason states"),
    Column("perfdb_version", Text, nullable=False),
)


def took_its_place(following: FromClause, earlier: FromClause) -> ColumnElement[bool]:
    """Whether a revision began as the one before it ended.

    Else that one had been withdrawn before, or its page has dropped it since.
    """
    return and_(
        following.c.key == earlier.c.key,
        following.c.revision == earlier.c.revision + 1,
        following.c.created_at == earlier.c.superseded_at,
    )
