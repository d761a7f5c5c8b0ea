"""A page that is made from the store: its document and its blocks.

To write a kind of page, write a module in `pages/` with a function
`pages(data: SiteData) -> Iterator[SitePage]` and add it to `KINDS` in `perfdb.site.build`. A page
has a name (its address), a title, one sentence about it, and a `body`: a `functools.partial` of a
function that makes its blocks. All that the function needs must be among the arguments of the
partial: the page is made again only when these, or the code, change. Blocks are HTML (`Markup`,
from a template or from `tables`), sections, tabs, code, downloads of a table's results, and links
to files of runs. Link to other documents with `templates.link` or `templates.to`; no page needs to
know its own address.

    def pages(data):
        yield SitePage("models/index", "Models", "3 models.", partial(_index, data.results))

    def _index(results):
        return [results_table("Models", results, ON_SYSTEM).html, Section("More", [paragraph("…")])]
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from markupsafe import Markup

from perfdb.site import addresses, cells
from perfdb.site.addresses import FINE_TUNING, TUNED, result_row, slug
from perfdb.site.columns import Profile
from perfdb.site.data import RunFile, SiteResult, digest_of
from perfdb.site.files import MARK
from perfdb.site.tables import results_table
from perfdb.site.templates import render, with_short_hashes
from perfdb.units import counted

LONGEST: Final = 160
"""Characters of the sentence about a page: about what a list of search results shows."""
MOST_NAMES: Final = 4
"""Names in the sentence about a page; of more it has their number."""
FRONT: Final = (
    "tags: [performance, benchmarks, throughput, gpu]",
    "categories: [reference]",
)


@dataclass(frozen=True)
class Code:
    """A text to copy, highlighted."""

    text: str
    language: str


@dataclass(frozen=True)
class Download:
    """Results of the table above, as files to download."""

    results: Sequence[SiteResult]

    @property
    def name(self) -> str:
        """What the results share: 'nemo-25.04-pretrain-dgx-h100'."""
        values = [
            {getattr(result, field) for result in self.results}
            for field in ("framework", "release", "task", "variant", "model", "system")
        ]
        named = [{FINE_TUNING} if it == set(TUNED) else it for it in values]
        words = [str(it.pop()) for it in named if len(it) == 1 and None not in it]
        return slug("-".join(map(slug, words))) if words else "results"


@dataclass(frozen=True)
class FileLinks:
    """Files of runs to download: as a list with their sizes, or one in a sentence."""

    files: Sequence[RunFile]
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Tab:
    """One tab of several."""

    name: str
    title: str
    blocks: "Sequence[Block]"


@dataclass(frozen=True)
class Tabs:
    """Tabs; those of one group are chosen together."""

    group: str
    tabs: Sequence[Tab]


@dataclass(frozen=True)
class Section:
    """A heading and what is below it."""

    title: str
    blocks: "Sequence[Block]"


@dataclass(frozen=True)
class IndexEntry:
    """What the search finds the page by."""

    words: str


@dataclass(frozen=True)
class AllDownloads:
    """The files of all results."""


StructuredBlock = Code | Download | FileLinks | Tabs | Section | IndexEntry | AllDownloads
Block = Markup | StructuredBlock
Body = partial[list[Block]]


@dataclass(frozen=True)
class SitePage:
    """A document that is made from the store.

    `below` are the pages that the navigation lists below it, `label` is what {ref} calls it;
    `has_contents` keeps the list of its headings at the right.
    """

    name: str
    title: str
    about: str
    body: Body
    below: Sequence[str] = ()
    label: str = ""
    has_contents: bool = False

    @property
    def text(self) -> str:
        """The MyST text: front matter, title, and the directive in place of the blocks."""
        aside = [] if self.has_contents else ["html_theme.sidebar_secondary.remove: true"]
        sentence, title = (
            with_short_hashes(" ".join(it.split())) for it in (self.about, self.title)
        )
        if len(sentence) > LONGEST:
            sentence = f"{sentence[: LONGEST - 1].rstrip()}…"
        about = f"description: {yaml_text(sentence)}"
        lines = ["---", MARK, about, *FRONT, *aside, "orphan: true", "---", ""]
        lines += [f"({self.label})="] if self.label else []
        lines += [f"# {myst(title)}", "", "```{perfdb-page}", "```", ""]
        if self.below:
            entries = [f"/{name}" for name in self.below]
            lines += ["```{toctree}", ":hidden:", "", *entries, "```", ""]
        return "\n".join(lines)


def key_of(body: Body) -> str:
    """The same as long as a body is made of the same."""
    known = (body.func.__qualname__, body.args, sorted(body.keywords.items()))
    return digest_of(known)


def offered(
    label: str, results: Sequence[SiteResult], profile: Profile, ids: Sequence[str] = ()
) -> list[Block]:
    """The table of some results by a profile, a list of the runs without figures, and downloads.

    `ids` are their anchors where these have others than everywhere. A table of runs has them all.
    """
    anchors = ids or ([""] * len(results) if profile.is_of_runs else list(map(result_row, results)))
    known = [*zip(results, anchors, strict=True)]
    aside = [] if profile.is_of_runs else [one for one in known if one[0].withheld]
    rows = [one for one in known if profile.is_of_runs or not one[0].withheld]
    made: list[Block] = []
    if rows:
        own = [anchor for _, anchor in rows] if ids else []
        made.append(results_table(label, [it for it, _ in rows], profile, own).html)
    if aside:
        made.append(render("no_figures", runs=[_without_figures(*one) for one in aside]))
    return [*made, Download(tuple(results))] if profile.is_offered else made


def _without_figures(result: SiteResult, anchor: str) -> dict[str, object]:
    """What the list of runs without figures says of one."""
    run_id, source = result.run_id, addresses.of_source(result.source_sha256)
    return {
        "id": anchor,
        "work": cells.work(result),
        "document": addresses.of_run(run_id) if run_id else source,
        "why": result.withheld_text,
        "which": cells.which(result),
        "flag": cells.flag_mark(result),
    }


def summary_of_results(results: Sequence[SiteResult]) -> str:
    """'39 published results', '1 measured result', '39 published and 2 measured results'."""
    measured = sum(one.is_measured for one in results)
    known = [(len(results) - measured, "published"), (measured, "measured")]
    *others, (count, kind) = [one for one in known if one[0]]
    words = [f"{number:,} {word}" for number, word in others]
    return " and ".join([*words, counted(count, f"{kind} result")])


def summary_of_names(names: Iterable[str]) -> str:
    """'A', 'A and B', 'A, B, C, D and 3 more': each once, in the order they come in."""
    known = list(dict.fromkeys(names))
    left = len(known) - MOST_NAMES
    parts = [*known[:MOST_NAMES], f"{left:,} more"] if left > 0 else known
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def no_data() -> Markup:
    """What a page shows while there are no results: how to get some."""
    return render("no_data")


def myst(words: str) -> str:
    """Any text as MyST that prints as that text, on one line: every sign is escaped."""
    return "".join(f"\\{it}" if it in _SIGNS else it for it in " ".join(words.split()))


_SIGNS: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


_NOT_IN_YAML: Final = re.compile("[<\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
"""What JSON leaves as it is, and YAML cannot hold; and what begins markup."""


def yaml_text(words: str) -> str:
    """Any text as YAML, on one line; nor does a reader that knows no YAML find markup there."""
    text = json.dumps(words, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)
