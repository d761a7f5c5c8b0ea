"""A GPU without units for a precision does not train in it."""

from collections.abc import Iterator, Mapping, Sequence

from perfdb import catalog
from perfdb.audit.rates import peaks
from perfdb.audit.subject import Remark, Severity, Subject
from perfdb.catalog import Peak, Precision, titles

NAME = "precision"
MEANING = "the GPUs of the system have units for the precision"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows in a precision that their system, whose peaks are known, does not have."""
    for row in rows:
        known, recipe = peaks(row), catalog.precisions().get(row.precision or "")
        if known and recipe and not recipe.is_of(known):
            yield _remark(row, recipe, known)


def _remark(row: Subject, recipe: Precision, known: Mapping[str, Peak]) -> Remark:
    has = [one.title for one in catalog.precisions().values() if one.is_of(known)]
    return Remark(
        row,
        Severity.ERROR,
        ("precision", "system"),
        f"one of {', '.join(has)}",
        recipe.title,
        f"{titles.system(row.system)} has no units for {recipe.title}",
    )
