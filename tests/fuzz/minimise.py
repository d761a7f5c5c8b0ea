"""Makes an input that shows a fault smaller: `python -m tests.fuzz.minimise TARGET FILE`."""

import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.targets import checked


def fault(name: str, content: bytes) -> str | None:
    """The exception that an input makes a target raise, and where; None for none."""
    try:
        checked(name, content)
    except Exception as error:  # noqa: BLE001  any exception is the fault that is looked for
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {place.filename}:{place.lineno}"
    return None


def minimised(content: bytes, shows: Callable[[bytes], bool]) -> bytes:
    """A small part of an input that shows the same: pieces are left out, ever smaller ones."""
    size = max(len(content) // 2, 1)
    while size:
        start = 0
        while start < len(content):
            without = content[:start] + content[start + size :]
            if shows(without):
                content = without
            else:
                start += size
        size //= 2
    return content


def main() -> None:
    """Each smaller input is written at once, so that what takes too long can be stopped."""
    name, path = sys.argv[1], Path(sys.argv[2])
    whole = path.read_bytes()
    known = fault(name, whole)

    def shows(content: bytes) -> bool:
        same = fault(name, content) == known
        if same:
            path.write_bytes(content)
        return same

    if known:
        minimised(whole, shows)


if __name__ == "__main__":
    main()
