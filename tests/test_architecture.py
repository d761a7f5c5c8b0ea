"""The shape of the project: what its modules say of themselves and where things belong."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import perfdb.cli
from perfdb.cli.export import STYLES, export
from perfdb.export import FORMATS
from runner.backends import BACKENDS
from runner.launchers import LAUNCHERS
from tests import guides

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    path for folder in ("perfdb", "runner", "dashboards") for path in (ROOT / folder).rglob("*.py")
)
FUNCTION_LINES, MODULE_LINES = 40, 500


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a module, which several tests look at."""
    return ast.parse(path.read_text())


def test_every_module_says_its_job_and_stays_small() -> None:
    wrong = []
    for path in MODULES:
        text, tree = path.read_text(), parsed(path)
        where = path.relative_to(ROOT)
        if not ast.get_docstring(tree):
            wrong.append(f"{where}: no module docstring")
        if text.count("\n") > MODULE_LINES:
            wrong.append(f"{where}: more than {MODULE_LINES} lines")
        wrong += [
            f"{where}: {node.name} has more than {FUNCTION_LINES} lines"
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and _body_lines(node) > FUNCTION_LINES
        ]
    assert [] == wrong


def _body_lines(function: ast.FunctionDef) -> int:
    docstring = ast.get_docstring(function, clean=False)
    total = (function.end_lineno or 0) - function.lineno + 1
    return total - (docstring.count("\n") + 1 if docstring else 0)


def test_only_the_door_catches_everything() -> None:
    broad = {
        str(path.relative_to(ROOT))
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or getattr(node.type, "id", "") in ("Exception", "BaseException"))
    }
    assert {"perfdb/cli/__init__.py"} == broad


@pytest.mark.parametrize(
    ("folder", "table"),
    [
        ("runner/backends", {backend.__name__.split(".")[-1] for backend in BACKENDS.values()}),  # type: ignore[attr-defined]  # likewise
        ("runner/launchers", {place.__name__.split(".")[-1] for place in LAUNCHERS.values()}),  # type: ignore[attr-defined]  # likewise
    ],
)
def test_every_member_of_a_family_is_in_its_table(folder: str, table: set[str]) -> None:
    members = {path.stem for path in (ROOT / folder).glob("*.py")}
    assert table == members - {"__init__", "base"}


def test_one_module_knows_the_names_of_a_runs_files() -> None:
    names = re.compile(r'"(run\.json|steps\.jsonl|worker\.json|worker_config\.json|console\.log)"')
    knowing = {str(path.relative_to(ROOT)) for path in MODULES if names.search(path.read_text())}
    assert {"perfdb/rundir.py"} == knowing


def test_queries_are_asked_in_one_place() -> None:
    asking = {
        path.relative_to(ROOT).parts[1]
        for path in MODULES
        if re.search(r"(?<!\.)\bselect\(", path.read_text())
    }
    assert asking <= {"queries", "db"}


def test_the_places_where_things_are_added_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text[text.index("## Where do I add") : text.index("## House rules")]
    guide = (ROOT / "docs" / "how-to" / "add.md").read_text()
    shown = {step.name for step in guides.steps(guide) if isinstance(step, guides.File)}
    places = r"`((?:perfdb|runner|dashboards|tests|recipes|docs|data|migrations)/[\w./-]*)`"
    named = re.findall(places, table + guide)
    missing = [
        name for name in named
        if not re.search("NAME|WHAT", name) and name not in shown and not (ROOT / name).exists()
    ]  # fmt: skip
    assert named
    assert [] == missing


def test_what_is_added_to_is_where_the_guide_says() -> None:
    guide = (ROOT / "docs" / "how-to" / "add.md").read_text()
    places = r"((?:perfdb|runner|dashboards|tests)/[\w./]+\.py)"
    named = re.findall(rf"`(\w+)` (?:fills? )?(?:in|of) `{places}`", guide)
    lacking = [
        (name, place) for name, place in named
        if not re.search(rf"(?m)^(?:(?:class|def) |    )?{name}\b", (ROOT / place).read_text())
    ]  # fmt: skip
    assert len(named) > 10
    assert [] == lacking


def test_every_export_format_is_named_where_people_look_for_it() -> None:
    """In both lines of help, and in the guide as the word that `--format` takes."""
    _, summary = perfdb.cli.COMMANDS["export"]
    guide = (ROOT / "docs" / "how-to" / "export.md").read_text()
    for name in FORMATS:
        assert name in summary.lower()
        assert name in (export.help or "").lower()
        assert f"`{name}`" in guide
    assert tuple(FORMATS) == STYLES


GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
RIDDLES = {
    *("twice", "halves", "told", "mended", "picked", "uneven", "instead", "begun", "spoken"),
    *("beside", "said", "emitted", "judged", "trended", "ingested", "reviewed", "fresh", "thing"),
}
"""Names that need their docstring to be understood."""


def test_each_class_has_one_name_and_no_name_is_a_riddle() -> None:
    classes = [
        node.name
        for path in MODULES
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    words = {word for path in MODULES for word in path.stem.split("_")}
    words |= {word.lower() for name in classes for word in re.findall(r"[A-Z][a-z]+", name)}
    assert [] == sorted({name for name in classes if classes.count(name) > 1})
    assert set() == words & RIDDLES


TYPES = ("record", "errors", "fields", "run_record")
"""The modules of the types that travel between the parts of perfdb."""


def test_the_glossary_has_the_nouns_of_the_types_that_travel() -> None:
    """A class is named after a term; the terms are in order. `Frozen` is a base, and no noun."""
    definitions = GLOSSARY.split("```{glossary}")[1].split("```")[0]
    terms = re.findall(r"^(\w.*)$", definitions, re.M)
    assert terms == sorted(terms)
    classes = [
        node.name
        for name in TYPES
        for node in parsed(ROOT / "perfdb" / f"{name}.py").body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    nouns = {
        name: {w.removesuffix("s") for w in re.findall(r"[A-Z][a-z]+", name)} for name in classes
    }
    assert len(classes) > 30
    assert ["Frozen"] == [name for name in classes if not nouns[name] & {*terms}]
