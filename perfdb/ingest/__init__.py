"""Read runs, published pages and logs into the store.

`find` lists the sources, `runs`, `logs` and `pages` read them (`archives` and `compression` unpack
them first, `recognition` finds a log's format, `attribution` what it is of), `store` puts what was
read into the store, and `pipeline` does all of it.
"""

from perfdb.ingest.changes import Change
from perfdb.ingest.find import Source, find
from perfdb.ingest.options import LogOptions, Options
from perfdb.ingest.pipeline import ingest, preview
from perfdb.ingest.report import Report
from perfdb.ingest.withdraw import restore, withdraw

__all__ = [
    "Change", "LogOptions", "Options", "Report", "Source", "find", "ingest", "preview",
    "restore", "withdraw",
]  # fmt: skip
