"""Where results, releases and findings are on the site: targets of links, anchors and titles."""

from perfdb.catalog import titles
from perfdb.record import Result
from perfdb.site import addresses
from perfdb.site.templates import to


def audit_entry(framework: str, version: str | None, anchor: str) -> str:
    """The link target of a result's entry on the page of findings in its release."""
    return to(addresses.of_audit(framework, version), anchor)


def tab(framework: str, version: str | None, system: str, row: str = "") -> str:
    """The link target of a release's page with the tab of a system chosen, and of a row in it."""
    anchor = f"#{row}" if row else ""
    return f"{to(addresses.of_release(framework, version))}?system={addresses.slug(system)}{anchor}"


def table_row(result: Result) -> str:
    """The link target of a result's row on its release's page, which opens the tabs around it."""
    return to(addresses.of_release(result.framework, result.release), result_row(result))


def result_row(result: Result) -> str:
    """The anchor of a result's row, whichever run is shown of several."""
    known = (result.case_key, result.framework, result.release, result.container, result.origin)
    place = () if result.case_key else (result.source_sha256, result.source_line, result.run_id)
    return addresses.hashed("row", (*known, *place))


def run_row(result: Result) -> str:
    """The anchor of a run's row in a table of runs."""
    return f"run-{addresses.slug(result.run_id or '')}"


def release_title(framework: str, version: str | None) -> str:
    """'NeMo Framework 25.04'; a release whose version nobody stated is unattributed."""
    return f"{titles.framework(framework)} {version or f'({addresses.UNATTRIBUTED})'}"


def section_title(task: str, variant: str | None = None) -> str:
    """'Pre-training', or 'Megatron-Core pre-training' where a release has several variants."""
    title = "Fine-tuning" if task == addresses.FINE_TUNING else titles.task(task)
    title = f"Fine-tuning ({title})" if task in addresses.TUNED else title
    return f"{title}: {titles.framework(variant)}" if variant else title
