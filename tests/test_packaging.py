"""The distribution: what a wheel holds, and which package is imported from where."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import dashboards
import perfdb
import runner
from perfdb.db import session

ROOT = Path(__file__).parents[1]


def test_the_three_packages_come_from_one_place() -> None:
    """`runner` is a common name: another one on the path must not be taken for ours."""
    homes = {Path(str(package.__file__)).parents[1] for package in (perfdb, runner, dashboards)}
    assert 1 == len(homes)


def test_the_record_is_light_to_import() -> None:
    loaded = _modules_after("import perfdb.record, perfdb.rundir, perfdb.recipe")
    assert not loaded & {"sqlalchemy", "pandas", "torch", "sphinx", "streamlit", "rich"}


def test_the_runner_needs_no_database() -> None:
    loaded = _modules_after("import runner.run, runner.plan, runner.selftest, runner.cli")
    assert not loaded & {"sqlalchemy", "pandas", "sphinx", "streamlit", "torch", "megatron"}


def test_help_imports_nothing_heavy() -> None:
    loaded = _modules_after("from click.testing import CliRunner; from perfdb.cli import cli; "
                            "CliRunner().invoke(cli, ['--help'])")  # fmt: skip
    assert not loaded & {"sqlalchemy", "pandas", "pydantic", "ruamel", "rich", "torch"}


def test_the_help_of_recipes_imports_nothing_heavy() -> None:
    loaded = _modules_after("from click.testing import CliRunner; from perfdb.cli import cli; "
                            "CliRunner().invoke(cli, ['recipes', '--help'])")  # fmt: skip
    assert not loaded & {"sqlalchemy", "pandas", "pydantic", "ruamel", "rich", "torch"}


def test_a_site_is_made_without_what_reads_logs() -> None:
    """numpy stands for perfdb.formats, which load it, and a third of a second with it."""
    loaded = _modules_after("import perfdb.site.build, perfdb.site.directives")
    assert not loaded & {"numpy", "matplotlib", "pandas", "alembic", "torch"}


def test_a_build_with_nothing_to_do_loads_neither_the_store_nor_the_catalogue() -> None:
    loaded = _modules_after("import perfdb.site")
    assert not loaded & {"sqlalchemy", "pydantic"}


def _modules_after(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after a statement."""
    code = f"{statement}; import sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.slow
def test_the_wheel_brings_its_migrations_and_migrates_a_store(tmp_path: Path) -> None:
    subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "-o",
            str(tmp_path),
            str(ROOT),
        ],
        check=True,
        capture_output=True,
    )
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    assert "perfdb/_migrations/versions/0001_initial.py" in names
    assert "perfdb/catalog/systems.yaml" in names
    assert {"perfdb", "runner", "dashboards"} == {
        name.split("/")[0] for name in names if ".dist-info" not in name
    }
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from perfdb.db import migrate, session; "
        "assert migrate.scripts().name == '_migrations'; "
        "url = session.store_url('x.sqlite'); migrate.upgrade(url); print(migrate.current(url))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(tmp_path / "site")],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert session.HEAD == done.stdout.strip()
