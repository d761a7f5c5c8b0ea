"""Which document shows what: the names that generated pages have."""

from collections.abc import Callable

from perfdb.site.words import UNATTRIBUTED, slug

Address = Callable[[str], str]
"""From a document's name to its address, as seen from the page that links to it."""

PERFORMANCE = "performance/index"
RUNS = "runs/index"
AUDIT = "performance/audit"


def of_release(framework: str, version: str | None) -> str:
    """The page of a framework's release."""
    return f"performance/{slug(framework)}/{slug(version or UNATTRIBUTED)}"


def of_run(run_id: str) -> str:
    """The page of a run."""
    return f"runs/{slug(run_id)}"


def of_source(sha256: str) -> str:
    """The page that shows a published page as it was read, line by line."""
    return f"sources/{sha256[:16]}"


def of_entry(anchor: str, address: Address) -> str:
    """The address of a result's entry on the page of findings."""
    return f"{address(AUDIT)}#{anchor}"
