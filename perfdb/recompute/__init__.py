"""Recomputes figures from what is stored: to renew them, and to prove that they follow."""

from perfdb.queries.scope import Scope
from perfdb.recompute.figures import Asked, Change
from perfdb.recompute.revise import Changed, Left, Report, preview, recompute

__all__ = ["Asked", "Change", "Changed", "Left", "Report", "Scope", "preview", "recompute"]
