"""Which releases there are to choose from, and which one a name means."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import ConfigDict

from perfdb.errors import Diagnostic, InputError, suggestion
from perfdb.groups import grouped
from perfdb.record import Frozen, Release
from perfdb.versions import is_numbered, stage_order


class KnownRelease(Frozen):
    """A release as `perfdb.queries.catalog.all_releases` gives it."""

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
        version = (one.release is None, stage_order(one.release))
        return (one.framework, *version, one.began, one.release_id)

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
        hint, listed = suggestion(text, names), f"known: {', '.join(sorted(names))}"
        remedy = listed if hint == listed else f"{hint} {listed}"
    raise InputError(Diagnostic("release", message, remedy=remedy))


def both_named(
    a: str, b: str, known: Sequence[Choice], framework: str | None = None
) -> tuple[tuple[Choice, Choice], ...]:
    """What two texts mean: two releases, or those of each framework that has such versions.

    Where a framework has only one of two versions, the other release is there without results.
    Raises InputError where a text means no release, where no framework has both, and where A is B
    or a part of it.
    """

    def of_version(text: str) -> dict[str, Choice]:
        found = {choice.framework: choice for choice in known if choice.version == text.strip()}
        return {framework: found[framework]} if framework and framework in found else found

    def without_results(name: str, text: str) -> Choice:
        release = Release(framework=name, version=text.strip())
        return Choice(release.name, name, release.version, ())

    of_a, of_b = of_version(a), of_version(b)
    if (len(of_a) > 1 or len(of_b) > 1) and of_a.keys() & of_b.keys():
        found = [
            (of_a.get(name) or without_results(name, a), of_b.get(name) or without_results(name, b))
            for name in sorted(of_a.keys() | of_b.keys())
        ]
    else:
        found = [(named(a, [*of_a.values()] or known), named(b, [*of_b.values()] or known))]
    for one, other in found:
        if one == other:
            remedy = "name two; `perfdb trend` has the runs of one"
            raise InputError(Diagnostic("release", f"A and B are both {one.name}", remedy=remedy))
        if one.overlaps(other):
            message = f"{one.name} and {other.name} have the same results in part"
            remedy = "name two releases, or two containers"
            raise InputError(Diagnostic("release", message, remedy=remedy))
    return tuple(found)
