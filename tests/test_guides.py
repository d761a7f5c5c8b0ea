"""The documentation is true: every command on a page is run as the page says, in order."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from perfdb.cli import cli
from perfdb.site.addresses import FOLDERS
from tests import archives, guides, logs
from tests.conftest import database
from tests.guides import Command, File

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
    + [page for kind in ("tutorial", "how-to", "explanation", "reference")
       for page in (ROOT / "docs" / kind).glob("*.md")]
)  # fmt: skip
FROM_NOTHING = "tutorial"
"""The folder of pages whose reader has no runs and no store yet."""

REASONS = {
    "a test runs it",
    "installs packages",
    "needs a GPU",
    "needs Slurm",
    "needs an account",
    "needs the programs of PostgreSQL",
    "stays open",
    "takes minutes",
    "the tutorial runs it",
}
"""Why a command of a page is not run here; nothing else is a reason."""

SHARED = ("tutorial/first-run.md", "how-to/find-a-regression.md")
"""Pages whose files other pages speak of."""

RUNS_PAGES = "test_the_commands_of_a_page_do_what_it_says"
SERVER = "postgresql://perfdb@db.example.org/perfdb"
"""Of what the pages say; a database of the tests' own server stands in its place."""
QUICK = "recipes/smoke/single.yaml"
PAGE_S = 240
"""The longest that the commands of a page may take, of which a busy machine takes most."""


def _id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _steps(page: Path, server: str = SERVER) -> list[Command | File]:
    return guides.steps(page.read_text(encoding="utf-8").replace(SERVER, server))


RUNNABLE = [
    page
    for page in PAGES
    if any(isinstance(step, Command) and not step.not_run for step in _steps(page))
]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh clone with one quick recipe, installed."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("perfdb", "runner", "dashboards", "migrations", "tests", "benchmarks",
                 "Makefile", "pyproject.toml", "constraints.txt"):  # fmt: skip
        (folder / name).symlink_to(ROOT / name)
    made = shutil.ignore_patterns("_build", "_generated", "smoke", "__pycache__")
    for name in ("data", "recipes", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=made)
    (folder / "recipes" / "smoke").mkdir()
    quick = (ROOT / QUICK).read_text().replace("measured_steps: 20", "measured_steps: 5")
    (folder / QUICK).write_text(quick)
    (folder / ".venv").mkdir()
    for part in Path(sys.prefix).iterdir():
        (folder / ".venv" / part.name).symlink_to(part)
    installed = folder / ".venv" / ".installed"
    installed.unlink(missing_ok=True)
    installed.touch()
    return folder


@pytest.fixture(scope="module")
def environment(preloaded: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A shell's, in which `perfdb` is the one under test, imported before; it names no store."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PERFDB_")}
    path = os.pathsep.join([str(preloaded / "bin"), str(BIN), os.environ["PATH"]])
    alone = str(tmp_path_factory.mktemp("temporary"))
    return kept | {
        "PATH": path, "COLUMNS": "200", "TMPDIR": alone, "PYTHONPATH": str(preloaded),
    }  # fmt: skip


@pytest.fixture(scope="module")
def filled(
    clone: Path, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The clone after a run and an ingest, with the pages, logs and archives that guides name."""
    folder = tmp_path_factory.mktemp("filled") / "clone"
    shutil.copytree(clone, folder, symlinks=True)
    for page in SHARED:
        for step in _steps(ROOT / "docs" / page):
            if isinstance(step, File):
                (folder / step.name).parent.mkdir(exist_ok=True)
                (folder / step.name).write_text(step.text)
    for command in (f"perfdb run {QUICK}", "perfdb ingest runs data/published next.md"):
        done = subprocess.run(
            shlex.split(command), cwd=folder, env=environment, capture_output=True, check=False
        )
        assert 0 == done.returncode, done.stderr.decode()
    log = logs.nemo().encode()
    (folder / "train.log").write_bytes(log)
    (folder / "train.log.gz").write_bytes(archives.COMPRESSORS[".gz"](log))
    (folder / "logs.zip").write_bytes(archives.zipped([("job/train.log", log)]))
    tar = archives.tar([("experiment/train.log", log)])
    name = "llmb-archive_26.06.00_20260701.tar.zst"
    (folder / name).write_bytes(archives.COMPRESSORS[".zst"](tar))
    shutil.copy(ROOT / "data" / "published" / "dfm.md", folder / "page.md")
    return folder


@pytest.fixture(scope="module")
def wrong(
    request: pytest.FixtureRequest,
    clone: Path,
    filled: Path,
    environment: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Mapping[Path, "Future[list[str]]"]]:
    """What is wrong on each page that is tested; as many are run at once as there are cores."""
    pages = [
        item.callspec.params["page"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == RUNS_PAGES
    ]
    with ExitStack() as stack, ThreadPoolExecutor(os.cpu_count()) as pool:
        started = {}
        for page in pages:
            steps = _steps(page)
            if SERVER in page.read_text():
                server = request.getfixturevalue("postgres_server")
                made = stack.enter_context(contextmanager(database)(server, "template0"))
                steps = _steps(page, made.render_as_string(hide_password=False))
            folder = tmp_path_factory.mktemp(page.stem) / "clone"
            base = clone if page.parent.name == FROM_NOTHING else filled
            shutil.copytree(base, folder, symlinks=True)
            started[page] = pool.submit(_wrong, steps, folder, environment)
        yield started


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", RUNNABLE, ids=_id)
def test_the_commands_of_a_page_do_what_it_says(
    page: Path, wrong: Mapping[Path, "Future[list[str]]"]
) -> None:
    """In a clone of their own, each after those before it, with the exit code that is stated."""
    assert [] == wrong[page].result()


def _wrong(steps: Sequence[Command | File], folder: Path, environment: dict[str, str]) -> list[str]:
    """What did not come as it is written: where, the command, and what it printed."""
    found = []
    runnable = [step for step in steps if isinstance(step, File) or not step.not_run]
    for command, code, printed in _run(runnable, folder, environment):
        where = f"line {command.line}: {command.text}\n{printed[-1500:]}"
        if code != command.exit_code:
            found.append(f"exit code {code}, not {command.exit_code}: {where}")
        missing = guides.shows(printed, command.shown)
        if missing is not None:
            found.append(f"prints no line {missing!r}: {where}")
    return found


def _run(
    steps: Sequence[Command | File], folder: Path, environment: dict[str, str]
) -> list[tuple[Command, int, str]]:
    """Run the commands in one shell, so that cd and export hold; its exit codes and its words."""
    outcomes = folder.parent / "outcomes"
    outcomes.mkdir()
    script, commands = [], []
    for number, step in enumerate(steps):
        if isinstance(step, File):
            if (folder / Path(step.name).parts[0]).is_symlink():
                continue
            (outcomes / f"{number}.file").write_text(step.text)
            name = shlex.quote(step.name)
            script.append(f'mkdir -p "$(dirname {name})"; cp {outcomes}/{number}.file {name}')
        else:
            script.append(f"{{ {step.text}\n}} >{outcomes}/{len(commands)}.out 2>&1 </dev/null")
            script.append(f"echo $? >{outcomes}/{len(commands)}.code")
            commands.append(step)
    bash = ["bash", "-c", "\n".join(script)]
    subprocess.run(bash, cwd=folder, env=environment, check=True, timeout=PAGE_S)
    return [
        (
            command,
            int((outcomes / f"{number}.code").read_text()),
            (outcomes / f"{number}.out").read_text(),
        )
        for number, command in enumerate(commands)
    ]


def test_what_is_not_run_says_why_and_can_be_parsed() -> None:
    """Commands of perfdb have these options, make has these targets, and bash can read the rest."""
    texts = []
    for page in PAGES:
        for step in _steps(page):
            if isinstance(step, File):
                texts += [step.text] if step.text.startswith("#!/bin/bash") else []
            elif step.not_run is not None:
                assert step.not_run in REASONS, f"{_id(page)}:{step.line}"
                texts.append(step.text)
                _assert_known(step.text)
    for text in texts:
        done = subprocess.run(["bash", "-n", "-c", text], capture_output=True, check=False)
        assert (0, b"") == (done.returncode, done.stderr), text


def test_commands_in_sentences_exist() -> None:
    """Each `perfdb …` between words is a command with these options."""
    for page in PAGES:
        for text in guides.inline_commands(page.read_text(encoding="utf-8")):
            _assert_known(text)


def _assert_known(text: str) -> None:
    words = [word for word in shlex.split(text) if not re.match(r"[A-Z_]+=", word)]
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text()
        assert all(f"\n{target}:" in makefile for target in words[1:]), text
    if Path(words[0]).name == "perfdb":
        options = words[1:-1] if words[-1] == "--help" else words[1:]
        answer = CliRunner().invoke(cli, [*options, "--help"])
        assert 0 == answer.exit_code, f"{text}\n{answer.output}"


def test_the_guide_for_other_projects_lists_every_page_and_folder_that_is_made() -> None:
    """As the toctree of this site and `FOLDERS` do."""
    page = (ROOT / "docs" / "how-to" / "publish.md").read_text()
    index = (ROOT / "docs" / "index.md").read_text().splitlines()
    [folders] = re.findall(r"makes the folders (.+?) inside the documents", page, re.DOTALL)
    assert {*FOLDERS, "_generated"} == set(re.findall(r"`(\w+)`", folders))
    [toctree] = re.findall(r"^```text\n(performance/index\n.+?)```", page, re.DOTALL | re.MULTILINE)
    assert [name for name in index if name.partition("/")[0] in FOLDERS] == toctree.split()
