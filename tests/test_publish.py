"""`perfdb publish`: pages that another project's documents include, and perfdb reads back."""

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt
from sqlalchemy import URL

from perfdb import ingest
from perfdb.db.session import reading
from perfdb.queries import results
from perfdb.record import Figures
from tests.factories import case, published, release, stored, write_run
from tests.shell import Shell

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "data" / "published"
EVIL = "<script>alert(1)</script> *m* `c` {{ x }} {term}`y` | & \"q\" 'p' $z$ [^1]"
NOT_COMPARED = {"result_id", "release_id", "source", "source_line", "source_sha256",
                "source_url", "published_on", "raw", "extras", "notes", "case_key",
                "workload_key"}  # fmt: skip
CONF = """
project = "another"
extensions = ["myst_parser", "sphinx_design"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
exclude_patterns = ["_build"]
"""


@pytest.fixture
def publish(perfdb: Shell) -> Shell:
    """`perfdb publish`."""
    return partial(perfdb, "publish")


def filled(store: URL, *paths: Path) -> None:
    """The published pages in the store."""
    report = ingest.ingest(paths, store, ingest.Options())
    assert not report.rejected, report.rejected


def said(store: URL) -> list[dict[str, object]]:
    """Every result in force: what it is of, and its figures."""
    with reading(store) as connection:
        rows = [dict(row) for row in connection.execute(results.current()).mappings()]
    plain = [{k: v for k, v in row.items() if k not in NOT_COMPARED} for row in rows]
    return sorted(plain, key=lambda row: json.dumps(row, default=str))


@pytest.mark.parametrize("style", ["myst", "markdown"])
@pytest.mark.parametrize("name", ["nemo-25.04.md", "automodel.md", "dfm.md"])
def test_what_is_published_reads_back_as_what_it_was_made_from(
    sqlite: URL, publish: Shell, tmp_path: Path, name: str, style: str
) -> None:
    """Every result and every figure survives the way out and in again."""
    filled(sqlite, PUBLISHED / name)
    address = str(sqlite.database)
    code, _, err = publish("--db", address, "--format", style, "--fail-on", "never")
    assert (0, "") == (code, err)

    again = tmp_path / "again.sqlite"
    made = sorted((tmp_path / "published").rglob("*.md"))
    store = URL.create("sqlite", database=str(again))
    report = ingest.ingest(made, store, ingest.Options())

    assert () == report.rejected
    assert said(sqlite) == said(URL.create("sqlite", database=str(again)))


def test_known_errors_keep_a_page_from_being_published(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    """An error of the audit that nobody has accepted is named, and nothing is written."""
    filled(sqlite, PUBLISHED / "nemo-25.04.md")

    code, out, err = publish("--db", str(sqlite.database), "nemo 25.04")

    assert (1, "") == (code, out)
    assert "Mixtral 8x22B on DGX-H100" in err
    assert "Nothing is written" in err
    assert not (tmp_path / "published").exists()


def test_a_finding_stands_in_a_footnote_of_its_row(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    """A page that is published with its errors says so below its tables."""
    filled(sqlite, PUBLISHED / "nemo-25.04.md")
    publish("--db", str(sqlite.database), "nemo 25.04", "--fail-on", "never")

    text = (tmp_path / "published/nemo/25.04.md").read_text()

    marked = [line for line in text.splitlines() if "LLAMA3-70B" in line and "[^" in line]
    assert marked
    assert any(line.startswith("[^") and "Audit:" in line for line in text.splitlines())


def test_the_same_store_makes_the_same_pages_and_says_so(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    """Publishing twice writes once."""
    filled(sqlite, PUBLISHED / "dfm.md")
    address = str(sqlite.database)

    first = json.loads(publish("--db", address, "--json")[1])
    second = json.loads(publish("--db", address, "--json")[1])

    assert [{"path": "published/dfm/main.md", "action": "written"}] == first
    assert [{"path": "published/dfm/main.md", "action": "unchanged"}] == second


def test_a_page_that_somebody_wrote_is_not_overwritten(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    """Hand-written text in the way is bad input, and stays as it is."""
    filled(sqlite, PUBLISHED / "dfm.md")
    mine = tmp_path / "published/dfm/main.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("# Mine\n")

    code, _, err = publish("--db", str(sqlite.database))

    assert 2 == code
    assert "published/dfm/main.md: was not made by perfdb publish" in err
    assert "# Mine\n" == mine.read_text()


def test_pages_of_releases_that_the_store_has_no_more_are_named_and_stay(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    """Not those of releases that were not asked for, nor what somebody wrote beside them."""
    filled(sqlite, PUBLISHED / "dfm.md")
    stored(sqlite, published(), published(line=8, release=release("25.07", framework="nemo")))
    address = str(sqlite.database)
    assert "note:" not in publish("--db", address, "--fail-on", "never")[2]
    gone = tmp_path / "published/dfm/main.md"
    (gone.parent / "mine.md").write_text("# Mine\n")
    ingest.withdraw([str(PUBLISHED / "dfm.md")], sqlite, "a draft")

    for words in ([], ["nemo 25.04"], ["--json"]):
        code, out, err = publish("--db", address, "--fail-on", "never", *words)
        assert (0, False) == (code, "dfm" in out)
        assert (
            "note: published/dfm/main.md: made by perfdb publish, and the store has no such "
            "release any more; remove it\n"
        ) == err
    assert gone.exists()


def test_a_table_of_runs_says_their_precision_once(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    """In its column."""
    stored(sqlite, write_run(tmp_path, run_id="run-1"))
    publish("--db", str(sqlite.database), "--fail-on", "never")

    [path] = (tmp_path / "published").rglob("*.md")
    assert 1 == path.read_text().count("Precision")


def test_a_line_below_each_table_says_where_its_rows_are_from(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    """The lines of the page that was read, in the order of the rows, or the runs."""
    filled(sqlite, PUBLISHED / "dfm.md")
    stored(sqlite, write_run(tmp_path, run_id="run-1"))
    publish("--db", str(sqlite.database), "--fail-on", "never")

    rows = [
        str(number)
        for number, line in enumerate((PUBLISHED / "dfm.md").read_text().splitlines(), start=1)
        if line.startswith("| WAN")
    ]
    pages = [path.read_text() for path in sorted((tmp_path / "published").rglob("*.md"))]
    said = [line for page in pages for line in page.splitlines() if line.startswith("Sources: ")]
    of_pages = [re.findall(r"\d+", line.partition("dfm.md, ")[2]) for line in said]
    assert sorted(rows) == sorted(number for numbers in of_pages for number in numbers)
    assert ["46", "47"] in of_pages, "the two rows of the last table"
    assert 3 == sum(line.startswith("Sources: dfm.md, line ") for line in said)
    assert ["Sources: run run-1"] == [line for line in said if "run-1" in line]


def test_a_line_below_each_table_leads_to_the_original_of_its_page(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    """With its day; whatever signs are in its address, that is where the link leads."""
    url = "https://example.org/a_b*c?x=1&lt=2&lt;#h_100"
    page = tmp_path / "page.md"
    text = (PUBLISHED / "dfm.md").read_text()
    said = f"perfdb:\n  source_url: {url}\n  published_on: 2025-07-30"
    page.write_text(text.replace("perfdb:", said, 1))
    filled(sqlite, page)
    publish("--db", str(sqlite.database), "--fail-on", "never")

    made = (tmp_path / "published/dfm/main.md").read_text()
    line = next(line for line in made.splitlines() if line.startswith("Sources: "))
    shown = BeautifulSoup(MarkdownIt().render(line), "html.parser")
    read = r"Sources: (\S+), published on 2025-07-30, read from page\.md, lines? [\d, ]+"
    found = re.fullmatch(read, shown.get_text().strip())
    assert found is not None
    assert [url, url] == [found[1], shown.select_one("a")["href"]]


def test_a_note_of_all_rows_stands_once_below_its_table_and_reads_back(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    """No row has a mark of it, and every row has it again."""
    notes = ("of *every* row",)
    page = [published(line, case=case(num_gpus=count), notes=(*notes, *own))
            for line, count, own in ((7, 8, ()), (8, 16, ("of one row",)))]  # fmt: skip
    stored(sqlite, *page)
    publish("--db", str(sqlite.database), "--format", "markdown", "--fail-on", "never")

    [path] = (tmp_path / "published").rglob("*.md")
    text = path.read_text()
    assert 1 == text.count("every")
    assert "\n\nNote: of \\*every\\* row\n" in text
    lines = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert [False, True] == ["[^1]" in line for line in lines]

    again = URL.create("sqlite", database=str(tmp_path / "again.sqlite"))
    filled(again, path)
    with reading(again) as connection:
        rows = connection.execute(results.current()).mappings()
        read = {row["num_gpus"]: set(row["notes"]) for row in rows}
    assert {8: {"of *every* row"}, 16: {"of *every* row", "of one row"}} == read


@pytest.mark.slow
def test_another_project_builds_the_pages_without_a_warning(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    """Sphinx with MyST and sphinx-design alone renders tabs, tables and any name as text."""
    filled(sqlite, *(PUBLISHED / name for name in ("nemo-25.04.md", "automodel.md", "dfm.md")))
    stored(sqlite, published(case=case(model=EVIL), figures=Figures(tokens_per_sec_per_gpu=7.5)))
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "conf.py").write_text(CONF)
    (docs / "index.md").write_text("# Docs\n\n```{toctree}\n:glob:\n\npublished/*/*\n```\n")
    publish("--db", str(sqlite.database), "--output", str(docs / "published"), "--fail-on", "never")

    command = [sys.executable, "-m", "sphinx", "-nWq", "--keep-going", "-b", "html"]
    done = subprocess.run([*command, str(docs), str(tmp_path / "html")],
                          capture_output=True, text=True, check=False)  # fmt: skip

    assert (0, "") == (done.returncode, done.stderr)
    nemo = (tmp_path / "html/published/nemo/25.04.html").read_text()
    assert nemo.count("sd-tab-set") > 1
    assert not list((tmp_path / "html/published").rglob("*script*alert*"))


def test_an_unknown_release_is_bad_input(sqlite: URL, publish: Shell) -> None:
    """The message lists the releases there are."""
    stored(sqlite, published(release=release("0.16.0")))

    code, _, err = publish("--db", str(sqlite.database), "nemo 99.99")

    assert 2 == code
    assert "99.99" in err
    assert "0.16.0" in err
