"""Captions that stand below their tables: `Table 1: BF16` of the table above, not the next one."""

import re
from collections.abc import Sequence
from typing import Final

from perfdb.pages.base import Enter, Grid, Leave, Line, Piece

_CAPTION: Final = re.compile(r"\W*table\s+[0-9]+\s*[:.–—-]", re.IGNORECASE)
_BOXED: Final = 3
"""Pieces of a table that stands in a box."""


def put_above(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces of a page, with its captions above their tables where it has them below.

    It has where each numbered caption follows a table, and one of them stands right above none.
    """
    captions = [at for at, piece in enumerate(pieces) if _is_caption(piece)]
    begins = [_table_before(pieces, at) for at in captions]
    if None in begins or all(_is_table(pieces[at + 1 :]) for at in captions):
        return list(pieces)
    moved = list(pieces)
    for first, at in zip(begins, captions, strict=True):
        moved[first : at + 1] = [pieces[at], *pieces[first:at]]
    return moved


def _table_before(pieces: Sequence[Piece], at: int) -> int | None:
    """Where the table begins that ends right before a place; None where none does."""
    begins = (at - size for size in (1, _BOXED) if at >= size)
    return next((it for it in begins if _is_table(pieces[it:at])), None)


def _is_table(pieces: Sequence[Piece]) -> bool:
    """Whether pieces begin with a table, be it alone in a box without a label."""
    match pieces:
        case [Grid(), *_] | [Enter(label=""), Grid(), Leave(), *_]:
            return True
        case _:
            return False


def _is_caption(piece: Piece) -> bool:
    return isinstance(piece, Line) and not piece.listed and bool(_CAPTION.match(piece.text))
