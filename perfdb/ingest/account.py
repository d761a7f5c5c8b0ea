"""All that is said of a log: by itself, by what lies beside it, and by the command line."""

from collections import ChainMap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Final

from perfdb import attribute, disputed
from perfdb.attribute import Attributed, Missing, Said, Sayer
from perfdb.errors import Diagnostic
from perfdb.formats import ParsedLog, experiment
from perfdb.hardware import is_secret
from perfdb.ingest.companions import Companion
from perfdb.ingest.words import Words
from perfdb.record import PartialCase

_REREAD: Final = "leave the option out: the log is right, or of another run"
_LIKELY: Final = (
    "Megatron-Bridge prints such iteration lines, too: --format megatron_bridge says that it did"
)


@dataclass(frozen=True)
class Account:
    """A log, what lies beside it and the words of the command line; and what it is of by them."""

    where: str
    log: ParsedLog
    beside: Sequence[Companion]
    words: Words

    @cached_property
    def companions(self) -> Sequence[Companion]:
        """The files beside it that may speak of its run, by it and by its experiment's name."""
        of_run = [self.log, *(name.said for name in self._names())]
        return [
            one for one in self.beside if all(attribute.accompanies(one.said, by) for by in of_run)
        ]

    @property
    def of_others(self) -> Iterator[Diagnostic]:
        """Which files beside it are of another run by the experiment's name alone."""
        near = [one for one in self.beside if attribute.accompanies(one.said, self.log)]
        for one in near:
            for name in () if one in self.companions else self._names():
                file = Sayer(one.path.name, one.said)
                for told in disputed.disagreements(name, Said(), [file]):
                    yield Diagnostic(self.where, f"{told}: nothing of the file is taken")

    @property
    def told(self) -> ParsedLog:
        """The log with the environment that it and the files beside it say its run had."""
        sayers = (self.log, *(one.said for one in self.companions))
        said = ChainMap(*(dict(one.environment) for one in sayers))
        known = {name: value for name, value in sorted(said.items()) if not is_secret(name)}
        return replace(self.log, environment=known)

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """What the files beside it say of its figures."""
        return tuple(note for one in self.companions for note in one.said.notes)

    @property
    def beside_it(self) -> tuple[str, ...]:
        """The paths of these files, but of those whose notes name them."""
        return tuple(str(one.path) for one in self.companions if not one.said.notes)

    @cached_property
    def of(self) -> Attributed | Missing:
        """What it is of, its release as the store spells it, or what is missing to know that."""
        if isinstance(self._said, Missing):
            return self._said
        asked = self.words.said.release or self.words.said.version
        release = self.words.spellings.of(self._said.release, asked)
        return replace(self._said, release=release)

    @property
    def not_to_be_mixed(self) -> tuple[Diagnostic, ...]:
        """What --set says instead of something that the log's step times follow from."""
        differing = disputed.contradictions(self.log, self.words.said)
        return tuple(
            Diagnostic(self.where, f"{said}; its step times follow from {field}", remedy=_REREAD)
            for field, said in differing
            if field in self.log.timed_by
        )

    def remarks(self) -> Iterator[Diagnostic]:
        """What was read and is not taken, and which release holds."""
        said, sayers = self.words.said, self._sayers
        yield from self._doubts()
        yield from self.of_others
        against = (told for _, told in disputed.contradictions(self.log, said, sayers))
        log = Sayer("the log", self.log)
        for told in chain(disputed.disagreements(log, said, sayers), against):
            yield Diagnostic(self.where, told)
        for told in disputed.untaken(self.log, said, sayers):
            yield Diagnostic(self.where, told, remedy="--set insists on it")
        if other := attribute.other_release(self.log, said, sayers):
            remedy = None if said.release else f"--set release={said.version} insists on it"
            yield Diagnostic(self.where, other, remedy=remedy)
        yield from self._taken_for()
        if isinstance(self._said, Attributed) and isinstance(self.of, Attributed):
            if sizes := disputed.shape(self.log, self.of.case.model):
                yield Diagnostic(self.where, sizes)
            for news in self.words.spellings.news(self._said.release, self.of.release):
                yield Diagnostic(self.where, news)

    def _doubts(self) -> Iterator[Diagnostic]:
        files = ((str(one.path), one.said) for one in self.companions)
        for where, one in ((self.where, self.log), *files):
            if told := disputed.doubts(one, self.words.said):
                yield Diagnostic(where, told, remedy="--set says it")

    def _taken_for(self) -> Iterator[Diagnostic]:
        """The framework, where neither anything that is said nor --format tells it."""
        companions = [one.said for one in self._sayers]
        likely = attribute.likely_framework(self.log, self.words.said, companions)
        if likely and not self.words.format:
            message = f"nothing says its framework: {likely} is taken"
            yield Diagnostic(self.where, message, remedy=_LIKELY)

    @cached_property
    def _said(self) -> Attributed | Missing:
        return attribute.attributed(self.log, [one.said for one in self._sayers], self.words.said)

    @cached_property
    def _sayers(self) -> Sequence[Sayer]:
        files = (Sayer(one.path.name, one.said) for one in self.companions)
        return [*self._names(), *files, *self._sizes()]

    def _names(self) -> Iterator[Sayer]:
        """What the experiment's name says: that is what ran; a launcher's notes may be others."""
        nodes = experiment.nodes_of_path(self.where)
        yield from self._named("the experiment's name", experiment.of_path(self.where), nodes)
        yield from self._named("the file's name", experiment.golden_values(self.where))

    def _sizes(self) -> Iterator[Sayer]:
        """The sizes in a name that somebody gave, which counts where nothing else says them."""
        if not experiment.of_path(self.where):
            yield from self._named("the path", experiment.sizes_of_path(self.where))

    def _named(
        self, name: str, said: PartialCase | None, num_nodes: int | None = None
    ) -> Iterator[Sayer]:
        sayer = Sayer(name, ParsedLog(said or PartialCase(), num_nodes=num_nodes))
        if said and attribute.accompanies(sayer.said, self.log):
            yield sayer
