"""The Sphinx extension: `extensions = ["perfdb.site"]` makes pages from the store."""

from perfdb.site.extension import setup

__all__ = ["setup"]
