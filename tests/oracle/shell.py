"""`perfdb` in this process, in a folder that holds the inputs under their usual names."""

import contextlib
import io
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from perfdb import __version__
from perfdb.cli import main

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
NEWEST = (
    "mlperf_v5.0_eos-dfw_n64_ngc25.01_nemo_llama31_405b.txt",
    "mlm_golden_list_in_object_core_r0.10.0_t5_220m_a100.json",
    "pages/dgxc-llama3.1-70b-2024-11.md",
)
"""Files of the corpus that are left out: nothing was settled for them when this was recorded."""
TODAY = datetime.now(UTC).date()
MTIME = 1767225600
"""When every input was last changed, so that no output depends on the checkout."""


@dataclass(frozen=True)
class Done:
    """How a command ended and what it wrote, with the folder's name and the version left out."""

    code: int
    out: str
    err: str


class Shell:
    """Runs commands in a folder, each with the store that `store` names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.store = "perfdb.sqlite"

    def run(self, *words: str) -> Done:
        """One command. The store is a file in the folder."""
        env = {
            "PERFDB_URL": f"sqlite:///{self.folder / self.store}",
            "COLUMNS": "200",
            "NO_COLOR": "1",
        }
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
        streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
        with contextlib.chdir(self.folder), changed(env), called(words), streams[0], streams[1]:
            code = exit_code()
        texts = []
        for stream in (out, err):
            stream.flush()
            texts.append(self.plain(stream.buffer.getvalue().decode()))  # type: ignore[attr-defined]
        return Done(code, *texts)

    def plain(self, text: str) -> str:
        """A text without what differs between machines."""
        text = text.replace(f"{self.folder}/", "").replace(str(self.folder), ".")
        text = text.replace(str(ROOT), "ROOT")
        for day in (TODAY, datetime.now(UTC).date()):
            text = re.sub(rf"{day}([ T]\d\d:\d\d(:\d\d)?)?", "TODAY", text)
        text = re.sub(rf"\b{re.escape(__version__)}\b(?=[\",\s]|$)", "VERSION", text)
        return text.replace("\r\n", "\n")

    def alone(self, source: Path) -> str:
        """A copy of one file in a folder where nothing else lies; its path there."""
        place = self.folder / "alone"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        copy(source, place / source.name)
        return f"alone/{source.name}"


def exit_code() -> int:
    """That of the command in sys.argv."""
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@contextlib.contextmanager
def changed(env: dict[str, str]) -> Iterator[None]:
    """The environment with other values, for a while."""
    before = dict(os.environ)
    os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def called(words: tuple[str, ...]) -> Iterator[None]:
    """sys.argv of `perfdb WORDS`, for a while, and no module that click would name instead."""
    program = sys.modules["__main__"]
    before = sys.argv, program.__package__
    sys.argv, program.__package__ = ["perfdb", *words], None
    try:
        yield
    finally:
        sys.argv, program.__package__ = before


def copy(source: Path, target: Path) -> None:
    """A file with a fixed time."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    os.utime(target, (MTIME, MTIME))


def staged(folder: Path) -> Shell:
    """A shell in a new folder with seeds/, corpus/, rundir/ and data/, as far as they are there."""
    folders = {
        "seeds": SHARED / "seeds",
        "corpus": SHARED / "corpus",
        "data": ROOT / "data",
        "recipes": ROOT / "recipes",
        "rundir": ROOT / "tests" / "data" / "oracle" / "rundir",
    }
    for name, source in folders.items():
        for path in sorted(source.rglob("*")):
            inner = path.relative_to(source)
            if path.is_file() and str(inner) not in NEWEST:
                copy(path, folder / name / inner)
    return Shell(folder)
