"""Which document shows what: the names that generated pages have."""

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

Address = Callable[[str], str]
"""From a document's name to its address, as seen from the page that links to it."""

PERFORMANCE = "performance/index"
ARCHIVE = "performance/archive"
AUDIT = "performance/audit"
CHANGELOG = "performance/changelog"
CHANGES = "changes/index"
MODELS = "models/index"
RECIPES = "recipes/index"
RUNS = "runs/index"
SCALING = "scaling/index"
SYSTEMS = "systems/index"

OVERVIEW = "overview"
"""The landing page's data, whatever document it is shown on."""
RELEASES = "releases"
"""The data that says which releases there are."""

UNATTRIBUTED: Final = "unattributed"
"""What is there of a release whose version nobody stated."""

_TAKEN: Final = frozenset({"index", UNATTRIBUTED})
_VERSION: Final = re.compile(r"v?\d|[^-]+$")
"""What a version is told by behind a hyphen: it begins with a number, or is one word."""


@lru_cache(maxsize=10_000)
def slug(name: str) -> str:
    """A name as a part of an address; one that has to change gets a hash, to stay unique."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")
    return name if plain == name and name not in _TAKEN else _with_hash(plain, name)


@lru_cache(maxsize=10_000)
def _page(name: str) -> str:
    """A name as a part of the address of a page; one with capitals gets a hash, too.

    Labels of Sphinx are without case, and so are the names of files on some disks.
    """
    own = slug(name)
    return own if own != name or name == name.lower() else _with_hash(name, name)


def _with_hash(plain: str, name: str) -> str:
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}".lstrip("-")


def _release(framework: str, version: str | None) -> str:
    return f"{_page(framework)}/{_page(version) if version else UNATTRIBUTED}"


def hashed(kind: str, known: tuple[object, ...]) -> str:
    """What a part of a page is called, the same in every build: by what it is known by."""
    return f"{kind}-{hashlib.sha256(repr(known).encode()).hexdigest()[:12]}"


def of_release(framework: str, version: str | None) -> str:
    """The page of a framework's release."""
    return f"performance/{_release(framework, version)}"


def label(framework: str, version: str | None) -> str:
    """What {ref} calls the page of a release: 'ref-performance-nemo-25.04'.

    'ref-performance-nemo/rl-0.4' where the first could be that of another framework, too.
    """
    framework, version = _release(framework, version).split("/")
    is_told = _VERSION.match(version) and not re.search(r"-v?\d", framework)
    return f"ref-performance-{framework}{'-' if is_told else '/'}{version}"


def of_changes(framework: str, after: str | None = None) -> str:
    """The page that compares a release of a framework with the one before; None: the newest."""
    return f"changes/{_page(framework)}{f'/{_page(after)}' if after else ''}"


def of_model(name: str) -> str:
    """The page of a model."""
    return f"models/{_page(name)}"


def of_system(name: str) -> str:
    """The page of a system."""
    return f"systems/{_page(name)}"


def of_scaling(framework: str, version: str | None, system: str) -> str:
    """The page of a release over numbers of GPUs of a system."""
    return f"scaling/{_release(framework, version)}/{_page(system)}"


def of_recipe(name: str) -> str:
    """The page of a recipe."""
    return f"recipes/{_page(name)}"


def of_run(run_id: str) -> str:
    """The page of a run."""
    return f"runs/{slug(run_id)}"


def of_source(sha256: str) -> str:
    """The page that shows a published page as it was read, line by line."""
    return f"sources/{sha256[:16]}"


def of_audit(framework: str, version: str | None) -> str:
    """The page of what the audit found in a framework's release."""
    return f"{AUDIT}/{_release(framework, version)}"


def of_entry(framework: str, version: str | None, anchor: str, address: Address) -> str:
    """The address of a result's entry on the page of findings in its release."""
    return f"{address(of_audit(framework, version))}#{anchor}"


def of_tab(framework: str, version: str | None, system: str, address: Address) -> str:
    """The address of a release's page with the tab of a system chosen."""
    return f"{address(of_release(framework, version))}?system={slug(system)}"


def of_row(framework: str, version: str | None, row: str, address: Address) -> str:
    """The address of a row on its release's page, which opens the tabs that it stands in."""
    return f"{address(of_release(framework, version))}#{row}"
