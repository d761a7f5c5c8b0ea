"""Figures made again of what is stored: to renew them, and to prove that they follow from it."""

from perfdb.recompute.figures import Asked, Change
from perfdb.recompute.revise import Changed, Report, Scope, preview, recompute

__all__ = ["Asked", "Change", "Changed", "Report", "Scope", "preview", "recompute"]
