"""Which results have open errors: a wrong figure is listed with its mark, and never judged."""

from collections.abc import Collection, Iterable
from typing import TypeVar

from perfdb.compare.base import Result

Some = TypeVar("Some", bound=Result)


def marked(results: Iterable[Some], wrong: Collection[int]) -> tuple[Some, ...]:
    """The results; those whose numbers are among the wrong ones say that they have open errors."""
    return tuple(
        one.model_copy(update={"has_open_errors": True}) if one.result_id in wrong else one
        for one in results
    )
