"""Model FLOPs by architecture family. To add one: write its module, add it to the table."""

from perfdb.catalog.base import Model
from perfdb.flops import gpt, moe
from perfdb.flops.base import Convention, FlopsFormula
from perfdb.flops.conventions import CONVENTIONS, DEFAULT

__all__ = ["CONVENTIONS", "DEFAULT", "FORMULAS", "FORMULA_VERSION", "flops_per_token"]

FORMULAS: dict[str, FlopsFormula] = {gpt.FAMILY: gpt, moe.FAMILY: moe}

FORMULA_VERSION = 1
"""Stored with every derived figure; raised when any formula's value changes."""


def flops_per_token(
    model: Model, sequence_length: int, convention: Convention = DEFAULT
) -> float | None:
    """Model FLOPs per token of a training step; None where no formula covers the family."""
    formula = FORMULAS.get(model.family)
    return formula.flops_per_token(model, sequence_length, convention) if formula else None
