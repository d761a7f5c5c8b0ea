"""The releases that there are to choose from, and what comparisons and trends read of them."""

import dataclasses
import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from pydantic import ConfigDict
from sqlalchemy import Connection

from perfdb.audit.review import Entry, explained
from perfdb.compare.match import Comparison, comparison
from perfdb.compare.noise import MARGIN
from perfdb.compare.sides import marked
from perfdb.errors import Diagnostic, InputError, nearest
from perfdb.groups import grouped
from perfdb.queries import catalog
from perfdb.queries import results as queries
from perfdb.queries.scope import EVERY, Scope, spelled, within
from perfdb.record import Finding, Frozen, Origin, Release, Result
from perfdb.versions import is_numbered, stage_order


class KnownRelease(Frozen):
    """A release as `perfdb.queries.catalog` gives it.

    When it began is known only where that alone tells it from another one of the same place.
    """

    model_config = ConfigDict(extra="ignore")

    release_id: int
    framework: str
    release: str | None
    container: str | None
    first_at: datetime | None = None
    """When its first run was started; without runs, when it was read."""
    verified: str | None = None
    """The first date at which a file says that it was verified, as printed: '2026-08-18'."""
    first_line: int | None = None
    """The first line of a file that has a result of it."""

    @property
    def name(self) -> str:
        """'nemo 25.04'."""
        return Release(framework=self.framework, version=self.release).name

    @property
    def began(self) -> tuple[float, str, int]:
        """When it was run, verified or read first; what was read at once is ordered by line.

        A date without a time zone is in UTC; other words are no date.
        """
        known = [self.first_at.timestamp()] if self.first_at else []
        try:
            at = datetime.fromisoformat(self.verified or "")
            known.append((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
        except ValueError:
            pass
        return (min(known, default=0.0), self.container or "", self.first_line or 0)


@dataclass(frozen=True)
class Choice:
    """A name that a person can ask for, and the releases in the store that it means."""

    name: str
    framework: str
    version: str | None
    release_ids: tuple[int, ...]

    def overlaps(self, other: "Choice") -> bool:
        """Whether both have results in common, or are the same."""
        return self == other or not set(self.release_ids).isdisjoint(other.release_ids)


def choices(known: Iterable[KnownRelease]) -> tuple[Choice, ...]:
    """Every release by name, versions in their own order, 0.9 before 0.10, and commits by time.

    A version that was run in several containers is one choice for all of them, followed by one for
    each in the order of time, named 'nemo 25.04 [CONTAINER]'.
    """

    def order(one: KnownRelease) -> tuple[object, ...]:
        return (*_place(one), one.began, one.release_id)

    earliest = {one.release_id: one for one in sorted(known, key=lambda one: one.began)[::-1]}
    found = []
    for name, group in grouped(sorted(earliest.values(), key=order), lambda one: one.name).items():
        framework, version = group[0].framework, group[0].release
        found.append(Choice(name, framework, version, tuple(one.release_id for one in group)))
        boxes = grouped(group, lambda one: one.container or "no container")
        for box, some in boxes.items() if len(boxes) > 1 else ():
            ids = tuple(one.release_id for one in some)
            found.append(Choice(f"{name} [{box}]", framework, None, ids))
    return tuple(found)


def _place(one: KnownRelease) -> tuple[object, ...]:
    """What orders releases, but for when they began: framework and version."""
    return (one.framework, one.release is None, stage_order(one.release))


def in_order(choices: Iterable[Choice]) -> Mapping[int, str]:
    """What each release is called among those of its framework, in their order: '25.04', 'main'.

    A numbered version in several containers: '25.04 [CONTAINER]'. `choices` are as of `choices`.
    """
    found: dict[int, str] = {}
    numbered: set[int] = set()
    for choice in choices:
        if is_numbered(choice.version):
            numbered.update(choice.release_ids)
        name = choice.name.removeprefix(f"{choice.framework} ")
        found |= {one: name for one in choice.release_ids if one in numbered or one not in found}
    return found


def builds(choices: Iterable[Choice]) -> Mapping[int, int]:
    """The place of each release, by its number, among those that only a commit's hash tells apart.

    It is the `build` of `perfdb.versions.version_order`. `choices` are as of `choices`; the
    containers of a version share a place.
    """
    versions = [one for one in choices if one.version is not None]
    groups = grouped(versions, lambda one: (one.framework, stage_order(one.version))).values()
    return {
        number: place
        for group in groups
        for place, one in enumerate(group)
        for number in one.release_ids
    }


def named(text: str, known: Sequence[Choice]) -> Choice:
    """The choice that a text means: 'nemo 25.04', 'nemo@25.04', or '25.04' where one has it.

    Raises InputError that lists the known names.
    """
    name = text.strip()
    spelled = name.replace("@", " ", 1)
    found = (
        [choice for choice in known if choice.name == name]
        or [choice for choice in known if choice.name == spelled]
        or [choice for choice in known if choice.name.lower() == spelled.lower()]
        or [choice for choice in known if choice.version == name]
    )
    if len(found) == 1:
        return found[0]
    prefix = f"{spelled.lower()} "
    found = found or [choice for choice in known if choice.name.lower().startswith(prefix)]
    names = [choice.name for choice in known]
    message = f"no release {text!r}"
    if not known:
        remedy = "the store holds no results; fill it with `perfdb ingest`"
    elif found:
        message = f"{text!r} names no single release"
        remedy = f"say {' or '.join(shlex.quote(choice.name) for choice in found)}"
    else:
        remedy = nearest(spelled, names)
    raise InputError(Diagnostic("release", message, remedy=remedy))


Baselines = Mapping[str, Sequence[str]]
"""The names of baselines, each with that of a release of one framework or of several."""


def all_named(text: str, known: Sequence[Choice], baselines: Baselines) -> tuple[Choice, ...]:
    """The release that a text means, or those of a version or a baseline. Raises InputError."""
    if names := baselines.get(text.strip()):
        return tuple(named(one, known) for one in names)
    return tuple(it for it in known if it.version == text.strip()) or (named(text, known),)


def both_named(
    a: str,
    b: str,
    known: Sequence[Choice],
    frameworks: Sequence[str] = (),
    baselines: Baselines = MappingProxyType({}),
) -> tuple[tuple[Choice, Choice], ...]:
    """What two texts mean: two releases, or those of each framework that has such versions.

    Where a framework has only one of two versions, the other release is there without results. Of
    a baseline only the frameworks count that the other text means too.
    Raises InputError where a text means no release, where no framework has both, and where A is B
    or a part of it.
    """

    if baselines.keys().isdisjoint((a.strip(), b.strip())):
        found = _of_versions((a, b), known, frameworks)
    else:
        of_a, of_b = (
            {it.framework: it for it in all_named(text, known, baselines)} for text in (a, b)
        )
        shared = sorted(of_a.keys() & of_b.keys() & set(frameworks or of_a))
        found = [(of_a[name], of_b[name]) for name in shared]
        if not found:
            remedy = "see `perfdb baseline show`"
            message = f"{a!r} and {b!r} are of no framework in common"
            raise InputError(Diagnostic("release", message, remedy=remedy))
    for one, other in found:
        if one == other:
            remedy = "name two; `perfdb trend` has the runs of one"
            raise InputError(Diagnostic("release", f"A and B are both {one.name}", remedy=remedy))
        if one.overlaps(other):
            message = f"{one.name} and {other.name} have the same results in part"
            remedy = "name two releases, or two containers"
            raise InputError(Diagnostic("release", message, remedy=remedy))
    return tuple(found)


def _of_versions(
    texts: tuple[str, str], known: Sequence[Choice], frameworks: Sequence[str]
) -> list[tuple[Choice, Choice]]:
    """Two releases, or those of each framework that has such versions. Raises InputError."""
    a, b = texts

    def of_version(text: str) -> dict[str, Choice]:
        found = {choice.framework: choice for choice in known if choice.version == text.strip()}
        return {name: found[name] for name in frameworks if name in found} or found

    def without_results(name: str, text: str) -> Choice:
        release = Release(framework=name, version=text.strip())
        return Choice(release.name, name, release.version, ())

    of_a, of_b = of_version(a), of_version(b)
    if (len(of_a) > 1 or len(of_b) > 1) and of_a.keys() & of_b.keys():
        return [
            (of_a.get(name) or without_results(name, a), of_b.get(name) or without_results(name, b))
            for name in sorted(of_a.keys() | of_b.keys())
        ]
    return [(named(a, [*of_a.values()] or known), named(b, [*of_b.values()] or known))]


_ATTRIBUTES: Final = frozenset(one.name for one in dataclasses.fields(Result))


def known_releases(connection: Connection) -> tuple[Choice, ...]:
    """The releases that have results, as a person can name them.

    The results themselves are read only of releases that their versions do not put in order.
    """
    rows = connection.execute(catalog.releases_with_results()).mappings()
    known = {one.release_id: one for one in map(KnownRelease.model_validate, rows)}
    alike = [some for some in grouped(known.values(), _place).values() if len(some) > 1]
    if tied := [one.release_id for some in alike for one in some]:
        rows = connection.execute(catalog.all_releases(tied)).mappings()
        begun = sorted(map(KnownRelease.model_validate, rows), key=lambda one: one.began)
        known |= {one.release_id: one for one in reversed(begun)}
    return choices(known.values())


def release_ids(connection: Connection, name: str | None) -> tuple[int, ...] | None:
    """The releases in the store that a name means; None without one. Raises InputError."""
    return None if name is None else named(name, known_releases(connection)).release_ids


def scope_of(connection: Connection, release: str | None = None, **only: str | None) -> Scope:
    """The scope of --release and the options that `Scope` has. Raises InputError."""
    return Scope(**only, release_ids=release_ids(connection, release))


def results_of(connection: Connection, choice: Choice, only: Scope = EVERY) -> tuple[Result, ...]:
    """Every current result of the releases that a name means, narrowed to `only`.

    Raises InputError for a framework, system or model that the store does not have.
    """
    scope = replace(only, release_ids=choice.release_ids)
    asked = queries.current().where(queries.WHOLE)
    return tuple(queries.read(connection, within(connection, asked, scope)))


HISTORY: Final = 10
"""The releases before A that show the noise of its cases, and which was the best so far."""


def earlier(
    connection: Connection,
    known: Sequence[Choice],
    pair: tuple[Choice, Choice],
    only: Scope = EVERY,
) -> list[tuple[Result, ...]]:
    """The results of the numbered releases before A, B aside, the newest first.

    Of a result there is what verdicts read (`queries.compared`). `known` are in the order of
    `choices`.
    """
    a, b = pair
    numbered = [one for one in known if one.framework == a.framework and is_numbered(one.version)]
    places = [place for place, one in enumerate(numbered) if one.overlaps(a)]
    before = numbered[: places[0]] if places else numbered if not is_numbered(a.version) else []
    wanted = [one for one in before if not (one.overlaps(a) or one.overlaps(b))][-HISTORY:]
    ids = tuple(number for one in wanted for number in one.release_ids)
    if not ids:
        return []
    asked = queries.compared().where(queries.WHOLE)
    found = queries.read(connection, within(connection, asked, replace(only, release_ids=ids)))
    by_release = grouped(found, lambda one: one.release_id)
    return [
        tuple(it for number in one.release_ids for it in by_release.get(number, ()))
        for one in reversed(wanted)
    ]


@dataclass(frozen=True)
class Judging:
    """How two releases are judged.

    `wrong` are the results, by their number, that have errors which nobody accepts; `metric` is
    None for the first known of those preferred.
    """

    wrong: Collection[int] = ()
    metric: str | None = None
    margin: float = MARGIN


def compared(
    connection: Connection, pair: tuple[Choice, Choice], only: Scope, how: Judging
) -> Comparison:
    """Two releases that a person has named, with the releases before them as the baseline."""
    known = known_releases(connection)
    a, b = pair
    both = results_of(connection, replace(a, release_ids=a.release_ids + b.release_ids), only)
    of_a, of_b = (
        marked((it for it in both if it.release_id in one.release_ids), how.wrong) for one in pair
    )
    before = [
        tuple(one for one in some if one.result_id not in how.wrong)
        for some in earlier(connection, known, pair, only)
    ]
    return comparison(of_a, of_b, how.metric, before, how.margin)


def since(
    results: Iterable[Result], choices: Sequence[Choice], starts: Iterable[Choice]
) -> tuple[Result, ...]:
    """The results without those of numbered releases before the one its framework starts from."""
    place = {release_id: place for place, release_id in enumerate(in_order(choices))}
    first = {it.framework: min(map(place.__getitem__, it.release_ids)) for it in starts}
    return tuple(
        one
        for one in results
        if not is_numbered(one.release) or place[one.release_id] >= first.get(one.framework, 0)
    )


def of_rows(rows: Iterable[Mapping[str, object]]) -> tuple[Result, ...]:
    """Results from rows of `perfdb.queries.results.current`, as mappings by column."""
    make: Callable[..., Result] = Result
    return tuple(
        make(**{name: value for name, value in row.items() if name in _ATTRIBUTES}) for row in rows
    )


def open_errors(connection: Connection, known: Sequence[Entry]) -> frozenset[int]:
    """The results, by their number, in which the last audit found errors that nobody accepts.

    `known` are the findings that are accepted.
    """
    rows = connection.execute(queries.current_errors()).mappings()
    found = explained(map(Finding.model_validate, rows), known)
    return frozenset(it.result_id for it in found if it.result_id is not None and it.is_open_error)


def results_of_words(
    connection: Connection, words: Sequence[str], only: Scope
) -> tuple[Result, ...]:
    """The current results of the models or keys that were asked for, narrowed to `only`.

    Without a word they are all. Raises InputError for every word that means nothing in the store,
    and where nothing is left.
    """
    wanted = [spelled(word) for word in words]
    found = tuple(queries.read(connection, within(connection, queries.of_words(wanted), only)))
    lacking = [
        word
        for word, name in zip(words, wanted, strict=True)
        if not connection.execute(queries.of_words([name]).order_by(None).limit(1)).first()
    ]
    if lacking:
        names = connection.scalars(catalog.model_names()).all()
        raise InputError(_no_model(word, names) for word in lacking)
    if not found:
        raise InputError(_nothing_left(words, only))
    return found


def _no_model(word: str, names: Sequence[str]) -> Diagnostic:
    if not names:
        remedy = "the store holds no results; fill it with `perfdb ingest`"
    else:
        known = nearest(spelled(word), names)
        remedy = f"{known}{' Or' if known.endswith('?') else '; or'} use the beginning of a key"
    return Diagnostic("trend", f"no results of {word!r}", remedy=remedy)


def _nothing_left(words: Sequence[str], only: Scope) -> Diagnostic:
    if not only.options:
        return Diagnostic("trend", "no results", remedy="fill the store with `perfdb ingest`")
    asked = [", ".join(words)] if words else []
    for word, name in (("of", "framework"), ("on", "system")):
        if values := only.options.get(name):
            asked.append(f"{word} {' or '.join(values)}")
    remedy = f"leave out one of {', '.join(f'--{name}' for name in only.options)}"
    return Diagnostic("trend", f"no results of {' '.join(asked)}", remedy=remedy)


def versions(
    connection: Connection, choices: Sequence[Choice], origins: Iterable[Origin] = Origin
) -> Mapping[tuple[str, Origin], Sequence[str]]:
    """The releases of each framework that have results of each origin, in the order of `choices`.

    Unstated releases and rolling branches are left out, as they have no place in that order.
    """
    of_ids: dict[int, set[tuple[str, Origin]]] = defaultdict(set)
    for origin in origins:
        for row in connection.execute(catalog.releases_with_results(origin)).mappings():
            of_ids[row["release_id"]].add((row["framework"], origin))
    numbered = {
        one for choice in choices if is_numbered(choice.version) for one in choice.release_ids
    }
    found: dict[tuple[str, Origin], dict[str, None]] = defaultdict(dict)
    for number, name in in_order(choices).items():
        for key in of_ids[number] if number in numbered else ():
            found[key][name] = None
    return {key: list(names) for key, names in found.items()}


def is_key(word: str) -> bool:
    """Whether a word is the beginning of a key rather than the name of a model."""
    return re.fullmatch(rf"[0-9a-fA-F]{{{queries.KEY_LENGTH},64}}", word) is not None
