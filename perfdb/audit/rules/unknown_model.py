"""A model that the catalogue lacks cannot be checked against its formula."""

from collections.abc import Iterator, Sequence

from perfdb import catalog
from perfdb.audit.subject import Remark, Severity, Subject

NAME = "unknown_model"
MEANING = "the model is in the catalogue"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """One remark for each model of a release that the catalogue does not hold."""
    firsts = {row.model: row for row in reversed(rows)}
    for name, row in reversed(firsts.items()):
        if name not in catalog.models():
            yield _remark(row)


def _remark(row: Subject) -> Remark:
    return Remark(
        row,
        Severity.INFO,
        ("model",),
        "a model of the catalogue",
        row.model,
        f"{row.model!r} is not in the catalogue: its FLOPs cannot be checked",
        "add it to perfdb/catalog/models/, or the page's spelling to its model's aliases",
    )
