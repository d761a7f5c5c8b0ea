"""Read runs, published pages and logs into the store: the one place where the parts meet."""

from perfdb.ingest.find import Source, find
from perfdb.ingest.load import Options, Report, ingest, preview, reason
from perfdb.ingest.logs import LogOptions
from perfdb.ingest.read import STILL_RUNNING

__all__ = [
    "STILL_RUNNING", "LogOptions", "Options", "Report", "Source", "find", "ingest", "preview",
    "reason",
]  # fmt: skip
