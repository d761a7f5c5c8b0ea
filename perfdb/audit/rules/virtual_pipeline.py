"""A virtual pipeline needs a pipeline, and layers to cut into its stages."""

from collections.abc import Iterator, Sequence

from perfdb import catalog
from perfdb.audit import layout, mended
from perfdb.audit.equations import EXTRA_LAYERS
from perfdb.audit.release import Release
from perfdb.audit.subject import Remark, Severity, Subject

NAME = "virtual_pipeline"
MEANING = "VP above 1 needs PP above 1, and PP × VP divides the layers"

SPLITS_UNEVENLY = "automodel"
"""Its schedules give some stages a layer more than others."""


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows whose virtual pipeline cannot be, or needs a layout that the row does not state."""
    release = Release(rows)
    for row in rows:
        if layout.size(row, "virtual_pipeline") > 1:
            yield from _of(row, layout.size(row, "pipeline_parallel"), release)


def _of(row: Subject, stages: int, release: Release) -> Iterator[Remark]:
    if stages == 1:
        printed = row.pipeline_parallel or "not given"
        message = f"VP {row.virtual_pipeline} without a pipeline: PP is {printed}"
        yield _remark(row, Severity.ERROR, "VP 1, or PP above 1", message, release)
        return
    model = catalog.models().get(row.model)
    cuts = stages * layout.size(row, "virtual_pipeline")
    if model and cuts > model.num_layers + EXTRA_LAYERS:
        message = f"PP {stages} × VP {row.virtual_pipeline} is more than {model.num_layers} layers"
        expected = f"PP × VP up to {model.num_layers}"
        yield _remark(row, Severity.ERROR, expected, message, release)
    elif (
        model
        and row.framework != SPLITS_UNEVENLY
        and not any((model.num_layers + extra) % cuts == 0 for extra in range(EXTRA_LAYERS + 1))
    ):
        message = (
            f"{model.num_layers} layers do not divide into PP {stages} × VP "
            f"{row.virtual_pipeline} equal parts: the run needs a pipeline layout of its own"
        )
        expected = f"a divisor of {model.num_layers} layers"
        yield _remark(row, Severity.INFO, expected, message, release)


def _remark(
    row: Subject, severity: Severity, expected: str, message: str, release: Release
) -> Remark:
    fields = ("virtual_pipeline", "pipeline_parallel")
    found = f"PP {layout.size(row, 'pipeline_parallel')}, VP {row.virtual_pipeline}"
    mend = mended.suggestion(row, NAME, release)
    return Remark(row, severity, fields, expected, found, message, mend)
