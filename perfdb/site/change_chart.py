"""How much each match of a comparison changed, as a word and as bars."""

from collections.abc import Sequence
from itertools import compress
from typing import Final

from markupsafe import Markup

from perfdb import units
from perfdb.catalog import titles
from perfdb.compare import Match, Verdict, report
from perfdb.record import Result
from perfdb.site import bests, charts
from perfdb.site.cells import gpus
from perfdb.site.charts import BAD, FAINT, GOOD, ChartBar
from perfdb.site.pairs import ReleasePair, tally

ALWAYS: Final = (True, False, True, True, True, False, False)
"""Which words of a label stand also where they are the same in all."""

NO_CHANGE: Final = units.percent(0.0)

COLOURS: Final = {Verdict.FASTER: GOOD, Verdict.SLOWER: BAD}


def change_of(match: Match) -> float | None:
    """B against A as a fraction of A: 0.02 is two per cent more; None where it cannot be told."""
    ratio = match.judgement.ratio
    return None if ratio is None else ratio - 1


def signed(fraction: float | None) -> str:
    """'+2.0%', '−1.3%', '0.0%'; – when unknown."""
    if fraction is None:
        return units.UNKNOWN
    text = units.percent(abs(fraction))
    sign = "" if text == NO_CHANGE else "+" if fraction > 0 else "−"
    return f"{sign}{text}"


def chart(pair: ReleasePair) -> Markup:
    """The largest changes as bars, coloured by verdict. Nothing where nothing has changed."""
    known = [
        (change, match)
        for match in pair.comparison.judged
        for change in (change_of(match),)
        if change is not None and signed(change) != NO_CHANGE
    ]
    if not known:
        return Markup("")
    largest = sorted(known, key=lambda one: abs(one[0]), reverse=True)[: charts.MOST_BARS]
    ranked = sorted(largest, key=lambda one: one[0], reverse=True)
    labels = _labels([match for _, match in ranked])
    given = [
        ChartBar(label, change * 100, signed(change), COLOURS.get(match.judgement.verdict, FAINT))
        for label, (change, match) in zip(labels, ranked, strict=True)
    ]
    drawn = charts.bars(pair.title, f"change from {pair.before} to {pair.after} (%)", given)
    return charts.with_note(drawn, _note(pair, len(given), len(known)))


def _note(pair: ReleasePair, drawn: int, known: int) -> Markup:
    """Which changes are drawn, and what has no bar."""
    some = f"{drawn} largest of {known}" if known > drawn else f"{drawn}"
    some += " change is" if known == 1 else " changes are"
    unchanged = len(pair.comparison.judged) - known
    still = f"; of {unchanged:,} more the figure has not changed or is not known"
    wrong = tally(pair).not_judged
    return bests.note(
        f"The {some} drawn, grey where no difference can be told{still if unchanged else ''}.",
        f"{wrong}: no bar." if wrong else "",
        "The table has them all.",
    )


def _labels(matches: Sequence[Match]) -> list[str]:
    """What each bar is of; a detail only where the bars differ in it, or would be named alike."""
    rows = [_named(match.b.shown) for match in matches]
    differ = [len(set(column)) > 1 for column in zip(*rows, strict=True)]
    told = [always or differs for always, differs in zip(ALWAYS, differ, strict=True)]
    labels = [" · ".join(filter(None, compress(row, told))) for row in rows]
    return report.told_apart(labels, matches)


def _named(it: Result) -> tuple[str, ...]:
    """The words of a label; ALWAYS says which of them every label has."""
    return (
        titles.qualified(it.model_title, it.qualifiers),
        titles.task(it.task),
        it.system_title,
        titles.precision(it.precision),
        gpus(it.num_gpus, it.system),
        f"sequence {it.sequence_length:,}",
        f"GBS {it.global_batch_size:,}",
    )
