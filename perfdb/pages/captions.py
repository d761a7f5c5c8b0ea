"""Captions that stand below their tables: `Table 1: BF16` of the table above, not the next one."""

import re
from collections.abc import Sequence
from typing import Final

from perfdb.pages.base import Grid, Line, Piece

_CAPTION: Final = re.compile(r"\W*table\s+[0-9]+\s*[:.–—-]", re.IGNORECASE)


def put_above(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces of a page, with its captions above their tables where it has them below.

    It has where each numbered caption follows a table, and one of them stands right above none.
    """
    captions = [at for at, piece in enumerate(pieces) if _is_caption(piece)]
    tables = {at for at, piece in enumerate(pieces) if isinstance(piece, Grid)}
    follow = all(at - 1 in tables for at in captions)
    if not follow or all(at + 1 in tables for at in captions):
        return list(pieces)
    moved = list(pieces)
    for at in captions:
        moved[at - 1 : at + 1] = [pieces[at], pieces[at - 1]]
    return moved


def _is_caption(piece: Piece) -> bool:
    return isinstance(piece, Line) and not piece.listed and bool(_CAPTION.match(piece.text))
