"""Read runs, published pages and logs into the store.

`pipeline` joins the parts: `find` lists the sources, `runs`, `logs` and `pages` read them (`unpack`
unpacks them first, `attribution` states what a log is of), `store` puts what was read into the
store, and `report` counts what became of it.
"""

from perfdb.ingest.find import Source, find
from perfdb.ingest.options import LogOptions, Options
from perfdb.ingest.pipeline import ingest, preview
from perfdb.ingest.report import Change, Report
from perfdb.ingest.withdraw import restore, withdraw

__all__ = [
    "Change", "LogOptions", "Options", "Report", "Source", "find", "ingest", "preview",
    "restore", "withdraw",
]  # fmt: skip
