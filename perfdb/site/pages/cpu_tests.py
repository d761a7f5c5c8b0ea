"""The page of CPU tests: results without a GPU, which no other list or chart shows."""

from collections.abc import Iterator, Sequence
from functools import partial

from perfdb.site import addresses, columns, grouping
from perfdb.site.data import Link, SiteData, SiteResult
from perfdb.site.page import Block, Section, SitePage, offered
from perfdb.site.pages import runs
from perfdb.site.pages.parts import release_of
from perfdb.site.templates import paragraph, render_text
from perfdb.units import counted

WHAT = (
    "Results without a GPU. They show that the software works, not how fast a GPU is. Other pages "
    "leave them out."
)
NONE = "There are no CPU tests."


def pages(data: SiteData) -> Iterator[SitePage]:
    """The page; it is there without a result, too."""
    results = sorted(grouping.apart(data.results)[1], key=grouping.work_order)
    of_runs = [it.result for it in runs.latest_first(data.runs)]
    _, tests = grouping.apart(of_runs, data.current)
    pairs = [it for it in data.pairs if not it.is_on_gpus] if results else []
    links = [
        *(Link(release_of(it), addresses.of_release(it.framework, it.release)) for it in results),
        *(Link(it.model_title, addresses.of_model(it.model)) for it in results),
        *(Link(it.system_title, addresses.of_system(it.system)) for it in results),
        *(Link(it.title, it.document) for it in pairs),
    ]
    about = f"{counted(len(results), 'result')} without a GPU, apart from all others."
    body = partial(_page, tuple(results), tuple(tests), tuple(dict.fromkeys(links)))
    yield SitePage(addresses.CPU_TESTS, "CPU tests", about, body)


def _page(
    results: Sequence[SiteResult], tests: Sequence[SiteResult], links: Sequence[Link]
) -> list[Block]:
    if not results and not tests:
        return [paragraph(WHAT), paragraph(NONE)]
    also = render_text(
        "<p>See also: {% for it in links %}{{ link(it.text, it.document) }}"
        "{% if not loop.last %} · {% endif %}{% endfor %}</p>\n",
        links=links,
    )
    made: list[Block] = [paragraph(WHAT), *([also] if links else [])]
    if results:
        made.append(Section("Results", offered("CPU tests", results, columns.CPU_TESTS)))
    if tests:
        made.append(Section("Runs", offered("Runs without a GPU", tests, columns.RUNS)))
    return made
