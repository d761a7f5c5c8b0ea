"""How many modules and functions of perfdb it takes to ingest one file, and how deep they call.

`python -m benchmarks.call_path FILE [OPTION]...` runs `perfdb ingest FILE OPTION...` into a new
store under a profile hook, and prints the modules, the functions and the deepest call of perfdb.
"""

import sys
import tempfile
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType

import perfdb

ROOT = str(Path(perfdb.__file__).parent)


def count(words: list[str]) -> tuple[int, int, int]:
    """The modules, the functions and the most frames of perfdb at once of `perfdb WORD...`."""
    from perfdb.cli import cli

    called: set[CodeType] = set()
    depth = deepest = 0

    def hook(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth, deepest
        if event not in ("call", "return") or not frame.f_code.co_filename.startswith(ROOT):
            return
        depth += 1 if event == "call" else -1
        deepest = max(deepest, depth)
        if frame.f_code.co_flags & CO_OPTIMIZED and not frame.f_code.co_name.startswith("<"):
            called.add(frame.f_code)  # no body of a module or class, no lambda or comprehension

    sys.setprofile(hook)
    try:
        cli(words, standalone_mode=False)
    finally:
        sys.setprofile(None)
    return len({code.co_filename for code in called}), len(called), deepest


def main(words: list[str]) -> None:
    """Ingest into a new store, and print the counts."""
    with tempfile.TemporaryDirectory() as folder:
        found = count(["ingest", "--db", str(Path(folder) / "perfdb.sqlite"), *words])
    print("{} modules, {} functions of perfdb, {} calls deep".format(*found))


if __name__ == "__main__":
    main(sys.argv[1:])
