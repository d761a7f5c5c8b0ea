"""The step lines of a log, taken out of its blocks."""

from collections.abc import Sequence
from dataclasses import dataclass

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
    def of_texts(
        cls, texts: Sequence[bytes], sizes: Sequence[int], numbers: Sequence[int]
    ) -> "Lines":
        """Lines of these sizes in bytes, each with what stands behind it."""
        limits = np.cumsum([len(text) for text in texts], dtype=np.int64)
        starts = np.concatenate(([0], limits[:-1]))
        ends = starts + np.array(sizes, np.int64)
        return cls(b"".join(texts), starts, ends, limits, np.array(numbers, np.int64))

    def __len__(self) -> int:
        return len(self.starts)

    def line(self, place: int) -> bytes:
        """A line with its line break."""
        return self.text[self.starts[place] : self.ends[place]]

    def following(self, place: int) -> bytes:
        """What stands behind a line."""
        return self.text[self.ends[place] : self.limits[place]]


class KeptLines:
    """Step lines of several blocks, with no more of their text than they need."""

    def __init__(self) -> None:
        self._texts: list[bytes] = []
        self._sizes: list[int] = []
        self._numbers: list[int] = []

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, lines: Lines) -> None:
        """Keep the lines of another block."""
        text, starts, ends = lines.text, lines.starts.tolist(), lines.ends.tolist()
        spans = zip(starts, lines.limits.tolist(), strict=True)
        self._texts += [text[start:limit] for start, limit in spans]
        self._sizes += [end - start for start, end in zip(starts, ends, strict=True)]
        self._numbers += lines.numbers.tolist()

    def taken(self) -> Lines:
        """All that was kept, of which nothing is kept any longer."""
        lines = Lines.of_texts(self._texts, self._sizes, self._numbers)
        self._texts, self._sizes, self._numbers = [], [], []
        return lines
