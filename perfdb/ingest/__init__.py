"""Read runs, published pages and logs into the store: the one place where the parts meet."""

from perfdb.ingest.find import Source, find
from perfdb.ingest.load import Options, ingest, preview
from perfdb.ingest.planned import Change
from perfdb.ingest.report import Report
from perfdb.ingest.shown import Shown
from perfdb.ingest.withdraw import restore, withdraw
from perfdb.ingest.words import LogOptions

__all__ = [
    "Change", "LogOptions", "Options", "Report", "Shown", "Source", "find", "ingest", "preview",
    "restore", "withdraw",
]  # fmt: skip
