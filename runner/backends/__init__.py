"""The training frameworks that can be run. To add one: write its module, add it to the table."""

from collections.abc import Mapping

from runner.backends import automodel, megatron_bridge, megatron_core
from runner.backends.base import Backend, Command

__all__ = ["BACKENDS", "NO_BACKEND", "Backend", "Command"]

BACKENDS: dict[str, Backend] = {
    megatron_core.NAME: megatron_core,
    automodel.NAME: automodel,
    megatron_bridge.NAME: megatron_bridge,
}

NO_BACKEND: Mapping[str, str] = {
    "nemo": "NeMo 2's performance scripts cannot be started process by process: each submits a "
    "Slurm job of its own through NeMo-Run; run the script of the benchmark (of Nemotron-4 "
    "launch.sh) with this configuration, and ingest its log",
}
"""Why a framework has none."""
