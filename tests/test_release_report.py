"""`perfdb report` on real stores, and what it says of notes that are wrong."""

import json
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.record import Figures, Release
from tests.factories import case, published, stored
from tests.shell import Shell

WIDE = case(framework="nemo", num_gpus=16)
OTHER = case(framework="nemo", system="dgx-b200", precision="fp8_cs")
PLAIN = case(framework="nemo")
NEW = case(framework="nemo", model="llama3-70b")


@pytest.fixture
def report(sqlite: URL, perfdb: Shell) -> Shell:
    """`perfdb report` of two releases: one row 5 % faster, one 2 % slower, one equal, one new."""
    rows = {
        "25.02": ((PLAIN, 10_000), (WIDE, 10_000), (OTHER, 20_000)),
        "25.04": ((PLAIN, 10_500), (WIDE, 9_800), (OTHER, 20_000), (NEW, 1_000)),
    }
    for version, figures in rows.items():
        made = [
            published(
                line=line,
                case=one,
                release=Release(framework="nemo", version=version),
                figures=Figures(tokens_per_sec_per_gpu=rate),
                raw={},
                notes=("known issue: a slow sampler",) if rate == 9_800 else (),
            )
            for line, (one, rate) in enumerate(figures, start=1)
        ]
        stored(sqlite, *made, page=f"{version}.md")
    address = sqlite.render_as_string(hide_password=False)
    return partial(perfdb, "report", "nemo 25.02", "nemo 25.04", "--db", address)


def sections(text: str) -> dict[str, str]:
    """What is below each heading of two #."""
    front, *parts = text.split("\n## ")
    return {"": front} | {name: body for name, _, body in (it.partition("\n") for it in parts)}


def test_a_report_has_counts_means_the_largest_changes_and_what_is_new(report: Shell) -> None:
    """³√(1.05 × 0.98 × 1) = 1.0096; on the DGX-H100 √(1.05 × 0.98) = 1.0144."""
    code, out, err = report("--site-url", "https://perf.example.org/")
    assert (0, "") == (code, err)
    found = sections(out)
    for line in (
        "| Slower | 1 | −2.0% | −2.0% |", "| Faster | 1 | +5.0% | +5.0% |", "| Same | 1 | 0.0% |",
        "| All compared | 3 | +1.0% | −2.0% to +5.0% |", "| New | 1 | – | – |",
        "| DGX-H100 | BF16 | 2 | +1.4% | −2.0% to +5.0% |", "| DGX-B200 | FP8-CS | 1 | 0.0% |",
    ):  # fmt: skip
        assert line in found["Summary"]
    assert "| −2.0% | [Llama 3 8B · Pre-training · BF16 · 16 × DGX-H100" in found["Slower"]
    assert "B: known issue: a slow sampler" in found["Slower"]
    assert "| 10,000 | 9,800 | 0.980 | – |" in found["Slower"]
    assert "(https://perf.example.org/performance/nemo/25.04.html#row-" in found["Slower"]
    assert "Llama 3 70B" in found["New"]
    assert ["None."] * 3 == [found[it].strip() for it in ("Recovered", "Missing", "Not judged")]


def test_notes_are_merged_and_json_has_them_too(report: Shell, tmp_path: Path) -> None:
    found = json.loads(report("--json").stdout)["reports"][0]
    [slower], [new] = found["slower"], found["new"]
    notes = tmp_path / "notes.md"
    notes.write_text(
        f"What is new.\n\n## Slower\n\nOne row.\n\n### `{slower['row'][:10]}` 8B on 16\n\n- fixed\n"
        f"  in 25.06\n\n### {new['row'][:6]}\n\nA new model.\n"
    )
    text = report("--notes", str(notes)).stdout
    assert "# nemo 25.02 → nemo 25.04\n\nWhat is new.\n\n## Summary" in text
    assert sections(text)["Slower"].startswith("\nOne row.\n\n| Change")
    assert "\n\n  - fixed\n    in 25.06\n" in sections(text)["Slower"]
    assert "\n\n  A new model.\n" in sections(text)["New"]
    again = json.loads(report("--json", "--notes", str(notes)).stdout)["reports"][0]
    assert ("What is new.", {"Slower": "One row."}) == (again["front"], again["notes"])
    assert "- fixed\n  in 25.06" == again["slower"][0]["note"]
    assert (0.98, 9_800.0) == (again["slower"][0]["ratio"], again["slower"][0]["b"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Title", ":1: a heading of one #: the report makes its title; write ##"),
        ("x\n\n## Slowr\n", ":3: the report has no section 'Slowr'; did you mean Slower?"),
        ("### 0123456789 x", ":1: the report has no row '0123456789'; begin the heading with 6"),
        ("## New\n\n## new", ":3: a second note on 'new'; make them one"),
        ("```\n## no heading\n```\n\n## Slowest", ":5: the report has no section 'Slowest'"),
    ],
)
def test_notes_on_what_is_not_there_are_refused(
    report: Shell, tmp_path: Path, text: str, said: str
) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text(text)
    code, out, err = report("--notes", str(notes))
    assert (2, "", True) == (code, out, f"{notes}{said}" in err)
