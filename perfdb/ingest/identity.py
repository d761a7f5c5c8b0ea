"""What the same bytes are stored under for another release: each release has a result of its own.

The first release has the plain id of the bytes, and each other one that of the bytes and its
version. A result of no known release becomes that of the first release that is stated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from perfdb import versions
from perfdb.db.results import Past
from perfdb.db.rows import MeasuredRun, ResultRow
from perfdb.db.runs import Known
from perfdb.errors import Diagnostic
from perfdb.ingest.reads import PageRows, RunRead
from perfdb.jsonfile import content_hash
from perfdb.measure import measured_key
from perfdb.units import counted


def is_of(stored: str | None, stated: str | None) -> bool:
    """Whether the result of a stored version is the one that is stated now."""
    return stored is None or (stated is not None and versions.is_same(stored, stated))


def of_other_release(run_id: str, version: str) -> str:
    """The id of a log's run if another release has its plain id."""
    digest, _, number = run_id.removeprefix("log-").partition("-")
    return "-".join(filter(None, ("log", hashed(digest, version)[:16], number)))


def ids_of(read: RunRead) -> tuple[str, ...]:
    """The ids that a log's run may have in the store."""
    version = read.run.result.release.version
    return (read.run_id, *([of_other_release(read.run_id, version)] if version else []))


def run_of_release(read: RunRead, there: Mapping[str, Known]) -> RunRead | Diagnostic:
    """The log's run with its id for its release, or why it is not stored.

    `there` has the run of the plain id, if it is stored.
    """
    first, version = there.get(read.run_id), read.run.result.release.version
    if not read.explicit or first is None or is_of(first.version, version):
        return read
    if version is None:
        return _not_stated(read.path, "it is stored", str(first.version))
    run_id, notes = of_other_release(read.run_id, version), read.notes
    if run_id not in there:
        remedy = f"`perfdb withdraw {read.run_id}` if that is wrong"
        notes += (_also(read.path, first.version, remedy),)
    return replace(read, run=with_id(read.run, run_id), notes=notes)


def with_id(run: MeasuredRun, run_id: str) -> MeasuredRun:
    """A run under another id, with its result."""
    result = replace(run.result, key=measured_key(run.result.case, run.result.release, run_id))
    return replace(run, run=replace(run.run, run_id=run_id), result=result)


def rows_of_release(read: PageRows, past: Past) -> PageRows:
    """The results of a file with their keys for their releases.

    Those for which no release is stated, and whose bytes have one in the store, are problems.
    """
    rows: list[ResultRow] = []
    refused, also = list[str](), dict[str, None]()
    for row in read.rows:
        stored = _version(past, row.key)
        if row.key in read.as_before or is_of(stored, row.release.version):
            rows.append(row)
        elif row.release.version is None:
            refused.append(str(stored))
        else:
            key = hashed(row.key, row.release.version)
            rows.append(replace(row, key=key))
            if key not in past:
                also[str(stored)] = None
    notes = tuple(_also(read.path, one, f"`perfdb withdraw {read.path}` withdraws both")
                  for one in also)  # fmt: skip
    problems = read.problems
    if refused:
        are = "is" if len(refused) == 1 else "are"
        what = f"{counted(len(refused), 'result')} of it {are} stored"
        problems += (_not_stated(read.path, what, refused[0]),)
    return replace(read, rows=tuple(rows), notes=read.notes + notes, problems=problems)


def keys_of(read: PageRows) -> Sequence[str]:
    """The keys that results of a file may have in the store."""
    others = (hashed(row.key, row.release.version) for row in read.rows if row.release.version)
    return [*(row.key for row in read.rows), *others]


def _version(past: Past, key: str) -> str | None:
    """The version of the last revision of a result."""
    revisions = past.get(key, ())
    version: str | None = revisions[-1].version if revisions else None
    return version


def hashed(identity: str, version: str) -> str:
    """The key that a result has for another release, by its own."""
    return content_hash({"of": identity, "release": versions.canonical(version)})


def _also(where: str, version: str | None, remedy: str) -> Diagnostic:
    message = f"the same content is stored for release {version}: each release has its result"
    return Diagnostic(where, message, remedy=remedy)


def _not_stated(where: str, what: str, version: str) -> Diagnostic:
    message = f"{what} for release {version}, and the options state none"
    return Diagnostic(where, message, remedy=f"pass --release {version} with them")
