"""The hash of what is said, by which cases, releases, rows and runs are told apart."""

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache

_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def content_hash(fields: Mapping[str, object]) -> str:
    """SHA-256 over the canonical JSON of the fields that say something.

    Unknown and empty fields are left out, so a field added to a later version changes no old hash.
    """
    said = {name: value for name, value in fields.items() if value not in (None, [], {}, "")}
    return hashlib.sha256(_canonical(said).encode()).hexdigest()


@lru_cache(maxsize=4096)
def of_document(document: str) -> str:
    """The content hash of a JSON document; the same cases and releases come again and again."""
    return content_hash(json.loads(document))
