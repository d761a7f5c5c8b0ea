"""`python -m tests.oracle record|check [SECTION…]`: write the outputs, or compare with them.

A difference is accepted by an entry of tests/data/oracle/reviewed.yml: `file` (a glob), `reason`
and either `whole: true` or `lines`, regular expressions that each changed line is searched for.
"""

import argparse
import difflib
import fnmatch
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from ruamel.yaml import YAML

from tests.oracle.sections import NEED_SHARED, SECTIONS
from tests.oracle.shell import ROOT, SHARED, staged

RECORDED = ROOT / "tests" / "data" / "oracle"
SHOWN = 12
"""How many lines of a file's difference are printed, unless --full."""


@dataclass(frozen=True)
class Reviewed:
    """A difference that was looked at and is meant."""

    file: str
    reason: str
    lines: tuple[str, ...] = ()
    whole: bool = False

    def accepts(self, file: str, line: str | None) -> bool:
        """Whether it accepts a changed line of a file; of None, that the file came or went."""
        if not fnmatch.fnmatch(file, self.file):
            return False
        return self.whole or (line is not None and any(re.search(p, line) for p in self.lines))


def reviewed() -> list[Reviewed]:
    """Those of the file, in its order."""
    entries = YAML(typ="safe").load(RECORDED / "reviewed.yml") or []
    return [Reviewed(**{**one, "lines": tuple(one.get("lines", ()))}) for one in entries]


def produced(sections: Sequence[str]) -> dict[str, list[str]]:
    """The files of sections, by name."""
    made: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="perfdb-oracle-") as folder:
        shell = staged(Path(folder))
        for section in sections:
            begun = time.perf_counter()
            made |= {name: lines for name, lines in SECTIONS[section](shell) if lines}
            click.echo(f"{section}: {time.perf_counter() - begun:.1f} s", err=True)
    return made


def recorded(sections: Sequence[str]) -> dict[str, list[str]]:
    """The files of sections as they were recorded."""
    return {
        str(path.relative_to(RECORDED)): path.read_text().split("\n")[:-1]
        for section in sections
        for path in sorted((RECORDED / "out" / section).glob("*"))
    }


def record(sections: Sequence[str]) -> int:
    """Write the files of sections anew."""
    made = produced(sections)
    for section in sections:
        shutil.rmtree(RECORDED / "out" / section, ignore_errors=True)
    for name, lines in made.items():
        path = RECORDED / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))
    click.echo(f"{len(made)} files recorded")
    return 0


def check(sections: Sequence[str], shown: int = SHOWN) -> int:
    """Print every difference that nobody has accepted; 1 where there is one."""
    before = recorded(sections)
    after = {f"out/{name}": [part for line in lines for part in line.split("\n")]
             for name, lines in produced(sections).items()}  # fmt: skip
    entries, used, bad = reviewed(), set(), 0
    for name in sorted({*before, *after}):
        file = name.removeprefix("out/")
        pair = before.get(name, []), after.get(name, [])
        diff = list(difflib.unified_diff(*pair, n=0, lineterm=""))[2:]
        changed = [line for line in diff if not line.startswith("@@")]
        whole = name not in before or name not in after
        left = []
        for line in [None] if whole else changed:
            entry = next((one for one in entries if one.accepts(file, line)), None)
            used.add(entry)
            left += [] if entry else changed if line is None else [line]
        if left:
            bad += 1
            title = "new" if name not in before else "gone" if name not in after else "differs"
            click.echo(f"\n=== {file} {title}: {len(left)} lines")
            lines = readable(left)[: shown if title == "differs" else 1]
            click.echo("\n".join(line[:400] for line in lines))
    for entry in entries:
        if entry not in used and any(fnmatch.fnmatch(f"{one}/", f"{entry.file.split('/')[0]}/") for one in sections):  # noqa: E501  # fmt: skip
            click.echo(f"reviewed.yml: nothing to accept for {entry.file}: {entry.reason}")
    click.echo(
        f"\n{len(after)} files, {bad} differ" if bad else f"{len(after)} files, all as recorded"
    )
    return 1 if bad else 0


def readable(lines: list[str]) -> list[str]:
    """A line that became another one as its beginning and the cells that differ; others whole."""
    before = [line for line in lines if line.startswith("-")]
    after = [line for line in lines if line.startswith("+")]
    if len(before) != len(after):
        return lines
    shown = []
    for old, new in zip(before, after, strict=True):
        cells = [re.split(r"; | \| |, (?=\")", line[1:]) for line in (old, new)]
        gone = [f"-{cell}" for cell in cells[0] if cell not in cells[1]]
        come = [f"+{cell}" for cell in cells[1] if cell not in cells[0]]
        shown += [f" {old[1:90]} …", *gone, *come] if len(old) > 120 else [old, new]
    return shown


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("what", choices=["record", "check"])
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--full", action="store_true", help="print all lines that differ")
    chosen = parser.parse_args()
    if unknown := set(chosen.sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(unknown)}")
    sections = [name for name in SECTIONS if name in (chosen.sections or SECTIONS)]
    if not (SHARED / "corpus").is_dir():
        click.echo(f"skipped, no {SHARED}: {', '.join(NEED_SHARED)}")
        sections = [name for name in sections if name not in NEED_SHARED]
    if chosen.what == "record":
        return record(sections)
    return check(sections, sys.maxsize if chosen.full else SHOWN)


if __name__ == "__main__":
    sys.exit(main())
