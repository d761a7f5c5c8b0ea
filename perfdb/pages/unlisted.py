"""Names of models and machines in titles and lines, also of those that the catalogue lacks."""

import re

from perfdb.pages.outline import Said

_SIZED = re.compile(
    r"[a-z].*(?<![0-9.])[0-9]+(?:\.[0-9]+)?[BMT]\b(?!\s+tok)|\A[0-9.]+[BMT]\Z", re.I
)
_MACHINE = re.compile(
    r"\b(?:[a-z]{1,4}[0-9]+[a-z]*\.(?:[0-9]*x?large|metal)|(?:rtx|gtx|geforce|quadro|radeon|instinct)\b"
    r"|(?:trn|inf)[0-9]|a[234]x?-[a-z]+gpu|standard_n[cd]|bm\.gpu)",
    re.IGNORECASE,
)
"""Types of machines that clouds rent out, and GPUs that are in no system here."""
_GENERATION = re.compile(r"\b(?:ampere|hopper|blackwell|rubin)\b", re.IGNORECASE)
"""Has GPUs that only some of the rows below may be of."""
_STATED = re.compile(
    r"(?:instance|node|cluster|machine|hardware|platform|gpus?|accelerators?)(?: type)?\s*:", re.I
)


def is_model(said: Said) -> bool:
    """Whether a title names a model by its size: `Falcon 40B`, but not `15T tokens`."""
    return said.titled and _SIZED.search(said.text) is not None


def is_of_others(words: str, model: str | None) -> bool:
    """Whether words name machines, or a model where none is known; few rows may be of them."""
    sized = None if model else _SIZED.search(words)
    return bool(sized or _MACHINE.search(words) or _GENERATION.search(words))


def is_machine(said: Said) -> bool:
    """Whether a title or a statement names a machine: `p5en.48xlarge`, `GPU: RTX PRO 6000`."""
    stated = said.titled or _STATED.match(said.text)
    return bool(stated) and _MACHINE.search(said.text) is not None
