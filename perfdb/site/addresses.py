"""Which document shows what: names that stay the same from build to build."""

import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from perfdb.site.templates import SCHEME, to

if TYPE_CHECKING:
    from perfdb.record import Result

PERFORMANCE = "performance/index"
AUDIT = "performance/audit"
CHANGELOG = "performance/changelog"
CHANGES = "changes/index"
COVERAGE = "performance/coverage"
CPU_TESTS = "performance/cpu-tests"
COMPARED_SYSTEMS = "performance/systems"
MODELS = "models/index"
RECIPES = "recipes/index"
RUNS = "runs/index"
SCALING = "scaling/index"
SYSTEMS = "systems/index"
DICTIONARY = "reference/data"

FOLDERS: Final = (
    "changes", "models", "performance", "recipes", "runs", "scaling", "sources", "systems",
)  # fmt: skip
"""Where pages are made. Pages written by hand may be there too and are left alone."""

UNATTRIBUTED: Final = "unattributed"
"""The version of a release that nobody stated, in addresses."""
TUNED: Final = ("sft", "lora")
"""Tasks that are kinds of fine-tuning."""
FINE_TUNING: Final = "fine-tuning"
"""The section of several fine-tuning tasks in one table."""

MOST_CHARACTERS: Final = 150
"""Characters of a part of an address."""
_TAKEN: Final = frozenset({"index", UNATTRIBUTED})


@lru_cache(maxsize=10_000)
def slug(name: str) -> str:
    """A name as a part of an address; one that has to change gets a hash, to stay unique.

    A long one is cut: no file can have a name of more than 255 bytes, and endings are added to it.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")
    is_kept = plain == name and name not in _TAKEN and len(name) <= MOST_CHARACTERS
    return name if is_kept else _with_hash(plain, name)


@lru_cache(maxsize=10_000)
def _page(name: str) -> str:
    """A name as a part of the address of a page; one with capitals gets a hash, too.

    Labels of Sphinx are without case, and so are the names of files on some disks.
    """
    is_plain = slug(name) == name and name != name.lower()
    return _with_hash(name, name) if is_plain else slug(name)


def _with_hash(plain: str, name: str) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{plain[: MOST_CHARACTERS - 9]}-{digest}".lstrip("-")


def _release(framework: str, version: str | None) -> str:
    return f"{_page(framework)}/{_page(version) if version else UNATTRIBUTED}"


@lru_cache(maxsize=100_000)
def hashed(kind: str, known: tuple[object, ...]) -> str:
    """The anchor of a part of a page, the same in every build: made of what identifies it."""
    return f"{kind}-{hashlib.sha256(repr(known).encode()).hexdigest()[:12]}"


def of_release(framework: str, version: str | None) -> str:
    return f"performance/{_release(framework, version)}"


def label(framework: str, version: str | None) -> str:
    """What {ref} calls the page of a release: 'ref-performance-nemo-25.04'."""
    return f"ref-performance-{_release(framework, version).replace('/', '-')}"


def of_changes(framework: str, after: str | None = None) -> str:
    """The page that compares a release of a framework with the one before; None: the newest."""
    return f"changes/{_page(framework)}{f'/{_page(after)}' if after else ''}"


def of_model(name: str) -> str:
    return f"models/{_page(name)}"


def of_system(name: str) -> str:
    return f"systems/{_page(name)}"


def of_scaling(framework: str, version: str | None, system: str) -> str:
    """The page of a release over numbers of GPUs of a system."""
    return f"scaling/{_release(framework, version)}/{_page(system)}"


def of_recipe(name: str) -> str:
    return f"recipes/{_page(name)}"


def of_run(run_id: str) -> str:
    return f"runs/{slug(run_id)}"


def of_source(sha256: str) -> str:
    """The page that shows a published page as it was read, line by line."""
    return f"sources/{sha256[:16]}"


def of_coverage(framework: str, version: str | None) -> str:
    """The page of how far the published rows of a framework's release have come."""
    return f"{COVERAGE}/{_release(framework, version)}"


def of_audit(framework: str, version: str | None) -> str:
    """The page of what the audit found in a framework's release."""
    return f"{AUDIT}/{_release(framework, version)}"


def audit_entry(framework: str, version: str | None, anchor: str) -> str:
    """The link target of a result's entry on the page of findings in its release."""
    return to(of_audit(framework, version), anchor)


def tab(framework: str, version: str | None, system: str, row: str = "") -> str:
    """The link target of a release's page with the tab of a system chosen, and of a row in it."""
    anchor = f"#{row}" if row else ""
    return f"{to(of_release(framework, version))}?system={slug(system)}{anchor}"


def table_row(result: "Result") -> str:
    """The link target of a result's row on its release's page, which opens the tabs around it."""
    return to(of_release(result.framework, result.release), result_row(result))


def of_site(site: str, target: str) -> str:
    """A link target at the address of a site: 'https://perf.example.org/runs/x.html#row'."""
    document, sign, anchor = target.removeprefix(SCHEME).partition("#")
    return f"{site.rstrip('/')}/{document}.html{sign}{anchor}"


def result_row(result: "Result") -> str:
    """The anchor of a result's row, whichever run is shown of several."""
    known = (result.case_key, result.framework, result.release, result.container, result.origin)
    place = () if result.case_key else (result.source_sha256, result.source_line, result.run_id)
    return hashed("row", (*known, *place))


def drawer_anchor(row: str = "") -> str:
    """The anchor in the drawer of a row on the page that it was read from; of a run without one.

    It is within what is collapsed: browsers open the drawer for it.
    """
    return f"reproduce-{row}" if row else "reproduce"


def run_row(result: "Result") -> str:
    return f"run-{slug(result.run_id or '')}"
