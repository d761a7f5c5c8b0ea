"""Two pages that print the same result must print the same figures."""

from collections.abc import Iterator, Sequence

from perfdb.audit import workload
from perfdb.audit.printed import figure, shown
from perfdb.audit.subject import FIGURES, TOTAL, Remark, Subject

NAME = "two_pages"
MEANING = "pages that print the same case of the same release print the same figures"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """One remark for each result in force and other page that prints other figures of it."""
    for row in rows:
        for other in row.elsewhere:
            if apart := [field for field in (*FIGURES, TOTAL) if _differ(row, other, field)]:
                yield _remark(row, other, apart)


def _differ(row: Subject, other: Subject, field: str) -> bool:
    here, there = figure(row, field), figure(other, field)
    return here is not None and there is not None and not here.or_cut().agrees(there.or_cut())


def _remark(row: Subject, other: Subject, fields: Sequence[str]) -> Remark:
    ours, theirs = ([row_.figure(field) or 0.0 for field in fields] for row_ in (row, other))
    worst = max((a / b - 1 for a, b in zip(ours, theirs, strict=True)), key=abs)
    place = f"{other.source}:{other.source_line}" if other.source_line else f"{other.source}"
    return Remark(
        row,
        workload.severity(worst),
        tuple(fields),
        f"{shown(other, fields)} ({place})",
        shown(row, fields),
        f"two pages print {workload.name(row)}: here {shown(row, fields)}, in {place} "
        f"{shown(other, fields)}; this one was read last and holds",
        "mend the page that is wrong and ingest it again",
    )
