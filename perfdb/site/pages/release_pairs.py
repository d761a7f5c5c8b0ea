"""Each release against the newest before it that shares work: which pairs, and their outcome."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from perfdb import catalog
from perfdb.catalog import titles
from perfdb.compare import Comparison, Verdict, comparison, release_notes, release_report
from perfdb.compare.comparability import why_nothing
from perfdb.compare.match import Earlier
from perfdb.compare.release_notes import ReleaseNotes
from perfdb.compare.release_report import CHANGES, ReleaseHistory, ReleaseReport
from perfdb.compare.releases import HISTORY
from perfdb.groups import grouped
from perfdb.record import Finding
from perfdb.site import addresses
from perfdb.site.data import Audited, SiteResult, digest_of
from perfdb.site.grouping import is_on_gpus, release_title
from perfdb.site.kept import KeptPairs
from perfdb.versions import is_rolling, version_order

MOST_PAIRS: Final = 5
"""Comparisons of a framework that have a page; `perfdb compare` makes any other."""

Releases = Mapping[str, Sequence[SiteResult]]
"""The results of each release of a framework by its version, the newest first."""


@dataclass(frozen=True, kw_only=True)
class ReleasePair:
    """A release of a framework against the newest before it that shares work.

    `skipped` are those between, each with the reason why it is left out; `histories` are of the
    largest changes, by the keys of their rows; `findings` are of the later one.
    """

    framework: str
    before: str
    after: str
    comparison: Comparison
    skipped: tuple[tuple[str, str], ...] = ()
    is_newest: bool = False
    histories: Mapping[str, ReleaseHistory] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    notes: ReleaseNotes = field(default_factory=ReleaseNotes)

    @property
    def document(self) -> str:
        """The name of its page: that of the newest release is the framework's own."""
        return addresses.of_changes(self.framework, None if self.is_newest else self.after)

    @property
    def report(self) -> ReleaseReport:
        """What it says, as `perfdb report` does."""
        before, after = (release_title(self.framework, it) for it in (self.before, self.after))
        return ReleaseReport(before, after, self.comparison, self.findings, self.notes)

    @property
    def is_on_gpus(self) -> bool:
        found = self.comparison
        sides = (*(it.b for it in found.matched), *found.only_a, *found.only_b)
        return any(catalog.has_gpus(side.shown.system) for side in sides)

    @property
    def title(self) -> str:
        """'NeMo Framework: 25.02 → 25.04'."""
        return f"{titles.framework(self.framework)}: {self.before} → {self.after}"


def compared(current: Iterable[SiteResult], kept: KeptPairs) -> list[ReleasePair]:
    """The comparisons of every framework, that of the newest release first.

    `kept`: those of an earlier build. It then holds these.
    """
    made: KeptPairs = {}
    of_releases = [one for one in current if one.release is not None]
    by_framework = grouped(of_releases, lambda one: one.framework)
    for framework in sorted(by_framework, key=titles.framework):
        every = grouped(by_framework[framework], lambda one: one.release or "")
        releases = {name: list(filter(is_on_gpus, some)) or some for name, some in every.items()}
        newest_first = sorted(
            releases.items(), key=lambda it: version_order(it[0], it[1][0].build), reverse=True
        )
        for inputs in _inputs(framework, dict(newest_first)):
            made[inputs.key] = kept.get(inputs.key) or _compared(inputs)
    kept.clear()
    kept.update(made)
    return list(made.values())


@dataclass(frozen=True)
class _PairInputs:
    """What a comparison is made of: the results of its two releases, of those between, which it
    skips, and of those before."""

    framework: str
    before: str
    after: str
    is_newest: bool
    releases: Releases

    @cached_property
    def key(self) -> str:
        """The same for the same."""
        return digest_of(self)


def _inputs(framework: str, releases: Releases) -> Iterator[_PairInputs]:
    """Each release with the newest earlier one that shares work with it, the newest pair first.

    The newest has its comparison even where it shares work with none, and so has a rolling branch.
    """
    count = 0
    work = {name: {one.workload_key for one in some} for name, some in releases.items()}
    for after, earlier, is_newest in _candidates(releases):
        sharing = next((name for name in earlier if work[name] & work[after]), None)
        is_left_out = count >= MOST_PAIRS or not (sharing or is_newest)
        if not earlier or (is_left_out and not is_rolling(after)):
            continue
        before = sharing or earlier[0]
        place = earlier.index(before) + 1
        older = [name for name in earlier[place:] if not is_rolling(name)][:HISTORY]
        needed = (after, *earlier[:place], *older)
        count += 1
        yield _PairInputs(framework, before, after, is_newest, {it: releases[it] for it in needed})


def _compared(inputs: _PairInputs) -> ReleasePair:
    framework, before, after = inputs.framework, inputs.before, inputs.after
    releases, names = inputs.releases, [*inputs.releases]
    place = names.index(before)
    skipped = []
    for name in names[1:place]:
        ends = (release_title(framework, name), release_title(framework, after))
        reason = why_nothing(*ends, comparison(releases[name], releases[after]))
        skipped.append((name, reason))
    known = {one.workload_key for name in (before, after) for one in releases[name]}
    history = Earlier(
        [
            [one for one in releases[name] if one.workload_key in known]
            for name in names[place + 1 :]
        ]
    )
    found = ReleasePair(
        framework=framework,
        before=before,
        after=after,
        comparison=comparison(releases[before], releases[after], earlier=history),
        skipped=tuple(skipped),
        is_newest=inputs.is_newest,
    )
    return replace(found, histories=_histories(found, history))


def _histories(pair: ReleasePair, earlier: Earlier) -> dict[str, ReleaseHistory]:
    """Those of the largest changes, by the keys of their rows."""
    largest = (it for name in CHANGES for it in release_report.largest(pair.report, name))
    return {
        release_report.key_of(it): release_report.history(it, pair.comparison, earlier)
        for it in largest
    }


def told(pair: ReleasePair, audited: Iterable[Audited], folder: Path | None) -> ReleasePair:
    """A comparison with what the audit found in its later release, and what people say of it.

    Raises InputError for notes on what it does not have.
    """
    of_b = (it for it in audited if it.result.framework == pair.framework)
    found = [one for it in of_b if it.result.release == pair.after for one in it.findings]
    path = folder and release_notes.path_of(folder, pair.framework, pair.after)
    file = release_notes.of_file(path) if path and path.is_file() else None
    merged = release_report.noted(file, pair.comparison)
    return replace(pair, findings=tuple(found), notes=merged)


def _candidates(releases: Releases) -> Iterator[tuple[str, Sequence[str], bool]]:
    """Each release, those that it may be compared with, and whether it is the newest.

    A release without a result on a GPU is neither the newest nor what others are compared with,
    unless there is nothing else. Rolling branches come last: they are no release's predecessor.
    """
    on_gpus = [name for name, some in releases.items() if any(map(is_on_gpus, some))]
    numbered = [name for name in releases if not is_rolling(name)]
    first = [name for name in numbered if name in on_gpus] or numbered
    newest = next((name for name in on_gpus or releases if not is_rolling(name)), None)
    for after in [*first, *(name for name in numbered if name not in first)]:
        among = first if after in first else numbered
        yield after, among[among.index(after) + 1 :], after == newest
    for after in releases:
        if is_rolling(after):
            yield after, first if after in on_gpus else numbered, False


def tally(pair: ReleasePair) -> Mapping[Verdict, int]:
    """How many matches have each verdict, in the order of these."""
    counts = Counter(match.judgement.verdict for match in pair.comparison.matched)
    return {one: counts[one] for one in Verdict}


def not_judged(pair: ReleasePair) -> str:
    """'4 not judged (open errors)'; empty for none."""
    count = tally(pair)[Verdict.NOT_JUDGED]
    return f"{count:,} {Verdict.NOT_JUDGED} (open errors)" if count else ""


def tally_text(pair: ReleasePair) -> str:
    """'35 compared: 4 faster, 2 slower, 29 same; 4 not judged (open errors)'."""
    judged = {it: count for it, count in tally(pair).items() if it != Verdict.NOT_JUDGED}
    verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in judged.items() if count)
    compared = f"{sum(judged.values()):,} compared{f': {verdicts}' if verdicts else ''}"
    return "; ".join(filter(None, (compared, not_judged(pair))))
