"""How much each match of a comparison changed, as a word and as bars."""

from typing import Final

from perfdb import units
from perfdb.compare import Match, Verdict
from perfdb.site import bests, charts
from perfdb.site.charts import Bar
from perfdb.site.contents import ReleasePair
from perfdb.site.markup import Html, joined, tag
from perfdb.site.palette import BAD, FAINT, GOOD
from perfdb.site.words import framework_title

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
    given = [
        Bar(
            _label(match), change * 100, signed(change), COLOURS.get(match.judgement.verdict, FAINT)
        )
        for change, match in sorted(largest, key=lambda one: one[0], reverse=True)
    ]
    title = f"{framework_title(pair.framework)}: {pair.before} → {pair.after}"
    some = f"{len(given)} largest of {len(known)}" if len(known) > len(given) else f"{len(given)}"
    some += " change is" if len(known) == 1 else " changes are"
    unchanged = len(pair.clean) - len(known)
    still = f"; of {unchanged:,} more the figure has not changed or is not known"
    said = (
        f"The {some} drawn, grey where no difference can be told{still if unchanged else ''}.",
        bests.contradicted(len(pair.comparison.matched) - len(pair.clean)),
        "The table has them all.",
    )
    note = " ".join(filter(None, said))
    drawn = charts.bars(title, f"change from {pair.before} to {pair.after} (%)", given)
    return joined((drawn, tag("p", note, class_="perf-note")))


def _label(match: Match) -> str:
    it = match.b.shown
    known = (it.model_title, it.system_title, it.precision, f"{it.num_gpus:,} GPUs")
    return " · ".join(filter(None, known))
