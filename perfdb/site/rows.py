"""What rows are called, where their figures are believed for, and what stands beside them."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from perfdb.record import Finding
from perfdb.site import addresses
from perfdb.site.addresses import Address, slug
from perfdb.site.data import Result
from perfdb.site.words import FINE_TUNING, TUNED


def row_id(result: Result) -> str:
    """The name of a result's row, the same in every build and whichever run is shown of many."""
    known = (result.case_key, result.framework, result.release, result.container, result.origin)
    place = () if result.case_key else (result.source_sha256, result.source_line, result.run_id)
    return _row_id((*known, *place))


@lru_cache(maxsize=100_000)
def _row_id(known: tuple[object, ...]) -> str:
    """Several tables have the row, and each of its figures leads to it."""
    return addresses.hashed("row", known)


def run_id(result: Result) -> str:
    """The name of a run's row in a table of runs."""
    return f"run-{slug(result.run_id or '')}"


def offer_name(results: Sequence[Result]) -> str:
    """What a download of results is called: 'nemo-25.04-pretrain-dgx-h100', what they share."""
    shared = [
        {getattr(result, field) for result in results}
        for field in ("framework", "release", "task", "variant", "model", "system")
    ]
    said = [{FINE_TUNING} if values == set(TUNED) else values for values in shared]
    words = [str(values.pop()) for values in said if len(values) == 1 and None not in values]
    return "-".join(slug(word) for word in words) or "results"


def evidence(result: Result, address: Address) -> str:
    """The address of what a result's figures are believed for."""
    if result.run_id is not None:
        return f"{address(addresses.of_run(result.run_id))}#figures"
    return f"{address(addresses.of_source(result.source_sha256))}#{row_id(result)}"


def source_said(result: Result) -> str:
    """'data/published/dfm.md:74': the file that a result was read from, and the line in it.

    'run log-5f0c, job.log': where that does not say the run.
    """
    line = f":{result.source_line}" if result.source_line else ""
    run = f"run {result.run_id}, " if result.run_id and result.run_id not in result.source else ""
    return f"{run}{result.source}{line}"


def findings_said(found: Iterable[Finding]) -> str:
    """'few_steps (info), micro_batch (error)': the rules of an audit, and how grave each is."""
    return ", ".join(sorted({f"{it.rule} ({it.severity.value})" for it in found}))
