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


def test_the_lock_has_a_hash_for_each_package_and_nothing_of_cuda() -> None:
    """PyPI's PyTorch needs gigabytes of CUDA, which the tests ran without."""
    locked = (ROOT / "requirements.lock").read_text().replace("\\\n", "").splitlines()
    packages = [line for line in locked if not line.startswith("#")]
    assert len(packages) > 50
    assert [] == [line for line in packages if "==" not in line or "--hash=sha256:" not in line]
    assert [] == [line for line in packages if line.startswith(("nvidia-", "cuda-", "triton"))]
    assert 1 == sum("torch==2.13.0+cpu " in line for line in packages)


HELP = (
    "from click.testing import CliRunner; from perfdb.cli import cli; CliRunner().invoke(cli, {})"
)
HEAVY = "sqlalchemy pandas pydantic ruamel rich torch"


@pytest.mark.parametrize(
    ("statement", "unneeded"),
    [
        ("import perfdb.record, perfdb.rundir, perfdb.recipe",
         "sqlalchemy pandas torch sphinx streamlit rich"),
        ("import runner.run, runner.plan, runner.selftest, runner.cli",
         "sqlalchemy pandas sphinx streamlit torch megatron"),
        (HELP.format(["--help"]), HEAVY),
        (HELP.format(["recipes", "--help"]), HEAVY),
        # numpy stands for perfdb.formats, which load it, and a third of a second with it.
        ("import perfdb.site.build, perfdb.site.directives",
         "numpy matplotlib pandas alembic torch"),
        ("import perfdb.site", "sqlalchemy pydantic"),
    ],
)  # fmt: skip
def test_each_part_loads_nothing_heavy_that_it_does_not_need(statement: str, unneeded: str) -> None:
    code = f"{statement}; import sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & set(unneeded.split())


@pytest.mark.slow
def test_the_wheel_brings_its_migrations_and_migrates_a_store(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    subprocess.run([*build, "-o", str(tmp_path), str(ROOT)], check=True, capture_output=True)
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
        "url = session.store_url('x.sqlite'); migrate.upgrade(url, session.HEAD); "
        "print(migrate.current(url))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(tmp_path / "site")],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert session.HEAD == done.stdout.strip()
