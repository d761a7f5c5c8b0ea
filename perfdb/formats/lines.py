"""The step lines of a log, taken out of its blocks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdb.formats.readings import Ints
from perfdb.formats.scan import LOOKAHEAD, Block


@dataclass(frozen=True, eq=False)
class Lines:
    """Step lines in a text: where each starts and ends, and its number.

    `limits`: up to where the lines behind may belong to a step.
    """

    text: bytes
    starts: Ints
    ends: Ints
    limits: Ints
    numbers: Ints

    @classmethod
    def of(cls, block: Block, marker: bytes) -> "Lines":
        """The lines of a block that hold a marker."""
        hits = block.lines_with(marker)
        limits = np.minimum(hits.ends + LOOKAHEAD, len(block.text))
        return cls(block.text, hits.starts, hits.ends, limits, hits.numbers)

    @classmethod
    def joined(cls, parts: Sequence["Lines"]) -> "Lines":
        """Lines of several texts, of which there is one at least."""
        if len(parts) == 1:
            return parts[0]
        shifts = np.cumsum([0, *(len(part.text) for part in parts)])
        moved = [part.moved(shift) for part, shift in zip(parts, shifts, strict=False)]
        return cls(
            b"".join(part.text for part in parts),
            np.concatenate([part.starts for part in moved]),
            np.concatenate([part.ends for part in moved]),
            np.concatenate([part.limits for part in moved]),
            np.concatenate([part.numbers for part in moved]),
        )

    def moved(self, shift: Ints) -> "Lines":
        """The same lines at other places of the text."""
        starts, ends, limits = self.starts + shift, self.ends + shift, self.limits + shift
        return Lines(self.text, starts, ends, limits, self.numbers)

    def apart(self) -> "Lines":
        """The same lines with no more text than they need."""
        spans = zip(self.starts.tolist(), self.limits.tolist(), strict=True)
        texts = [self.text[start:limit] for start, limit in spans]
        new = np.cumsum([0, *map(len, texts)])[:-1]
        return replace(self.moved(new - self.starts), text=b"".join(texts))

    def __len__(self) -> int:
        return len(self.starts)

    def line(self, place: int) -> bytes:
        """A line with its line break."""
        return self.text[self.starts[place] : self.ends[place]]

    def following(self, place: int) -> bytes:
        """What stands behind a line."""
        return self.text[self.ends[place] : self.limits[place]]
