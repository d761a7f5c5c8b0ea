"""The machine and the software of a run, as facts of its page."""

import json
from collections.abc import Mapping

from perfdb.site.addresses import Address
from perfdb.site.data import RunPage
from perfdb.site.markup import Html, facts, tag


def facts_of(page: RunPage, _address: Address) -> Html:
    """The machine and the software, as the run recorded them."""
    summary = page.run.summary or {}
    worker = {f"worker: {name}": _of_ranks(value) for name, value in summary.items()}
    lines = _lines({**page.run.environment, **worker})
    if not lines:
        return tag("p", "The run kept nothing of its machine and software.")
    return facts("Environment", lines)


def _lines(values: Mapping[str, object]) -> list[tuple[str, str]]:
    """Names and values, those of a mapping each on a line of its own; unknown ones left out."""
    lines: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            lines += _lines({f"{name}: {key}": one for key, one in value.items()})
        elif value not in (None, ""):
            lines.append((name.replace("_", " "), plain(value)))
    return lines


def _of_ranks(value: object) -> object:
    """What the worker wrote of every rank, in a line; anything else as it is."""
    if not isinstance(value, list) or len(value) < 2:
        return value
    if not all(isinstance(one, int | float) for one in value):
        return f"{len(value):,} entries, in worker.json"
    least, most = min(value), max(value)
    if least == most:
        return f"{least} on each of {len(value):,} ranks"
    ends = (f"{end} (rank {value.index(end):,})" for end in (least, most))
    return f"{' to '.join(ends)}, of {len(value):,} ranks"


def plain(value: object) -> str:
    """A value as it is written in JSON; text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
