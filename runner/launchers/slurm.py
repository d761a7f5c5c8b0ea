"""A Slurm cluster: a job for each run; its script starts one torchrun on each node."""

import os
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import perfdb
from perfdb import catalog
from perfdb.errors import Diagnostic, InputError
from perfdb.hardware import NODE_QUERY
from perfdb.recipe import RunSpec
from perfdb.recipe.slurm import SlurmSettings
from perfdb.rundir import RunDir
from runner.backends import Command
from runner.launchers.base import imports
from runner.slurm import client
from runner.slurm.jobs import JobIntent

if TYPE_CHECKING:
    import jinja2

NAME = "slurm"
TEMPLATE = Path(__file__).with_name("slurm.sh.j2")


@dataclass(frozen=True)
class SlurmProcess:
    """The job of one run."""

    run: RunDir
    number: int

    def poll(self) -> int | None:
        """The exit code, as the job itself says; None where it has not ended."""
        end = client.end_of(self.run)
        return end.exit_code if end else None

    def stop(self) -> None:
        """Cancel it."""
        client.cancel([self.number])


def argv(command: Command, run: RunDir) -> tuple[str, ...]:
    """What submits the script of a run."""
    del command
    return client.sbatch(run)


def variables(command: Command) -> dict[str, str]:
    """What the script sets in each process; the rest is the environment of the nodes."""
    threads = {"OMP_NUM_THREADS": "1"} if command.processes > 1 else {}
    return {**threads, **command.variables, **({} if command.is_script else imports())}


def exported(command: Command, settings: SlurmSettings) -> dict[str, str]:
    """What a script exports: what the site sets goes before defaults, not before the command's."""
    own = {} if command.is_script else imports()
    return {**variables(command), **settings.environment, **command.variables, **own}


def reaching(command: Command, settings: SlurmSettings) -> dict[str, str]:
    """The variables of each process: also those of the shell that jobs get."""
    names = settings.pass_environment or tuple(os.environ)
    shell = {name: os.environ[name] for name in names if name in os.environ}
    return {**shell, **exported(command, settings)}


def start(command: Command, run: RunDir) -> SlurmProcess:
    """Submit the script that is in a run directory. Raises RunError."""
    del command
    return SlurmProcess(run, client.submit(run))


def num_nodes(point: RunSpec, settings: SlurmSettings) -> int:
    """How many nodes a case needs."""
    return -(-point.case.num_gpus // (settings.gpus_per_node or point.case.num_gpus))


def script(
    point: RunSpec, site: SlurmSettings, command: Command, run: RunDir, intent: JobIntent
) -> str:
    """The script of a job, which sbatch reads, and which each node runs with the word `node`."""
    settings = site.changed(point.slurm)
    image = point.container or settings.container_image
    per_node = min(point.case.num_gpus, settings.gpus_per_node or point.case.num_gpus)
    exports = exported(command, settings)
    source = _source(image, settings) if image else ""
    asks = settings.request_gpus and catalog.has_gpus(point.case.system)
    return _template().render(
        run=run, settings=settings, program=command.program, per_node=per_node, exports=exports,
        job=intent.name, after=intent.after, num_nodes=intent.num_nodes,
        minutes=-(-intent.limit_s // 60),
        comment=intent.case_name.replace('"', "'"), version=perfdb.__version__,
        gpus=per_node if asks else None, gpu_query=" ".join(NODE_QUERY),
        python=settings.python or ("python3" if image else command.python),
        container=_container(image, settings, run, exports) if image else (),
        squash_file=source if source.startswith((".", "/")) else "",
    )  # fmt: skip


@cache
def _template() -> "jinja2.Template":
    """The script with its blanks, compiled once. Raises InputError."""
    try:
        import jinja2  # noqa: PLC0415  only who submits jobs needs it
    except ImportError as error:
        remedy = "pip install 'perfdb[slurm]'"
        raise InputError(Diagnostic("--launcher", "jinja2 is missing", remedy=remedy)) from error
    environment = jinja2.Environment(
        trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["quote"] = lambda value: shlex.quote(str(value))
    environment.filters["union"] = lambda first, more: ",".join((*first, *more))
    return environment.from_string(TEMPLATE.read_text())


def _source(image: str, settings: SlurmSettings) -> str:
    """Where pyxis finds an image: in a file, or in a registry, named before a #."""
    registry, slash, rest = image.partition("/")
    is_remote = slash and "." in registry and not image.startswith((".", "/"))
    return settings.images.get(image) or (f"{registry}#{rest}" if is_remote else image)


def _container(
    image: str, settings: SlurmSettings, run: RunDir, exports: dict[str, str]
) -> tuple[str, ...]:
    """Pyxis's options of srun: the run's folder and the runner are always in the container."""
    own = {str(run.path.absolute().parent), *imports()["PYTHONPATH"].split(os.pathsep)[:1]}
    mounts = (*settings.container_mounts, *(f"{path}:{path}" for path in sorted(own)))
    workdir = settings.container_workdir or str(run.path.absolute())
    return (
        f"--container-image={_source(image, settings)}", f"--container-mounts={','.join(mounts)}",
        f"--container-workdir={workdir}", f"--container-env={','.join(exports)}",
    )  # fmt: skip
