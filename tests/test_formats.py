"""Every log format: what it reads, what it refuses and why, and that it leaves others' files be."""

import math
from collections import Counter
from pathlib import Path

import pytest
import yaml

from perfdb.formats import FORMATS, ParsedLog

DATA = Path(__file__).parent / "data" / "formats"
GOLDEN = {"good": ".yml", "bad": ".txt"}


def files(kind: str) -> list[Path]:
    """The files of a kind; beside each stands its golden file, with one more suffix."""
    everything = set(DATA.glob(f"*/{kind}/*"))
    return sorted(path for path in everything if not golden(path) & everything)


def golden(path: Path) -> set[Path]:
    """The file whose golden file this one would be."""
    suffix = GOLDEN[path.parent.name]
    return {path.with_suffix("")} if path.suffix == suffix else set()


def parsed(path: Path) -> tuple[ParsedLog, ...]:
    return FORMATS[path.parents[1].name].parse(path.name, [path.read_bytes()])


def plain(value: object) -> object:
    """Numbers to nine figures, as golden files hold them; NaN as a word, which equals itself."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.9g}")
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def said(log: ParsedLog) -> object:
    """All that a log says, without what it does not say."""
    fields = {
        "configuration": log.configuration.model_dump(mode="json", exclude_unset=True),
        "framework_version": log.framework_version,
        "container": log.container,
        "environment": dict(log.environment),
        "gpu_memory_bytes": log.gpu_memory_bytes,
        "num_nodes": log.num_nodes,
        "planned_steps": log.planned_steps,
        "emitted": log.emitted.model_dump(exclude_none=True),
        "emitted_line": log.emitted_line,
        "peak_memory_bytes": log.peak_memory_bytes,
        "extras": dict(log.extras),
        "window": log.window,
        "outcome": log.outcome and log.outcome.value,
        "error": log.error,
        "steps": [
            {name: value for name, value in reading._asdict().items() if value not in (None, False)}
            for reading in log.steps
        ],
        "problems": [str(problem) for problem in log.problems],
        "notes": [str(note) for note in log.notes],
    }
    return plain({name: value for name, value in fields.items() if value not in (None, [], {})})


def name_of(path: Path) -> str:
    return "/".join(path.parts[-3:])


def test_a_format_has_three_good_files_and_three_bad_ones() -> None:
    for kind in GOLDEN:
        counts = Counter(path.parents[1].name for path in files(kind))
        assert [] == [name for name in FORMATS if counts[name] < 3], kind


def test_every_golden_file_has_the_file_it_was_written_for() -> None:
    known = {path for kind in GOLDEN for path in files(kind)}
    expected = known | {path.with_name(path.name + GOLDEN[path.parent.name]) for path in known}
    assert expected == {path for kind in GOLDEN for path in DATA.glob(f"*/{kind}/*")}


@pytest.mark.parametrize("path", files("good"), ids=name_of)
def test_a_format_reads_its_files(path: Path) -> None:
    expected = yaml.load(path.with_name(f"{path.name}.yml").read_text(), yaml.CSafeLoader)
    assert expected == [said(log) for log in parsed(path)]


@pytest.mark.parametrize("path", files("bad"), ids=name_of)
def test_a_format_says_what_is_wrong_with_a_file(path: Path) -> None:
    expected = path.with_name(f"{path.name}.txt").read_text().splitlines()
    told = [
        line
        for log in parsed(path)
        for line in (f"{log.outcome}: {log.error}", *map(str, log.problems))
    ]
    assert expected == told


def test_only_its_own_format_recognises_a_file() -> None:
    wrong = {}
    for path in (*files("good"), *files("bad")):
        head = path.read_bytes()
        found = [name for name, one in FORMATS.items() if one.recognizes(head, path.name)]
        if [path.parents[1].name] != found:
            wrong[name_of(path)] = found
    assert {} == wrong
