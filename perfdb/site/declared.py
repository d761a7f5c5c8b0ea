"""Tables of a release, wherever a page declares them: empty until the store has the results.

`{perfdb-table}` is one table, or one tab for each system or model; `{perfdb-release-page}` is a
whole page, a section for each task. Pages that are made from the store are declared in the same
way; a page written by hand at the address of one of them takes its place.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, Final, get_args

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes

from perfdb import catalog
from perfdb.catalog import titles
from perfdb.errors import suggestion
from perfdb.site import addresses, markup, profiles, releases, tables
from perfdb.site.addresses import UNATTRIBUTED, slug
from perfdb.site.base import SiteDirective
from perfdb.site.data import ReleasePage, Result, Tab
from perfdb.site.grouping import Grouping, sections, tabs
from perfdb.site.markup import Html, tag
from perfdb.site.profile import Profile
from perfdb.site.releases import Releases
from perfdb.site.words import release_title, section_title

OPTIONS: Final = ("framework", "release", "task", "system", "group-by", "profile")

GROUPINGS: Final[Sequence[Grouping]] = get_args(Grouping)


@dataclass(frozen=True)
class Declared:
    """Which results a page declares, and how it shows them. None: all, or as the release does."""

    framework: str
    release: str | None
    task: str | None = None
    system: str | None = None
    group_by: Grouping | None = None
    profile: str | None = None

    def chosen(self, results: Iterable[Result]) -> list[Result]:
        """Those of a release's results that are declared."""
        return [
            one
            for one in results
            if self.task in (None, one.task) and self.system in (None, one.system)
        ]

    @property
    def title(self) -> str:
        """'NeMo Framework 25.07, Fine-tuning (LoRA), DGX-H100'."""
        known = (
            release_title(self.framework, self.release),
            section_title(self.task, None) if self.task else None,
            titles.system(self.system) if self.system else None,
        )
        return ", ".join(filter(None, known))


class ReleaseDirective(SiteDirective):
    """Results of a release: of the one that is declared, or of that which the page is made of."""

    option_spec: ClassVar = dict.fromkeys(OPTIONS, directives.unchanged_required)

    def asked(self) -> tuple[Declared, ReleasePage | None]:
        """What is declared, and the release's data; None where the store has no such release."""
        if not self.options:
            page = self.data(self.env.docname, ReleasePage)
            return Declared(page.framework, page.release), page
        known = self.data(addresses.RELEASES, Releases)
        problems = self._problems(known)
        if problems:
            raise self.error(f"{self.name}: {'; '.join(problems)}")
        declared = self._declared()
        if (declared.framework, declared.release) not in known.names:
            return declared, None
        name = addresses.of_release(declared.framework, declared.release)
        return declared, self.data(name, ReleasePage)

    def _declared(self) -> Declared:
        release = self.options["release"]
        return Declared(
            framework=self.options["framework"],
            release=None if release == UNATTRIBUTED else release,
            task=self.options.get("task"),
            system=self.options.get("system"),
            group_by=next((one for one in GROUPINGS if one == self.options.get("group-by")), None),
            profile=self.options.get("profile"),
        )

    def _problems(self, known: Releases) -> list[str]:
        """Everything that is wrong with the options."""
        allowed: dict[str, Collection[str]] = {
            "framework": sorted({*titles.FRAMEWORKS, *(framework for framework, _ in known.names)}),
            "task": list(titles.TASKS),
            "system": sorted({*catalog.systems(), *known.systems}),
            "group-by": GROUPINGS,
            "profile": list(profiles.NAMED),
        }
        missing = [name for name in ("framework", "release") if name not in self.options]
        wrong = [
            f":{name}: there is no {self.options[name]!r}; "
            f"{suggestion(self.options[name], allowed[name])}"
            for name in allowed
            if name in self.options and self.options[name] not in allowed[name]
        ]
        return [*(f":{name}: is missing" for name in missing), *wrong]

    def table(self, label: str, results: Sequence[Result], declared: Declared) -> Html:
        """A table with the columns that are declared, or those that the release prints."""
        own = tables.of_results(results)
        profile = profiles.NAMED[declared.profile] if declared.profile else own
        if declared.group_by == "model":
            profile = _by_system(profile)
        made = tables.results_table(f"{label} results", results, profile, cache(self.address))
        return markup.table(replace(made, ids=list(map(self._anchor, made.ids))))

    def _anchor(self, row: str) -> str:
        """What a row is called on this page: as everywhere, but for one that it has already."""
        seen = self.env.temp_data.setdefault("perfdb-rows", Counter())
        assert isinstance(seen, Counter)
        seen[row] += 1
        return row if seen[row] == 1 else f"{row}-{seen[row]}"

    def tab_set(
        self, given: Sequence[Tab], declared: Declared, group_by: Grouping, of: str
    ) -> nodes.Node:
        """A tab for each; they share a group, so that choosing one chooses it everywhere.

        `of` is what all of them hold: readers hear it before the name of a tab's table.
        """
        tab_set = _component("tab-set")
        for tab in given:
            label = nodes.rubric(tab.title, tab.title, classes=["sd-tab-label"])
            label["sync_id"], label["sync_group"] = slug(tab.name), group_by
            content = _component("tab-content")
            content += self.raw(self.table(f"{of}, {tab.title}", tab.results, declared))
            item = _component("tab-item")
            item += [label, content]
            tab_set += item
        return tab_set

    def empty(self, declared: Declared) -> list[nodes.Node]:
        """What stands where results will be."""
        text = (
            f"There are no results yet of {declared.title}. They appear here when they are read "
            "into the store and the site is built again."
        )
        return self.raw(tag("p", text, class_="perf-empty"))


class TableDirective(ReleaseDirective):
    """A table of a release's results, or a tab for each system or model."""

    def run(self) -> list[nodes.Node]:
        """The table, the tabs, or that there is nothing yet."""
        declared, page = self.asked()
        results = declared.chosen(page.results) if page else []
        if not results:
            return self.empty(declared)
        if declared.group_by is None:
            return self.raw(self.table(declared.title, results, declared))
        group_by = declared.group_by
        return [self.tab_set(tabs(results, group_by), declared, group_by, declared.title)]


class ReleasePageDirective(ReleaseDirective):
    """All of a release: what its labels mean, and a section of tabs for each task."""

    def run(self) -> list[nodes.Node]:
        """The head and the sections, or that there is nothing yet."""
        declared, page = self.asked()
        results = declared.chosen(page.results) if page else []
        if page is None or not results:
            return self.empty(declared)
        made = self.raw(releases.head(page, self.address))
        if page.document == self.env.docname:
            made += _index_entry(page)
        group_by = declared.group_by or "system"
        for one in sections(results, group_by):
            title = section_title(one.task, one.variant)
            section = nodes.section("", nodes.title(title, title), names=[title.lower()])
            self.state.document.note_implicit_target(section, section)
            section += self.tab_set(one.tabs, declared, group_by, title)
            made.append(section)
        return made


def _index_entry(page: ReleasePage) -> Iterator[nodes.Node]:
    """The version of a release, and below it in the index that of which framework.

    The search leads there: it passes over words of digits alone, and '25.07' is two of them.
    """
    if page.release is not None:
        said = f"{page.release}; {page.framework} {page.release}"
        yield addnodes.index(entries=[("single", said, "", "main", None)])


def _by_system(profile: Profile) -> Profile:
    """The profile of rows of a model, which their systems tell apart and are called by."""
    own = {column.fields: column for column in profile.columns}
    system, model = (own.pop(one.fields) for one in (profiles.SYSTEM, profiles.MODEL))
    first = (replace(system, shown="always"), replace(model, shown="varies"))
    return replace(profile, columns=(*first, *own.values()))


def _component(name: str) -> nodes.container:
    """A component of sphinx-design, as its own directives make it."""
    return nodes.container(is_div=True, design_component=name, classes=[f"sd-{name}"])
