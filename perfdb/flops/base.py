"""What a FLOPs formula is given and what it answers."""

from dataclasses import dataclass
from typing import Protocol

from perfdb.catalog.base import Model


@dataclass(frozen=True)
class Convention:
    """What is counted. Releases differ in it, so every figure says which it follows."""

    name: str
    causal_attention: bool
    """Count only the half of the attention matrix that a causal mask leaves."""
    logits: bool
    """Count the projection to the vocabulary."""
    meaning: str


class FlopsFormula(Protocol):
    """One architecture family's arithmetic."""

    @property
    def FAMILY(self) -> str:
        """The catalogue's word for the family."""
        ...

    def flops_per_token(self, model: Model, sequence_length: int, convention: Convention) -> float:
        """Model FLOPs of one training step (forward and backward) per token."""
        ...
