"""Where a result is from, and what the audit objects to in it, as marks of its row."""

from html import escape
from typing import Final

from perfdb.site import addresses
from perfdb.site.addresses import Address
from perfdb.site.data import Result
from perfdb.site.markup import Content, Html, joined, link, tag

CHOSEN: Final = "the run of median step time, of two in the middle the faster"
"""Which of the runs of a case is shown; see `perfdb.queries.results`."""


def origin(result: Result, address: Address) -> Html:
    """Measured or published, what the audit found, and the run or line that the figures are of."""
    parts: list[Content] = [tag("span", result.origin, class_=f"perf-badge {result.origin}")]
    if links := [*filter(None, [flag_mark(result, address)]), *_evidence(result, address)]:
        parts.append(tag("span", joined(links, " "), class_="perf-aside"))
    if result.withheld:
        parts.append(tag("span", f"no figures: {result.withheld}", class_="perf-withheld"))
    return joined(parts, " ")


def flag_mark(of: Result, address: Address) -> Html | None:
    """'⚑ 1 error', leading to what the audit found; None where it objects to nothing.

    The sign itself says nothing to a reader.
    """
    if of.flag is None:
        return None
    entry = escape(addresses.of_entry(of.framework, of.release, of.flag.anchor, address))
    return Html(
        f'<a class="perf-flag {of.flag.kind}" href="{entry}" title="found by the audit">'
        f'<span aria-hidden="true">⚑</span> {escape(of.flag.said)}</a>'
    )


def flag_sign(of: Result, address: Address) -> Html | None:
    """The sign alone, for where a row is named. It is in the style sheet: no part of the name."""
    if of.flag is None:
        return None
    entry = escape(addresses.of_entry(of.framework, of.release, of.flag.anchor, address))
    said = escape(f"{of.flag.said} found by the audit")
    return Html(
        f'<a class="perf-flag perf-sign {of.flag.kind}" href="{entry}" title="{said}" '
        f'aria-label="{said}"></a>'
    )


def which(result: Result) -> str:
    """'run', '1 of 3 runs', '1 of 3 runs, 2 finished'; of what is no run '1 of 2 results'."""
    if result.num_results == 1:
        return "run"
    if result.run_id is None:
        return f"1 of {result.num_results:,} results"
    unfinished = result.num_finished < result.num_results
    finished = f", {result.num_finished or 'none'} finished" if unfinished else ""
    return f"1 of {result.num_results:,} runs{finished}"


def _evidence(result: Result, address: Address) -> list[Html]:
    """The run of a row's figures and its recipe, or the page or file they are of, and the line."""
    if result.run_id is not None:
        run = link(which(result), address(addresses.of_run(result.run_id)))
        if result.recipe is None:
            return [run]
        return [run, link("recipe", address(addresses.of_recipe(result.recipe)))]
    source = address(addresses.of_source(result.source_sha256))
    links = []
    if result.num_results > 1:
        links.append(link(which(result), source))
    if result.source_line is not None:
        links.append(link(f"line {result.source_line}", f"{source}#L{result.source_line}"))
    return links
