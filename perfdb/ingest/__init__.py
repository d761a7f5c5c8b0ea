"""Read runs and published pages into the store: the one place where the parts meet."""

from perfdb.ingest.find import Source, find
from perfdb.ingest.load import Options, Report, ingest, preview, reason
from perfdb.ingest.read import STILL_RUNNING

__all__ = ["STILL_RUNNING", "Options", "Report", "Source", "find", "ingest", "preview", "reason"]
