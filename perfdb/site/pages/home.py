"""The landing page: the newest release of each framework, what changed in it, the latest runs."""

from collections import Counter
from collections.abc import Iterator, Sequence
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
    cpu_tests,
    is_on_gpus,
    of_newest_releases,
    on_gpus,
    release_title,
)
from perfdb.site.page import no_data
from perfdb.site.pages import best_results
from perfdb.site.pages.changes import ReleasePair, change_of, disagreement, signed, tally_text
from perfdb.site.pages.parts import rows_left_out
from perfdb.site.pages.releases import TRIAL
from perfdb.site.pages.runs import apart, latest_first
from perfdb.site.tables import results_table
from perfdb.site.templates import render
from perfdb.stated import RATE

MOST_RUNS: Final = 5
UNITS: Final = {RATE: "tokens/s/GPU", FLOPS: "TFLOP/s/GPU", "step_time_s": "step time"}
"""The names of figures in a sentence."""


def overview(data: SiteData) -> Markup:
    """The part of the landing page that is drawn from the store."""
    if not data.results and not data.runs:
        return no_data()
    of_runs, _ = apart([page.result for page in latest_first(data.runs)], data.current)
    latest, results = of_runs[:MOST_RUNS], on_gpus(data.results)
    unattributed = Counter(it.framework for it in results if it.release is None)
    by_framework = grouped(of_newest_releases(results), lambda one: one.framework)
    # those with results on GPUs come first, and of them the one with the most results
    newest = sorted(
        by_framework.values(),
        key=lambda some: (
            not any(map(is_on_gpus, some)),
            -len(some),
            titles.framework(some[0].framework),
        ),
    )
    compared = {pair.framework: pair for pair in data.pairs if pair.is_newest}
    return render(
        "home",
        counts=list(_counts(data)),
        cards=[_card(some, compared.get(some[0].framework)) for some in newest],
        headline=f"{best_results.HEADLINE} on each system, {best_results.RULE}",
        unattributed=[
            (release_title(name, None), addresses.of_release(name, None), unattributed[name])
            for name in sorted(unattributed, key=titles.framework)
        ],
        total=unattributed.total(),
        latest=results_table("Latest runs", latest, columns.LATEST).html if latest else "",
        runs=addresses.RUNS,
    )


def _counts(data: SiteData) -> Iterator[tuple[str, str, str]]:
    """How many there are of what is on the site, and the pages that list them."""
    results, tests = on_gpus(data.results), cpu_tests(data.results)
    of_runs, _ = apart([page.result for page in data.runs], data.current)
    counts = {
        "release": (len({(it.framework, it.release) for it in results}), addresses.ARCHIVE),
        "result": (len(results), addresses.PERFORMANCE),
        "run": (len(of_runs), addresses.RUNS),
        "model": (len({it.model for it in results}), addresses.MODELS),
        "system": (len({it.system for it in results}), addresses.SYSTEMS),
        "open finding": (sum(len(it.open) for it in data.audited), addresses.AUDIT),
    } | ({"CPU test": (len(tests), addresses.CPU_TESTS)} if tests else {})
    for what, (count, page) in counts.items():
        yield units.number(count), what if count == 1 else f"{what}s", page


def _card(results: Sequence[SiteResult], pair: ReleasePair | None) -> dict[str, object]:
    """The newest release of a framework, its headlines, and what changed since the last one."""
    measured = sum(result.is_measured for result in results)
    counts = {"measured": measured, "published": len(results) - measured}
    parts = [f"{count:,} {kind}" for kind, count in counts.items() if count]
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
            for it in best_results.headlines(results)
        ],
        "left_out": rows_left_out(sum(it.has_open_errors for it in results)),
        "pair": pair,
        "changes": list(_changes(pair)) if pair else [],
    }


def _changes(pair: ReleasePair) -> Iterator[str]:
    """The outcome of a comparison, disagreeing figures, the largest changes, and the models."""
    found = pair.comparison
    figures = dict.fromkeys(UNITS[match.metric] for match in found.judged)
    yield tally_text(pair, f" by {' or '.join(figures)}" if figures else "")
    disagreements = [(it, text) for it in found.matched if (text := disagreement(it, pair.rounded))]
    for match, text in disagreements[:1]:
        some = f"{len(disagreements):,} of {len(found.matched):,} matched"
        yield f"TFLOP/s disagree in {some}: {report.workload(match.b.shown)}: {text}"
    named = {"best": _largest(found, Verdict.FASTER), "worst": _largest(found, Verdict.SLOWER)}
    known = {name: match for name, match in named.items() if match}
    works = [report.workload(match.b.shown) for match in known.values()]
    apart = report.told_apart(works, [*known.values()])
    for (name, match), text in zip(known.items(), apart, strict=True):
        yield f"{name}: {signed(change_of(match))} {UNITS[match.metric]}, {text}"
    sides_a = [*(match.a for match in found.matched), *found.only_a]
    sides_b = [*(match.b for match in found.matched), *found.only_b]
    before, after = ({it.shown.model_title for it in sides} for sides in (sides_a, sides_b))
    for name, models in (("new", after - before), ("no longer there", before - after)):
        if models:
            yield f"{name}: {', '.join(sorted(models))}"


def _largest(found: Comparison, verdict: Verdict) -> Match | None:
    """The largest change of a verdict: one that is the same within its noise may be larger."""
    changed = (match for match in found.matched if match.judgement.verdict is verdict)
    return max(changed, key=lambda match: abs(change_of(match) or 0.0), default=None)
