"""What is fed with any bytes: each reader of perfdb, with what must hold of what it reads.

Only perfdb's own errors may leave it. To add a target: write its function, add it to the table.
"""

import shutil
import signal
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from random import Random

from sqlalchemy import Connection, text

from perfdb import aggregation, measure
from perfdb.audit import review
from perfdb.db import migrate
from perfdb.db.session import reading, store_url
from perfdb.errors import Diagnostic, InputError
from perfdb.formats import FORMATS, LogFormat, ParsedLog
from perfdb.ingest import LogOptions, Options, ingest
from perfdb.ingest.attribution import attribute
from perfdb.ingest.find import Source, file
from perfdb.ingest.logs import read_source
from perfdb.ingest.options import checked as checked_options
from perfdb.ingest.reads import PageRows, Read, Rejected, RunRead
from perfdb.ingest.runs import RunFound, find_run, parse_run
from perfdb.ingest.unpack import Budget
from perfdb.pages import front, reader
from perfdb.pages.base import PageContext
from perfdb.recipe import load
from perfdb.rundir import RunDir
from perfdb.verify import CHECKS, Fault
from tests import factories
from tests.fuzz import oracles, trees
from tests.fuzz.seeds import NAMES

MOST_SECONDS = 20
"""Of a processor, for one input: it may take 10 s to read, and most targets read it twice."""

PRINTED = {
    "nemo1": ("step_time_s",), "nemo2": ("step_time_s",), "automodel_benchmark": ("step_time_s",),
    "torchtitan": ("step",), "automodel_console": ("step",), "mlperf": (),
}  # fmt: skip
"""What of a step stands on its line, where its time or its number is computed."""

CONTEXT = PageContext("nemo", "25.04", None, "dgx-h100", "bf16")
SET = ("model=llama3-8b", "num_gpus=8", "sequence_length=8192", "task=pretrain",
       "global_batch_size=128")  # fmt: skip
GIVEN = Options(CONTEXT, logs=LogOptions(SET))
SAID = checked_options(Options(CONTEXT, logs=LogOptions(tuple(SET))))


@dataclass(frozen=True)
class Target:
    """A reader: `check` raises what a defect raises. `most_bytes`: of an input that is made."""

    check: Callable[[bytes], None]
    most_bytes: int = 1 << 16


def checked(name: str, content: bytes) -> None:
    """Feed a target, and see that it does not take long. Time that others have does not count."""

    def too_long(*_: object) -> None:
        raise AssertionError(f"{name} takes more than {MOST_SECONDS} s for {len(content)} bytes")

    before = signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)  # it counts what this process computes
    try:
        TARGETS[name].check(content)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def pieces(content: bytes) -> list[bytes]:
    """The same bytes in chunks, cut at places that depend on them alone."""
    chance = Random(zlib.crc32(content))
    cuts = sorted(chance.randint(0, len(content)) for _ in range(chance.randint(1, 12)))
    bounds = [0, *cuts, len(content)]
    return [content[a:b] for a, b in pairwise(bounds)]


def of_log(member: LogFormat, content: bytes) -> None:
    """A log or a file of results."""
    name = NAMES.get(member.name, "train.log")
    member.recognizes(content[: 1 << 16], name)
    logs = member.parse(name, [content])
    assert repr(logs) == repr(member.parse(name, pieces(content)))
    document = name.endswith((".json", ".yaml"))
    printed = () if document else PRINTED.get(member.name, ("step", "step_time_s"))
    for log in logs:
        oracles.check_log(log, content, printed)
        _check_stored(log)
    if not document:
        end = content.rfind(b"\n", 0, zlib.crc32(content) % (len(content) + 1)) + 1
        oracles.check_cut(member.parse(name, [content[:end]]), logs)


def _check_stored(log: ParsedLog) -> None:
    """What a log's run would be in the store, were it of some case."""
    of = attribute("x.log", log, (), SAID)
    if of.case is None or of.release is None:
        return
    run = measure.LogRun(of.case, of.release, "log-1", "0" * 64)
    if log.steps:
        oracles.check_run(measure.of_log(log, run, measure.log_window(log, None)))
    else:
        oracles.check_row(measure.of_summary(log, run))


def of_page(content: bytes) -> None:
    """A published page."""
    try:
        told = reader.decoded_page(content)
    except UnicodeDecodeError:
        return
    num_lines = len(told.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    found = reader.read("page.md", told, CONTEXT)
    for result in found.results:
        oracles.check_published(result, num_lines)
        measure.of_page(result)
    for problem in (*found.problems, *found.notes):
        assert problem.line is None or 1 <= problem.line <= num_lines
    assert found.results == reader.read("page.md", told, CONTEXT).results


def of_front(content: bytes) -> None:
    """The front matter of a page."""
    front.read("page.md", content.decode(errors="replace"))


def of_recipe(content: bytes) -> None:
    """A recipe file."""
    with _folder() as folder:
        path = folder / "recipe.yaml"
        path.write_bytes(content)
        with _refused():
            for recipe in load([path]):
                assert recipe.points
                assert all(point.case.num_gpus > 0 and point.case.key for point in recipe.points)


def of_acknowledged(content: bytes) -> None:
    """The file of findings that a person accepts."""
    with _refused():
        for entry in review.entries("acknowledged.yaml", content.decode(errors="replace")):
            assert str(entry.it)


def of_words(content: bytes) -> None:
    """What the command line says: a window, and the fields of a case."""
    given = content.decode(errors="surrogateescape")
    steps = factories.steps()
    with _refused():
        picked = aggregation.named(given).pick([one.step for one in steps])
        assert len(steps) == len(picked)
    with _refused():
        checked_options(Options(CONTEXT, logs=LogOptions(tuple(given.split("\n")))))
    with _refused():
        checked_options(Options(PageContext(*given.split("\n", 4)[:5])))


def of_archive(content: bytes) -> None:
    """An archive or a compressed file; nothing is to be written beside it."""
    with _folder() as folder:
        path = folder / "a.zip"
        path.write_bytes(content)
        given = replace(checked_options(GIVEN), budget=Budget(2 << 20, 300))
        for read in read_source(file(path, named=True), given):
            assert not isinstance(read, RunFound)
            _check_read(read, str(path))
        assert [path] == list(folder.rglob("*"))


def of_run(content: bytes) -> None:
    """A run directory."""
    with _folder() as folder:
        trees.write(content, folder)
        if RunDir(folder).is_run():
            found = find_run(Source(folder, "run", named=True))
            read = parse_run(found) if isinstance(found, RunFound) else found
            _check_read(read, str(folder))


def of_tree(content: bytes) -> None:
    """Any files, from their bytes into a store and once more: the second time changes nothing."""
    with _folder() as folder:
        trees.write(content, folder / "in")
        (folder / "in").mkdir(exist_ok=True)
        shutil.copy(_empty_store(), folder / "store.sqlite")
        url = store_url(str(folder / "store.sqlite"))
        first = ingest([folder / "in"], url, GIVEN)
        with reading(url) as connection:
            _check_store(connection)
        again = ingest([folder / "in"], url, GIVEN)
        assert 0 == again.new + again.revised + again.withdrawn, again
        assert set(map(str, again.rejected)) == set(map(str, first.rejected))
        assert first.findings == again.findings


def _check_read(read: Read, where: str) -> None:
    match read:
        case RunRead():
            oracles.check_run(read.run)
        case PageRows():
            for row in read.rows:
                oracles.check_row(row)
        case Rejected():
            assert all(problem.where.startswith(where) for problem in read.problems)


def _check_store(connection: Connection) -> None:
    """The store proves itself, and holds no number that is infinite."""
    for name, check in CHECKS.items():
        faults = [one for one in check(connection, lambda items: items) if type(one) is Fault]
        assert not faults, (name, faults[:3])
    for table in ("results", "steps"):
        for row in connection.execute(text(f"SELECT * FROM {table}")):
            infinite = [cell for cell in row if isinstance(cell, float) and abs(cell) > 1e308]
            assert not infinite, (table, row)
    times = "SELECT count(*) FROM steps WHERE NOT step_time_s > 0"
    assert 0 == connection.scalar(text(times))


@contextmanager
def _refused() -> Iterator[None]:
    """What is wrong with an input is said, with a place and a sentence."""
    problems: Sequence[Diagnostic] = ()
    try:
        yield
    except InputError as error:
        problems = error.problems or [Diagnostic("", "")]
    assert all(problem.where and problem.message for problem in problems)


@contextmanager
def _folder() -> Iterator[Path]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


@cache
def _empty_store() -> Path:
    path = Path(tempfile.mkdtemp(prefix="perfdb-fuzz-")) / "empty.sqlite"
    migrate.upgrade(store_url(str(path)))
    return path


TARGETS: Mapping[str, Target] = {
    **{name: Target(partial(of_log, member)) for name, member in FORMATS.items()},
    "page": Target(of_page), "front": Target(of_front, 1 << 12),
    "recipe": Target(of_recipe, 1 << 12), "acknowledged": Target(of_acknowledged, 1 << 12),
    "words": Target(of_words, 1 << 9), "run": Target(of_run, 1 << 15),
    "archive": Target(of_archive, 1 << 15), "tree": Target(of_tree, 1 << 15),
}  # fmt: skip
