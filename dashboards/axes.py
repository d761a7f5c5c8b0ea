"""What results can be laid out along and grouped by: its title, its values, and its colors."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from perfdb import catalog
from perfdb.catalog import colors, titles
from perfdb.catalog.colors import Shade
from perfdb.record import Result
from perfdb.versions import natural

PALETTE = (
    Shade("#0072b2", "#56b4e9"), Shade("#d55e00", "#ff8a3d"), Shade("#00664d", "#4fd1a5"),
    Shade("#a3267f", "#ee8ccf"), Shade("#a87400", "#f0c24b"), Shade("#7040b0", "#b793ef"),
    Shade("#00798c", "#4fc3d6"), Shade("#4d4d4d", "#b8b8b8"),
)  # fmt: skip
"""The colors of what has no color of its own, those of `perfdb.catalog.colors`."""


class ResultAxis(NamedTuple):
    """An axis of `perfdb.queries.best.AXES`: what it is called and what its values read."""

    title: str
    column: str
    text: Callable[[Result], str]
    is_number: bool = False


def release_name(result: Result) -> str:
    """'NeMo Framework 25.04'."""
    return titles.release(result.release_name)


def model(result: Result) -> str:
    """The model of a result, with its qualifiers."""
    return titles.qualified(result.model_title, result.qualifiers)


def system_order(name: str) -> tuple[float, str]:
    """A key that sorts systems from the newest down: by the BF16 peak of a GPU."""
    peak = catalog.peak(name, "bf16")
    return -(peak.tflops if peak else 0.0), name


AXES: Mapping[str, ResultAxis] = {
    "model": ResultAxis("Model", "model", lambda it: it.model_title or titles.model(it.model)),
    "system": ResultAxis("System", "system", lambda it: it.system_title),
    "release": ResultAxis("Release", "release_id", release_name),
    "precision": ResultAxis(
        "Precision", "precision", lambda it: titles.precision(it.precision) or "not stated"
    ),
    "task": ResultAxis("Task", "task", lambda it: titles.task(it.task)),
    "framework": ResultAxis("Framework", "framework", lambda it: titles.framework(it.framework)),
    "origin": ResultAxis("Origin", "origin", lambda it: str(it.origin)),
    "gpus": ResultAxis("GPUs", "num_gpus", lambda it: f"{it.num_gpus:,}", is_number=True),
    "sequence": ResultAxis(
        "Sequence length", "sequence_length", lambda it: f"{it.sequence_length:,}", is_number=True
    ),
    "gbs": ResultAxis(
        "Global batch size", "global_batch_size", lambda it: f"{it.global_batch_size:,}",
        is_number=True,
    ),
}  # fmt: skip
"""By the name in the address."""


def shades(axis: str, results: Iterable[Result]) -> dict[str, Shade]:
    """The color of each value of an axis that results have, by its text, in order."""
    column, text = AXES[axis].column, AXES[axis].text
    known = {text(it): it for it in results}
    if axis == "system":
        order = [*catalog.systems()]
        systems = sorted(known, key=lambda one: _place(order, known[one].system))
        return {one: colors.of_system(known[one].system) for one in systems}
    ordered = sorted(known, key=natural)
    if column == "precision":
        order = [*catalog.precisions()]
        ordered.sort(key=lambda one: _place(order, known[one].precision or ""))
        return {one: colors.of_precision(known[one].precision) for one in ordered}
    return {one: PALETTE[place % len(PALETTE)] for place, one in enumerate(ordered)}


def _place(order: list[str], name: str) -> int:
    return order.index(name) if name in order else len(order)
