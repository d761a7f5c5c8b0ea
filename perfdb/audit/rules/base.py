"""What an audit rule is: the rows of one release in, remarks out."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from perfdb.audit.subject import Remark, Subject


class Rule(Protocol):
    """One way in which numbers can contradict one another."""

    @property
    def NAME(self) -> str:
        """The rule's name in findings and acknowledgements."""
        ...

    @property
    def MEANING(self) -> str:
        """What it looks for, in a sentence."""
        ...

    def check(self, rows: Sequence[Subject]) -> Iterator[Remark]:
        """Remarks on the rows of one release and origin; none of them is withheld."""
        ...
