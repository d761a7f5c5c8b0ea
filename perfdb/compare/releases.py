"""Which releases there are to choose from, and which one a name means."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import ConfigDict

from perfdb.errors import Diagnostic, InputError, suggestion
from perfdb.groups import grouped
from perfdb.record import Frozen, Release
from perfdb.versions import Precedence, is_numbered, stage_order


class KnownRelease(Frozen):
    """A release as `perfdb.queries.catalog.all_releases` gives it."""

    model_config = ConfigDict(extra="ignore")

    release_id: int
    framework: str
    release: str | None
    container: str | None
    first_at: datetime | None = None
    """When its first run was started; of what does not say, when it was read."""
    verified: str | None = None
    """The first date at which a file says that it was verified, as printed: '2026-08-18'."""
    first_line: int | None = None
    """The first line of a file that has a result of it."""

    @property
    def name(self) -> str:
        """'nemo 25.04'."""
        return Release(framework=self.framework, version=self.release).name


@dataclass(frozen=True)
class Choice:
    """What a person can ask to compare: a name, and the releases in the store it stands for."""

    name: str
    framework: str
    version: str | None
    release_ids: tuple[int, ...]

    def overlaps(self, other: "Choice") -> bool:
        """Whether results of this choice are results of the other, too: of a part, or of itself."""
        return self == other or not set(self.release_ids).isdisjoint(other.release_ids)


def choices(known: Iterable[KnownRelease]) -> tuple[Choice, ...]:
    """Every release by name, versions in their own order, 0.9 before 0.10, and commits by time.

    A version that was run in several containers is one choice for all of them, followed by one for
    each in the order of time, named 'nemo 25.04 [CONTAINER]'.
    """
    earliest = {one.release_id: one for one in sorted(known, key=_began, reverse=True)}
    by_name = grouped(sorted(earliest.values(), key=_order), lambda one: one.name)
    return tuple(choice for name, group in by_name.items() for choice in _of_name(name, group))


def _of_name(name: str, group: Sequence[KnownRelease]) -> list[Choice]:
    framework, version = group[0].framework, group[0].release
    whole = Choice(name, framework, version, _ids(group))
    boxes = grouped(group, lambda one: one.container or "no container").items()
    boxed = [Choice(f"{name} [{box}]", framework, None, _ids(some)) for box, some in boxes]
    return [whole, *boxed] if len(boxed) > 1 else [whole]


def _ids(group: Iterable[KnownRelease]) -> tuple[int, ...]:
    return tuple(one.release_id for one in group)


def in_order(choices: Iterable[Choice]) -> Mapping[int, str]:
    """What each release is called among those of its framework, in their order: '25.04', 'main'.

    Of a numbered version in several containers: '25.04 [CONTAINER]'. `choices` are as of `choices`.
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

    Versions are in the order of `perfdb.versions.version_order` with it. `choices` are as of
    `choices`; the containers of a version share a place.
    """
    versions = [one for one in choices if one.version is not None]
    alike = grouped(versions, lambda one: (one.framework, stage_order(one.version))).values()
    return {
        number: place
        for some in alike
        for place, one in enumerate(some)
        for number in one.release_ids
    }


def _order(one: KnownRelease) -> Precedence:
    return (
        one.framework,
        one.release is None,
        stage_order(one.release),
        _began(one),
        one.release_id,
    )


def _began(one: KnownRelease) -> tuple[float, str, int]:
    """When it was run, verified or read first; what was read at once is in the order of lines."""
    known = [at.timestamp() for at in (one.first_at, _date(one.verified)) if at]
    return (min(known, default=0.0), one.container or "", one.first_line or 0)


def _date(text: str | None) -> datetime | None:
    """A date as files print it, without a time zone in UTC; None for other words."""
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def named(text: str, known: Sequence[Choice]) -> Choice:
    """The choice that a text means: 'nemo 25.04', 'nemo@25.04', or '25.04' where one has it.

    Raises InputError that lists the known names.
    """
    given = text.strip()
    spelled = given.replace("@", " ", 1)
    found = (
        [choice for choice in known if choice.name == given]
        or [choice for choice in known if choice.name == spelled]
        or [choice for choice in known if choice.name.lower() == spelled.lower()]
        or [choice for choice in known if choice.version == given]
    )
    if len(found) == 1:
        return found[0]
    of_framework = [
        choice for choice in known if choice.name.lower().startswith(f"{spelled.lower()} ")
    ]
    raise InputError(_not_one(text, found or of_framework, known))


def both_named(
    a: str, b: str, known: Sequence[Choice], framework: str | None = None
) -> tuple[tuple[Choice, Choice], ...]:
    """What two texts mean: two releases, or those of each framework that has such versions.

    Of a framework that has one of two versions alone the other release is there, without results.
    Raises InputError where a text means none, where no framework has both, and where A is B or a
    part of it.
    """
    of_a, of_b = (_of_version(text, known, framework) for text in (a, b))
    several = len(of_a) > 1 or len(of_b) > 1
    if several and of_a.keys() & of_b.keys():
        names = sorted(of_a.keys() | of_b.keys())
        found = [(of_a.get(one, _none(one, a)), of_b.get(one, _none(one, b))) for one in names]
    else:
        found = [(named(a, [*of_a.values()] or known), named(b, [*of_b.values()] or known))]
    if alike := [one for one, other in found if one == other]:
        remedy = "name two; `perfdb trend` has the runs of one"
        raise InputError(Diagnostic("release", f"A and B are both {alike[0].name}", remedy=remedy))
    if parts := [(one.name, other.name) for one, other in found if one.overlaps(other)]:
        message = "{} and {} have the same results in part".format(*parts[0])
        raise InputError(
            Diagnostic("release", message, remedy="name two releases, or two containers")
        )
    return tuple(found)


def _of_version(text: str, known: Sequence[Choice], framework: str | None) -> dict[str, Choice]:
    """The releases of a version by their framework, of the one that is asked for if it has it."""
    found = {choice.framework: choice for choice in known if choice.version == text.strip()}
    return {framework: found[framework]} if framework and framework in found else found


def _none(framework: str, version: str) -> Choice:
    release = Release(framework=framework, version=version.strip())
    return Choice(release.name, framework, release.version, ())


def _not_one(text: str, found: Sequence[Choice], known: Sequence[Choice]) -> Diagnostic:
    if not known:
        remedy = "the store holds no results; fill it with `perfdb ingest`"
        return Diagnostic("release", f"no release {text!r}", remedy=remedy)
    if found:
        meant = " or ".join(shlex.quote(choice.name) for choice in found)
        return Diagnostic("release", f"{text!r} names no single release", remedy=f"say {meant}")
    names = [choice.name for choice in known]
    hint, listed = suggestion(text, names), f"known: {', '.join(sorted(names))}"
    remedy = listed if hint == listed else f"{hint} {listed}"
    return Diagnostic("release", f"no release {text!r}", remedy=remedy)
