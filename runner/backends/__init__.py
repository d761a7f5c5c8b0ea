"""The training frameworks that can be run. To add one: write its module, add it to the table."""

from runner.backends import automodel, megatron_core
from runner.backends.base import Backend, Command

__all__ = ["BACKENDS", "Backend", "Command"]

BACKENDS: dict[str, Backend] = {megatron_core.NAME: megatron_core, automodel.NAME: automodel}
