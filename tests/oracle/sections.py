"""The sections: each yields names of files and their lines."""

import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

import click

from perfdb.cli import cli as commands
from tests.oracle import text
from tests.oracle.shell import MTIME, NEWEST, ROOT, SHARED, Done, Shell

Files: TypeAlias = Iterator[tuple[str, list[str]]]

DATA = ROOT / "tests" / "data"
PAGES = {
    "automodel-2025-10-06.md": ("automodel", "25.10"),
    "automodel-2025-12-16.md": ("automodel", "25.12", "--system", "dgx-h100"),
    "automodel-2026-04-17.md": ("automodel", "26.04"),
    "dfm-2025-11-20.md": ("dfm", "25.11"),
    "dfm-2026-03-13.md": ("dfm", "26.03"),
    "nemo-2024-09.md": ("nemo", "24.09", "--system", "dgx-h100", "--precision", "bf16"),
    "automodel-performance-summary.txt": ("automodel", "26.04"),
    "dfm-performance-benchmarks.md": ("dfm", "26.03"),
    "dfm-performance-skeleton.md": ("dfm", "26.03"),
    "nemo-25.04-performance-summary.txt": ("nemo", "25.04"),
    "nemotron4-dgxc-recipe.txt": ("nemo", "25.02"),
}
"""Framework and release of each page that does not name them, and what else it lacks."""
H100 = ("model=llama3-8b", "system=dgx-h100", "num_gpus=8", "sequence_length=4096", "task=sft")
BATCH = (*H100, "global_batch_size=32")
GOLDEN = (*BATCH, "precision=bf16")
LOGS = {
    "mbridge_*": (),
    "mlperf_*": ("framework=nemo",),
    "mlm_golden_*": GOLDEN,
    "automodel_*": BATCH,
    "cloudai_fixture_nemo_run_3.log": BATCH,
    "*": H100,
}
"""What has to be named of the logs of the corpus, by the first pattern that fits."""


def named(page: str) -> list[str]:
    """The options of a page."""
    framework, release, *others = PAGES[page]
    return ["--framework", framework, "--release", release, *others]


def settings(log: str, release: str = "1.0") -> list[str]:
    """The options of a log."""
    fields = next(fields for pattern, fields in LOGS.items() if Path(log).match(pattern))
    return ["--release", release, *(word for one in fields for word in ("--set", one))]


def document(done: Done) -> tuple[list[str], list[str], set[str]]:
    """JSON output: figures, sentences, keys; where there is none, only the exit code."""
    value: text.Json = json.loads(done.out) if done.out.strip() else None
    errors = done.err.splitlines()
    return [f"exit {done.code}", *text.figures(value)], [*text.words(value), *errors], text.keys(value)  # noqa: E501  # fmt: skip


def ingested(shell: Shell, path: str, options: list[str]) -> tuple[list[str], list[str]]:
    """What becomes of one path in a store of its own: figures and words."""
    shutil.copy(template(shell), shell.folder / "one.sqlite")
    shell.store = "one.sqlite"
    report, messages, _ = document(shell.run("ingest", path, "--json", *options))
    exported = shell.run("export", "results", "--format", "csv")
    numbers, notes = text.rows(exported.out)
    head = " ".join(["$ perfdb ingest", path, *options])
    return [head, *report, *numbers, ""], [head, *messages, *notes, ""]


@cache
def template(shell: Shell) -> Path:
    """An empty store, to be copied."""
    shell.store = "template.sqlite"
    assert shell.run("db", "upgrade").code == 0
    return shell.folder / "template.sqlite"


def corpus(pattern: str) -> list[Path]:
    """Files of the corpus, but the newest."""
    folder = SHARED / "corpus"
    return [p for p in sorted(folder.glob(pattern))
            if p.is_file() and str(p.relative_to(folder)) not in NEWEST]  # fmt: skip


def pages(shell: Shell) -> Files:
    """Each real page alone in a store."""
    for path in [*sorted((SHARED / "seeds").iterdir()), *corpus("pages/*")]:
        yield from variants(shell, path, named(path.name), f"pages/{path.name}")
    for path in sorted((ROOT / "data" / "published").iterdir()):
        yield from variants(shell, path, [], f"pages/published-{path.name}")


def variants(shell: Shell, path: Path, options: list[str], name: str) -> Files:
    """A file alone in a folder: without options and, where there are some, with them."""
    choices: list[list[str]] = [[], options] if options else [[]]
    made = [ingested(shell, shell.alone(path), chosen) for chosen in choices]
    yield f"{name}.txt", [line for figures, _ in made for line in figures]
    yield f"{name}.words.txt", [line for _, words in made for line in words]


def logs(shell: Shell) -> Files:
    """Each log of the corpus alone in a store."""
    for path in corpus("*"):
        yield from variants(shell, path, settings(path.name), f"logs/{path.name}")


def samples(shell: Shell) -> Files:
    """The good files of the tests, most of them written for a test after a real one."""
    chosen = ["--release", "1.0", *(word for one in GOLDEN for word in ("--set", one))]
    for path in sorted((DATA / "formats").glob("*/good/*")):
        if path.suffix != ".yml":
            name = f"samples/{path.parents[1].name}-{path.name}"
            yield from variants(shell, path, chosen, name)
    page = ["--framework", "nemo", "--release", "1.0", "--system", "dgx-h100"]
    for path in sorted((DATA / "pages" / "good").iterdir()):
        if path.suffix != ".yml" and path.name not in PAGES:
            yield from variants(shell, path, page, f"samples/page-{path.name}")


def rundir(shell: Shell) -> Files:
    """A run directory that the runner left."""
    figures, words = ingested(shell, "rundir", [])
    yield "rundir/run.txt", figures
    yield "rundir/run.words.txt", words


@cache
def filled(shell: Shell) -> list[str]:
    """One store with everything; what each ingest reported."""
    shutil.copy(template(shell), shell.folder / "all.sqlite")
    shell.store = "all.sqlite"
    steps = [["seeds", "data/published"], ["rundir"]]
    steps += [[f"corpus/pages/{path.name}", *named(path.name)] for path in corpus("pages/*")]
    for count, path in enumerate(corpus("*")):
        steps.append([f"corpus/{path.name}", *settings(path.name, f"{count % 3 + 1}.0")])
    lines = []
    for words in steps:
        report, messages, _ = document(shell.run("ingest", *words, "--json"))
        lines += [" ".join(["$ perfdb ingest", *words]), *report, *messages, ""]
    return lines


def store(shell: Shell) -> Files:
    """Every question to the store with everything."""
    yield "store/ingest.words.txt", filled(shell)
    shell.store = "all.sqlite"
    exported = shell.run("export", "results", "--format", "csv").out
    numbers, notes = text.rows(exported)
    yield "store/export.txt", [exported.splitlines()[0], *numbers]
    yield "store/export.words.txt", notes
    restated = shell.run("export", "results", "--format", "csv", "--convention", "megatron-lm").out
    yield (
        "store/restated.txt",
        [re.sub(r".*; source=", "source=", line) for line in text.rows(restated)[0]],
    )
    known: set[str] = set()
    for name, words in {**QUESTIONS, **comparisons(numbers)}.items():
        figures, sentences, found = document(shell.run(*words))
        if name == "trend":  # the series are those of trend-all
            figures = list(itertools.takewhile(lambda line: line != "  series:", figures))
        yield f"store/{name}.txt", [f"$ perfdb {' '.join(words)}", *figures]
        yield f"store/{name}.words.txt", sentences
        known |= {f"{words[0]} {key}" for key in found}
    yield "store/keys.txt", sorted(known)
    yield from published(shell)


QUESTIONS = {
    "export-json": ("export", "results", "--json", "--framework", "automodel"),
    "export-pytorch": ("export", "results", "--format", "pytorch", "--framework", "megatron-core"),
    "audit": ("audit", "--json", "--fail-on", "error"),
    "trend": ("trend", "--json", "--fail-on", "regression,missing"),
    "trend-all": ("trend", "--json", "--all", "--judge-all"),
    "trend-case": ("trend", "qwen3-30b-a3b", "--json", "--each-case"),
    "verify": ("verify", "--json"),
    "recompute": ("recompute", "--json", "--window", "last_n(5)", "--dry-run"),
    "restate": ("recompute", "--json", "--convention", "megatron-lm", "--dry-run"),
    "systems": ("systems", "--json"),
    "models": ("models", "--json"),
    "recipes": ("recipes", "list", "--json"),
    "recipe": ("recipes", "show", "llama3-8b", "--json"),
}


def comparisons(numbers: list[str]) -> dict[str, tuple[str, ...]]:
    """`compare` of each release of a framework with the next."""
    cells = [dict(cell.split("=", 1) for cell in row.split("; ") if "=" in cell) for row in numbers]
    found = {(row["framework"], row.get("release", "(unattributed)")) for row in cells}
    made = {}
    for a, b in itertools.pairwise(sorted(found)):
        if a[0] == b[0] != "megatron-bridge":
            name = f"compare-{a[0]}-{a[1]}-{b[1]}"
            made[name] = ("compare", " ".join(a), " ".join(b), "--json", "--fail-on", "slower")
    return made


def published(shell: Shell) -> Files:
    """The page of each release, in both formats."""
    for kind in ("myst", "markdown"):
        shell.run("publish", "--format", kind, "--output", f"out-{kind}", "--fail-on", "never")
        for path in sorted((shell.folder / f"out-{kind}").rglob("*.*")):
            name = "-".join(path.relative_to(shell.folder / f"out-{kind}").parts)
            yield f"store/publish-{kind}-{name}", shell.plain(path.read_text()).splitlines()


def site(shell: Shell) -> Files:
    """The site of the store with everything: text of the pages that are made from it."""
    filled(shell)
    docs, html = shell.folder / "docs", shell.folder / "html"
    left_out = shutil.ignore_patterns("_build", "_generated", "__pycache__")
    shutil.copytree(ROOT / "docs", docs, ignore=left_out, dirs_exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-qT", "-b", "html", "-d", "doctrees", "docs", "html"],
        env=os.environ | {"PERFDB_URL": f"sqlite:///{shell.folder / 'all.sqlite'}",
                          "SOURCE_DATE_EPOCH": str(MTIME)},
        cwd=shell.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    yield "site/build.txt", [f"exit {done.returncode}", *shell.plain(done.stderr).splitlines()]
    made = sorted(str(path.relative_to(html)) for path in html.rglob("*.html"))
    kept = [page for page in made if page.split("/")[0] in FROM_STORE]
    data = sorted(str(path.relative_to(html)) for path in (html / "_data").rglob("*.*"))
    yield "site/addresses.txt", [*kept, *data]
    links: list[str] = []
    for address in kept:
        tables, prose, leads = text.page(shell.plain((html / address).read_text()))
        name = address.removesuffix(".html").replace("/", "-")
        yield (
            f"site/{name}.txt",
            [re.sub(r"^TODAY( \||–)[ \d:–]*(?= \|)", "TODAY", one) for one in tables],
        )
        yield f"site/{name}.words.txt", hashed(prose) if address.startswith(FILES) else prose
        links += [f"{address}: {link}" for link in leads]
    yield "site/links.txt", links


FROM_STORE = ("index.html", "changes", "models", "performance", "recipes", "runs", "scaling",
              "sources", "systems")  # fmt: skip


FILES = ("runs/", "sources/")
"""Pages that show whole files, of whose text only the hash is kept."""


def hashed(lines: list[str]) -> list[str]:
    """How many lines, and their hash."""
    return [
        f"{len(lines)} lines, SHA-256 {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()}"
    ]


def cli(shell: Shell) -> Files:
    """The help of every command, and how bad input ends."""
    shell.store = "one.sqlite"
    shutil.copy(template(shell), shell.folder / "one.sqlite")
    for words in [(), *names(commands, click.Context(commands), ())]:
        yield f"cli/{'-'.join(words) or 'perfdb'}.words.txt", shell.run(*words, "--help").out.splitlines()  # noqa: E501  # fmt: skip
    tried = [(" ".join(words), shell.run(*words)) for words in BAD]
    yield "cli/bad.txt", [f"exit {done.code}: perfdb {words}" for words, done in tried]
    yield "cli/bad.words.txt", [f"perfdb {words}: {done.err}" for words, done in tried]


def names(group: click.Group, context: click.Context, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:  # noqa: E501  # fmt: skip
    """The words of every command."""
    for name in sorted(group.list_commands(context)):
        command = group.get_command(context, name)
        yield (*above, name)
        if isinstance(command, click.Group):
            yield from names(command, context, (*above, name))


BAD: list[tuple[str, ...]] = [
    ("nothing",), ("ingest", ""), ("ingest", "not-there.log"), ("ingest", "seeds", "--set", "a"),
    ("ingest", "seeds", "--set", "no_field=1"), ("ingest", "seeds", "--set", "num_gpus=many"),
    ("ingest", "seeds", "--format", "no-format"), ("ingest", "seeds", "--window", "first"),
    ("ingest", "data/acknowledged.yaml"), ("export", "results"),
    ("export", "results", "--format", "csv", "--release", "nemo 1.0"),
    ("compare", "nemo 1.0", "nemo 2.0"), ("trend", "no-model"), ("audit", "not-there.md"),
    ("audit", "--acknowledged", "not-there.yaml"), ("recipes", "show", "no-recipe"),
    ("recipes", "validate", "data/acknowledged.yaml"), ("withdraw", "not-there.md"),
    ("recompute", "--convention", "none"), ("publish", "nemo 1.0"), ("verify", "--db", "x://y"),
    ("verify", "--db", "sqlite:///not-there.sqlite"), ("run", "not-there.yaml"),
]  # fmt: skip

SECTIONS: dict[str, Callable[[Shell], Files]] = {
    "pages": pages, "logs": logs, "samples": samples, "rundir": rundir, "store": store,
    "site": site, "cli": cli,
}  # fmt: skip
NEED_SHARED = ("pages", "logs", "store", "site")
"""The sections that are skipped where the seeds and the corpus are not beside the project."""
