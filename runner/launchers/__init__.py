"""The places to run. To add one: write its module, add it to the table."""

from runner.launchers import local, slurm
from runner.launchers.base import Launcher, Process

__all__ = ["LAUNCHERS", "Launcher", "Process"]

LAUNCHERS: dict[str, Launcher] = {local.NAME: local, slurm.NAME: slurm}
