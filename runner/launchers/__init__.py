"""The places to run. To add one: write its module, add it to the table."""

from runner.launchers import local
from runner.launchers.base import Launcher, Process

__all__ = ["LAUNCHERS", "Launcher", "Process"]

LAUNCHERS: dict[str, Launcher] = {local.NAME: local}
