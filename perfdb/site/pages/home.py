"""The landing page: how fast flagship models are, what changed, the newest releases and runs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Final

from markupsafe import Markup

from perfdb import units
from perfdb.catalog import titles
from perfdb.compare import Comparison, Match, Verdict, report
from perfdb.groups import grouped
from perfdb.site import addresses, columns
from perfdb.site.cells import FLOPS, figure_text, work
from perfdb.site.data import SiteData, SiteResult
from perfdb.site.grouping import (
    apart,
    is_on_gpus,
    newest_system_order,
    of_newest_releases,
    on_gpus,
    release_dates,
    release_title,
)
from perfdb.site.page import no_data
from perfdb.site.pages import best_results, flagships
from perfdb.site.pages.changes import change_of
from perfdb.site.pages.parts import rows_left_out
from perfdb.site.pages.release_pairs import ReleasePair, tally, tally_text
from perfdb.site.pages.releases import TRIAL
from perfdb.site.pages.runs import latest_first
from perfdb.site.tables import results_table
from perfdb.site.templates import render, with_short_hashes
from perfdb.stated import RATE

MOST_RUNS: Final = 5
BAR: Final = ("system", "precision", "framework")
"""The label of a bar: its release is that of its framework."""
UNITS: Final = {RATE: "tokens/s/GPU", FLOPS: "TFLOP/s/GPU", "step_time_s": "step time"}
"""The names of figures in a sentence."""
MARKS: Final = {
    Verdict.FASTER: ("perf-up", "▲ {:,} faster"),
    Verdict.RECOVERED: ("perf-up", "△ {:,} recovered"),
    Verdict.SLOWER: ("perf-down", "▼ {:,} slower"),
    Verdict.FAILED: ("perf-down", "✗ {:,} failed"),
}
"""The class and the words of what has changed, by verdict."""


def overview(data: SiteData) -> Markup:
    """The part of the landing page that is drawn from the store."""
    if not data.results and not data.runs:
        return no_data()
    of_runs, _ = apart([page.result for page in latest_first(data.runs)], data.current)
    latest, results = of_runs[:MOST_RUNS], on_gpus(data.results)
    dates = release_dates(results)
    unattributed = Counter(it.framework for it in results if it.release is None)
    by_framework = grouped(of_newest_releases(results), lambda one: one.framework)
    newest = sorted(
        by_framework.values(), key=lambda some: -flagships.day(some[0], dates).toordinal()
    )
    pairs = {pair.framework: pair for pair in data.pairs if pair.is_newest and pair.is_on_gpus}
    return render(
        "home",
        newest=_newest(newest[0][0], dates) if newest else None,
        flagships=flagships.panels(flagships.of(results, dates), BAR),
        models=addresses.MODELS,
        systems=addresses.COMPARED_SYSTEMS,
        counts=list(_counts(data)),
        cards=[_card(some) for some in newest],
        changes=[
            _changed(pair) for some in newest if (pair := pairs.get(some[0].framework)) is not None
        ],
        headline=best_results.HEADLINE,
        unattributed=[
            (release_title(name, None), addresses.of_release(name, None), unattributed[name])
            for name in sorted(unattributed, key=titles.framework)
        ],
        total=unattributed.total(),
        latest=results_table("Latest runs", latest, columns.LATEST).html if latest else "",
        runs=addresses.RUNS,
        short=with_short_hashes,
    )


def _newest(result: SiteResult, dates: flagships.Dates) -> dict[str, str]:
    """The release of a result, and the month it came out in."""
    day = flagships.day(result, dates)
    return {
        "title": release_title(result.framework, result.release),
        "document": addresses.of_release(result.framework, result.release),
        "when": "" if day == date.min else f"{day:%B %Y}",
    }


def _counts(data: SiteData) -> Iterator[tuple[str, str, str]]:
    """How many there are of what is on the site, and the pages that list them."""
    results, tests = apart(data.results)
    of_runs, _ = apart([page.result for page in data.runs], data.current)
    counts = {
        "release": (len({(it.framework, it.release) for it in results}), addresses.PERFORMANCE),
        "result": (len(results), addresses.PERFORMANCE),
        "run": (len(of_runs), addresses.RUNS),
        "model": (len({it.model for it in results}), addresses.MODELS),
        "system": (len({it.system for it in results}), addresses.SYSTEMS),
        "CPU test": (len(tests), addresses.CPU_TESTS),
    }
    if not data.is_public:
        found = sum(len(it.open) for it in data.audited)
        counts["open finding"] = (found, addresses.AUDIT)
    for what, (count, page) in counts.items():
        if count:
            yield units.number(count), what if count == 1 else f"{what}s", page


def _card(results: Sequence[SiteResult]) -> dict[str, object]:
    """The newest release of a framework, and its headlines, of the newest system first."""
    measured = sum(result.is_measured for result in results)
    counts = {"measured": measured, "published": len(results) - measured}
    parts = [f"{count:,} {kind}" for kind, count in counts.items() if count]
    best = best_results.headlines(results)
    return {
        "title": release_title(results[0].framework, results[0].release),
        "document": addresses.of_release(results[0].framework, results[0].release),
        "counts": " · ".join([*parts, *([] if any(map(is_on_gpus, results)) else [TRIAL])]),
        "best": [
            {
                "system": it.system_title,
                "tab": addresses.tab(it.framework, it.release, it.system),
                "row": addresses.table_row(it),
                "figure": figure_text(it, FLOPS),
                "work": work(it),
            }
            for it in sorted(best, key=lambda it: newest_system_order(it.system))
        ],
        "left_out": rows_left_out(sum(it.has_open_errors for it in results)),
    }


def _changed(pair: ReleasePair) -> dict[str, object]:
    """What a release changed: how many matches by verdict, new models, and the largest changes."""
    found, counts = pair.comparison, tally(pair)
    marks = [(mark, text.format(counts[it])) for it, (mark, text) in MARKS.items() if counts[it]]
    sides = ([it.a for it in found.matched], [it.b for it in found.matched])
    before, after = (
        {it.shown.model_title for it in (*some, *only)}
        for some, only in zip(sides, (found.only_a, found.only_b), strict=True)
    )
    if new := after - before:
        marks.append(("perf-new", f"+ {units.counted(len(new), 'new model')}"))
    if not marks:
        same = counts[Verdict.SAME]
        is_whole = same == len(found.judged)
        told = f"no change in {same:,} compared" if is_whole else tally_text(pair)
        marks.append(("perf-same", told))
    return {
        "title": pair.title,
        "document": pair.document,
        "marks": marks,
        "lines": list(_largest_changes(found)),
    }


def _largest_changes(found: Comparison) -> Iterator[str]:
    """The largest gain and the largest loss."""
    signs = {"▲": _largest(found, Verdict.FASTER), "▼": _largest(found, Verdict.SLOWER)}
    known = {sign: match for sign, match in signs.items() if match}
    works = [report.workload(match.b.shown) for match in known.values()]
    apart = report.told_apart(works, [*known.values()])
    for (sign, match), text in zip(known.items(), apart, strict=True):
        yield f"{sign} {report.signed(change_of(match))} {UNITS[match.metric]}: {text}"


def _largest(found: Comparison, verdict: Verdict) -> Match | None:
    """The largest change of a verdict: one that is the same within its noise may be larger."""
    changed = (match for match in found.matched if match.judgement.verdict is verdict)
    return max(changed, key=lambda match: abs(change_of(match) or 0.0), default=None)
