"""How much each match of a comparison changed, as a word and as bars."""

from typing import Final

from perfdb import units
from perfdb.catalog import titles
from perfdb.compare import Match, Verdict
from perfdb.site import bests, charts
from perfdb.site.charts import Bar
from perfdb.site.contents import ReleasePair
from perfdb.site.markup import Html, joined, tag
from perfdb.site.palette import BAD, FAINT, GOOD
from perfdb.site.words import framework_title, gpus

MOST_BARS: Final = 24
"""Bars that the chart has at most: the largest changes; the table below it has them all."""

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


def chart(pair: ReleasePair) -> Html:
    """The largest changes as bars, coloured by verdict. Nothing where nothing has changed."""
    known = [
        (change, match)
        for match in pair.clean
        for change in (change_of(match),)
        if change is not None and signed(change) != NO_CHANGE
    ]
    if not known:
        return Html("")
    largest = sorted(known, key=lambda one: abs(one[0]), reverse=True)[:MOST_BARS]
    with_task = len({match.b.shown.task for _, match in largest}) > 1
    given = [
        Bar(
            _label(match, with_task=with_task),
            change * 100,
            signed(change),
            COLOURS.get(match.judgement.verdict, FAINT),
        )
        for change, match in sorted(largest, key=lambda one: one[0], reverse=True)
    ]
    title = f"{framework_title(pair.framework)}: {pair.before} → {pair.after}"
    drawn = charts.bars(title, f"change from {pair.before} to {pair.after} (%)", given)
    return joined((drawn, tag("p", _note(pair, len(given), len(known)), class_="perf-note")))


def _note(pair: ReleasePair, drawn: int, known: int) -> str:
    """Which changes are drawn, and what has no bar."""
    some = f"{drawn} largest of {known}" if known > drawn else f"{drawn}"
    some += " change is" if known == 1 else " changes are"
    unchanged = len(pair.clean) - known
    still = f"; of {unchanged:,} more the figure has not changed or is not known"
    said = (
        f"The {some} drawn, grey where no difference can be told{still if unchanged else ''}.",
        bests.contradicted(len(pair.comparison.matched) - len(pair.clean)),
        "The table has them all.",
    )
    return " ".join(filter(None, said))


def _label(match: Match, *, with_task: bool) -> str:
    it = match.b.shown
    task = titles.task(it.task) if with_task else ""
    precision = titles.precision(it.precision)
    known = (it.model_title, task, it.system_title, precision, gpus(it.num_gpus))
    return " · ".join(filter(None, known))
