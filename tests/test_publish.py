"""`perfdb publish`: pages that another project's documents include, and perfdb reads back."""

import json
import re
from functools import partial
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt
from sphinx.cmd.build import main as sphinx
from sqlalchemy import URL

from perfdb import ingest
from perfdb.db.session import reading
from perfdb.messages import note_text
from perfdb.queries import results
from perfdb.record import Figures, Method
from perfdb.site.cells import CHOSEN
from tests import factories, seeds
from tests.factories import case, published, release, stored, write_run
from tests.shell import Shell

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "data" / "published"
CORPUS = ROOT.parent / "shared" / "corpus"
EVIL = f"{factories.EVIL} $z$ [^1]"
NOT_COMPARED = {"printed", "result_id", "release_id", "source", "source_line", "source_sha256",
                "source_url", "published_on", "raw", "extras", "notes", "case_key",
                "workload_key"}  # fmt: skip
METHOD = ["window", "num_steps", "flops_convention"]
CONF = """
project = "another"
extensions = ["myst_parser", "sphinx_design"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
exclude_patterns = ["_build", "parts"]
"""


@pytest.fixture
def publish(perfdb: Shell, sqlite: URL) -> Shell:
    """`perfdb publish` of the store, whatever the audit finds."""
    return partial(perfdb, "publish", "--db", str(sqlite.database), "--fail-on", "never")


def read_again(folder: Path) -> URL:
    """A new store of what was published."""
    again = URL.create("sqlite", database=str(folder / "again.sqlite"))
    filled(again, *(folder / "published").rglob("*.md"))
    return again


def filled(store: URL, *paths: Path) -> None:
    """The published pages in the store."""
    report = ingest.ingest(paths, store, ingest.Options())
    assert not report.rejected, report.rejected


def current(store: URL) -> list[dict[str, object]]:
    """Every result in force: what it is of, and its figures."""
    with reading(store) as connection:
        rows = [dict(row) for row in connection.execute(results.current()).mappings()]
    plain = [{k: v for k, v in row.items() if k not in NOT_COMPARED} for row in rows]
    return sorted(plain, key=lambda row: json.dumps(row, default=str))


def test_a_page_with_a_secret_is_not_published(sqlite: URL, publish: Shell, tmp_path: Path) -> None:
    token = "glpat-" + "a1_" * 7
    stored(sqlite, published(extras={"Remark": token}, raw={"Remark": token}))
    code, out, err = publish("--db", str(sqlite.database))
    assert (1, "") == (code, out)
    assert "holds what looks like a password or a token" in err
    assert token not in err
    assert not [*tmp_path.rglob("*.md")]


@pytest.mark.parametrize("name", ["nemo-25.04.md", "automodel.md", "dfm.md"])
def test_what_is_published_reads_back_as_what_it_was_made_from(
    sqlite: URL, publish: Shell, tmp_path: Path, name: str
) -> None:
    """Every result and every figure survives the way out and in again."""
    filled(sqlite, PUBLISHED / name)
    for style in ("myst", "markdown"):
        code, _, err = publish("--format", style, "--output", f"{style}/published")
        assert (0, "") == (code, err)
        assert current(sqlite) == current(read_again(tmp_path / style))


@pytest.mark.parametrize(
    ("methods", "shared"),
    [
        ([("last_n(10)", 10, "causal")] * 2, ("last_n(10)", 10, "causal")),
        ([("last_n(10)", 10, "causal"), (None, 10, None)], (None, 10, None)),
    ],
)
def test_how_the_figures_of_all_rows_were_measured_reads_back_and_of_some_stands_beside_them(
    sqlite: URL, publish: Shell, tmp_path: Path, methods, shared
) -> None:
    rows = [
        published(
            line,
            case=case(num_gpus=8 * line),
            method=Method.model_validate(dict(zip(METHOD, method, strict=True))),
        )
        for line, method in enumerate(methods, 1)
    ]
    stored(sqlite, *rows)
    publish("--format", "markdown", "--notes")

    [path] = (tmp_path / "published").rglob("*.md")
    text = path.read_text()
    keys = ("  window: ", "  steps: ", "  flops_convention: ")
    front = [f"{key}{value}" for key, value in zip(keys, shared, strict=True) if value]
    assert front == [line for line in text.splitlines() if line.startswith(keys)]
    again = read_again(tmp_path)
    assert [shared] * 2 == [tuple(row[name] for name in METHOD) for row in current(again)]
    if methods[0] != shared:
        assert "]: Window: last\\_n(10)\n" in text
        assert "| FLOPs convention |" in text
        assert "| causal |" in text


@pytest.mark.parametrize(
    ("again", "wanted"),
    [
        (["finished", "out_of_memory"], f"1 of 3 runs, 2 finished: {CHOSEN}"),
        (["out_of_memory"], "1 of 2 runs, 1 finished"),
    ],
)
def test_a_row_that_is_one_of_several_runs_says_so(
    sqlite: URL, publish: Shell, tmp_path: Path, again: list[str], wanted: str | None
) -> None:
    """In a footnote, where others are of one run; it reads back as a note of the row."""
    named = [(f"run-{number}", outcome) for number, outcome in enumerate(["finished", *again])]
    runs = [write_run(tmp_path, run_id=run_id, outcome=outcome) for run_id, outcome in named]
    stored(sqlite, *runs, write_run(tmp_path, run_id="other", case=case(num_gpus=16)))
    publish("--format", "markdown")
    [path] = (tmp_path / "published").rglob("*.md")
    assert "[^" not in path.read_text()
    publish("--format", "markdown", "--notes")

    with reading(read_again(tmp_path)) as connection:
        rows = [list(map(note_text, row.notes)) for row in connection.execute(results.current())]
    assert sorted([[], [wanted] if wanted else []]) == sorted(rows)


def test_known_errors_keep_a_page_from_being_published_or_stand_in_footnotes(
    sqlite: URL, publish: Shell, perfdb: Shell, tmp_path: Path
) -> None:
    """An error of the audit that nobody has accepted is named, and nothing is written."""
    filled(sqlite, PUBLISHED / "nemo-25.04.md")
    code, out, err = perfdb("publish", "--db", str(sqlite.database), "nemo 25.04")
    assert (1, "") == (code, out)
    assert "Mixtral 8x22B on DGX-H100" in err
    assert "Wrote nothing" in err
    assert not (tmp_path / "published").exists()

    publish("nemo 25.04")
    assert "Audit:" not in (tmp_path / "published/nemo/25.04.md").read_text()
    publish("nemo 25.04", "--notes")
    lines = (tmp_path / "published/nemo/25.04.md").read_text().splitlines()
    assert [line for line in lines if "LLAMA3-70B" in line and "[^" in line]
    assert any(line.startswith("[^") and "Audit:" in line for line in lines)


def test_pages_are_written_once_with_their_labels_and_never_over_what_somebody_wrote(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    """They are labeled as on the site and as is asked; Markdown has no labels."""
    filled(sqlite, PUBLISHED / "dfm.md")
    path = tmp_path / "published/dfm/main.md"
    for action in ("written", "unchanged"):
        found = json.loads(publish("--json")[1])
        assert [{"path": "published/dfm/main.md", "action": action}] == found
    assert "\n(ref-performance-dfm-main)=\n# NeMo DFM main training" in path.read_text()
    publish("--label", "ref-performance")
    assert "\n(ref-performance)=\n(ref-performance-dfm-main)=\n# NeMo" in path.read_text()
    publish("--format", "markdown")
    assert ")=" not in path.read_text()
    path.write_text("# Mine\n")
    code, _, err = publish()
    assert (2, "# Mine\n") == (code, path.read_text())
    assert "published/dfm/main.md: was not made by perfdb publish" in err


def test_pages_of_releases_that_the_store_has_no_more_are_named_and_stay(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    """Not those of releases that were not asked for, nor what somebody wrote beside them."""
    filled(sqlite, PUBLISHED / "dfm.md")
    stored(sqlite, published(), published(line=8, release=release("25.07", framework="nemo")))
    assert "note:" not in publish()[2]
    gone = tmp_path / "published/dfm/main.md"
    (gone.parent / "mine.md").write_text("# Mine\n")
    ingest.withdraw([str(PUBLISHED / "dfm.md")], sqlite, "a draft")

    for words in ([], ["nemo 25.04"], ["--json"]):
        code, out, err = publish(*words)
        assert (0, False) == (code, "dfm" in out)
        assert (
            "note: published/dfm/main.md: perfdb publish wrote this page, but the store no "
            "longer has the release; remove it\n"
        ) == err
    assert gone.exists()


def test_a_line_below_each_table_leads_to_the_original_of_its_page(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    """With its day; whatever signs are in its address, that is where the link leads."""
    url = "https://example.org/a_b*c?x=1&lt=2&lt;#h_100"
    page = tmp_path / "page.md"
    text = (PUBLISHED / "dfm.md").read_text()
    original = f"perfdb:\n  source_url: {url}\n  published_on: 2025-07-30"
    page.write_text(text.replace("perfdb:", original, 1))
    filled(sqlite, page)
    publish()

    made = (tmp_path / "published/dfm/main.md").read_text()
    line = next(line for line in made.splitlines() if line.startswith("Sources: "))
    shown = BeautifulSoup(MarkdownIt().render(line), "html.parser")
    read = r"Sources: (\S+), published on 2025-07-30, read from page\.md, lines? [\d, -]+"
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
    publish("--format", "markdown")

    [path] = (tmp_path / "published").rglob("*.md")
    text = path.read_text()
    assert 1 == text.count("every")
    assert "\n\nNote: of \\*every\\* row\n" in text
    lines = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert [False, True] == ["[^1]" in line for line in lines]

    with reading(read_again(tmp_path)) as connection:
        rows = connection.execute(results.current()).mappings()
        read = {row["num_gpus"]: set(map(note_text, row["notes"])) for row in rows}
    assert {8: {"of *every* row"}, 16: {"of *every* row", "of one row"}} == read


def rows_of(text: str, title: str) -> list[dict[str, str]]:
    """The rows of the table in the first tab of that title, without the marks of footnotes."""
    tab = text.partition(f"tab-item}} {title}\n")[2].partition(":::")[0]
    lines = [line for line in tab.splitlines() if line.startswith("| ")]
    head, _, *rows = (
        [re.sub(r"( \[\^\d+\])+$", "", cell) for cell in line.strip("| ").split(" | ")]
        for line in lines
    )
    return [dict(zip(head, row, strict=True)) for row in rows]


BLOCK = "<!-- perfdb:begin {} -->\r\nold\r\n<!-- perfdb:end -->\r\n"


def test_only_what_is_between_markers_is_replaced_and_once(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    """A team's own words, links and line ends stay; the parts are the fragments."""
    filled(sqlite, PUBLISHED / "dfm.md")
    publish("--fragments")
    [path] = (tmp_path / "published/dfm/main").glob("pretrain*/dgx-gb300.md")
    name = path.relative_to(tmp_path / "published").as_posix().removesuffix(".md")
    table = path.read_text().split("-->\n\n")[1]
    assert table.startswith("Precision: ") or table.startswith("| Model |")
    page = tmp_path / "mine.md"
    before, after = "# Ours\r\n\r\n[a link](x.md)\r\n", "\r\nBye.\r\n"
    page.write_bytes((before + BLOCK.format(name) + after).encode())
    for action in ("written", "unchanged"):
        found = json.loads(publish("--json", "--into", "mine.md")[1])
        assert [{"path": "mine.md", "action": action}] == found
    begin, end = BLOCK.format(name).split("old\r\n")
    middle = f"\n{table}\n".replace("\n", "\r\n")
    assert f"{before}{begin}{middle}{end}{after}" == page.read_bytes().decode()


MARKERS = [
    ("# No\n", "mine.md: has no markers; write <!-- perfdb:begin NAME -->"),
    ("a\n<!-- perfdb:begin dfm/main/terms -->\nb\n", "mine.md:2: 'dfm/main/terms' has no end"),
    ("a\n<!-- perfdb:end -->\n", "mine.md:2: an end without a begin"),
    ("a <!-- perfdb:end -->\n", "mine.md:1: is no marker: a <!-- perfdb:end -->"),
    ("<!-- perfdb:begn x -->\n", "mine.md:1: is no marker"),
    (BLOCK.format("dfm/main/term"), "mine.md:1: nothing is called 'dfm/main/term'; did you "
                                    "mean dfm/main/terms?"),
    (BLOCK.format("dfm/main/terms") * 2, "mine.md:4: 'dfm/main/terms' is there twice"),
]  # fmt: skip
"""Pages with damaged or unknown markers, and what is said of each."""


def test_a_damaged_or_unknown_marker_is_an_error_with_its_line_and_nothing_is_written(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    filled(sqlite, PUBLISHED / "dfm.md")
    page = tmp_path / "mine.md"
    for text, message in MARKERS:
        page.write_bytes(text.encode())
        code, _, err = publish("--into", "mine.md")
        assert (2, True, "") == (code, message in err, "" if message in err else err)
        assert text == page.read_bytes().decode()


def test_a_profile_puts_systems_and_columns_first(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    filled(sqlite, PUBLISHED / "nemo-25.04.md")
    config = tmp_path / "perfdb.toml"
    config.write_text('[publish.ours]\nsystems = ["dgx-gb200"]\ncolumns = ["model", "tflops"]\n')
    assert 0 == publish("--profile", "ours").code
    text = (tmp_path / "published/nemo/25.04.md").read_text()
    tabs = re.findall("tab-item} (.*)", text)
    assert ["DGX-GB200", "DGX-H100", "DGX-B200"] == tabs[:3]
    assert "\n| Model | Model TFLOP / sec / GPU | Precision | " in text
    config.write_text('[publish.ours]\ncolumns = ["tokns"]\n')
    for name, message in (("ours", "perfdb.toml:2: columns: there is no 'tokns'; did you mean"),
                          ("theirs", "--profile: no profile 'theirs'")):  # fmt: skip
        code, _, err = publish("--profile", name)
        assert (2, True) == (code, message in err)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside the project")
def test_a_run_that_broke_off_is_on_no_published_page(
    sqlite: URL, perfdb: Shell, tmp_path: Path
) -> None:
    """Every cell of the page that was published, in its order, and nothing else."""
    filled(sqlite, PUBLISHED / "nemo-25.04.md")
    settings = "system=dgx-h100 model=llama3-8b num_gpus=8 sequence_length=8192 task=pretrain"
    options = [word for one in settings.split() for word in ("--set", one)]
    log = str(CORPUS / "cloudai_fixture_nemo_run_0.log")
    address = str(sqlite.database)
    assert 0 == perfdb("ingest", log, "--db", address, "--release", "25.04", *options).code
    assert 0 == perfdb("publish", "--db", address, "--fail-on", "never").code

    text = (tmp_path / "published/nemo/25.04.md").read_text()
    shown = rows_of(text, "DGX-H100")
    seed = [row.cells for row in seeds.nemo() if row.said["system"] == "dgx-h100"]
    wanted = [cells for cells in seed if "Task" not in cells]
    assert 8 == len(wanted) == len(shown)
    for cells, row in zip(wanted, shown, strict=True):
        assert list(cells) == [title for title in row if title in cells]
        assert [text or "–" for text in cells.values()] == [row[title] for title in cells]
    assert "No figures" not in text


@pytest.mark.skipif(not seeds.FOLDER.is_dir(), reason="no seeds beside the project")
@pytest.mark.parametrize("style", ["myst", "markdown"])
def test_a_page_explains_every_abbreviation_that_its_original_does(
    sqlite: URL, publish: Shell, tmp_path: Path, style: str
) -> None:
    """Of DFM those of its list; of AutoModel's those that its tables have, kernels too.

    The page is filed as DFM's is.
    """
    filled(sqlite, PUBLISHED / "dfm.md", PUBLISHED / "automodel.md")
    publish("--format", style)

    def explained(name: str) -> set[str]:
        lines = (tmp_path / "published" / name).read_text().partition("## Nomenclature")[2]
        return set(re.findall(r"^- \*\*([^*]+)\*\*: \w", lines, re.MULTILINE))

    dfm = (seeds.FOLDER / "dfm-performance-benchmarks.md").read_text()
    ours, its = (
        yaml.safe_load(text.split("---\n")[1])
        for text in ((tmp_path / "published/dfm/main.md").read_text(), dfm)
    )
    assert {name: its[name] for name in ("categories", "tags")}.items() <= ours.items()
    listed = set(re.findall(r"^- \*\*([A-Z]+)\*\*:", dfm, re.MULTILINE))
    assert {"GBS", "FSDP", "SP", "VP"} < listed
    assert listed | {"DP", "Model TFLOP / sec / GPU"} == explained("dfm/main.md")
    automodel = (seeds.FOLDER / "automodel-performance-summary.txt").read_text()
    listed = set(re.findall(r"^- (\w+): ", automodel, re.MULTILINE))
    assert listed - {"MFU", "DP"} <= explained("automodel/main.md")


def test_a_label_that_cannot_be_one_and_an_unknown_release_are_bad_input(
    sqlite: URL, publish: Shell, tmp_path: Path
) -> None:
    stored(sqlite, published(), published(line=8, release=release("25.07", framework="nemo")))
    for words, message in (
        (("nemo 99.99",), "25.07"),
        (("--label", "a)=\n# X"), "is no label"),
        (("--label", "ref-x", "--format", "markdown"), "--label: Markdown has no labels"),
        (("--label", "ref-x"), "--label: 2 pages cannot share 'ref-x'; name one release"),
    ):
        code, _, err = publish(*words)
        assert (2, True) == (code, message in err)
    assert not (tmp_path / "published").exists()


@pytest.mark.parametrize(
    ("framework", "version"), [("nemo", "25.06<script>alert(7)</script>"), ("a>", None)]
)
def test_a_release_whose_name_a_theme_would_take_for_html_is_not_published(
    sqlite: URL, publish: Shell, tmp_path: Path, framework: str, version: str | None
) -> None:
    """The message names it; the other releases of the store are published all the same."""
    evil = release(version, framework=framework)
    stored(sqlite, published(), published(line=8, release=evil, case=case(framework=framework)))

    code, out, err = publish()

    assert (1, 1) == (code, out.count("written"))
    assert f"'{framework} {version}'" in err or f"'{framework}'" in err
    assert "a site would run the < > of its name as HTML" in err
    other = published().release
    [page] = (tmp_path / "published").rglob("*.md")
    assert f"{other.framework}/{other.version}.md" == str(page.relative_to(tmp_path / "published"))
    name = f"{framework} {version or '(unattributed)'}"
    code, out, err = publish(name)
    assert (1, "", 1) == (code, out, err.count("\n"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_another_project_builds_the_pages_without_a_warning(
    sqlite: URL, publish: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sphinx with MyST and sphinx-design alone renders tabs, tables and any name as text.

    Its labels lead to the pages.
    """
    filled(sqlite, *(PUBLISHED / name for name in ("nemo-25.04.md", "automodel.md", "dfm.md")))
    stored(sqlite, published(case=case(model=EVIL), figures=Figures(tokens_per_sec_per_gpu=7.5)))
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "conf.py").write_text(CONF)
    names = ("performance", "performance-dfm-main", "performance-nemo-25.04")
    labels = " ".join(f"{{ref}}`ref-{name}`" for name in names)
    toctree = "```{toctree}\n:glob:\n\npublished/*/*\n```\n"
    systems = ("dgx-h100", "dgx-gb200")
    parts = [f"```{{include}} parts/nemo/25.04/fine-tuning/{it}.md\n```\n" for it in systems]
    (docs / "index.md").write_text("\n\n".join(["# Docs", labels, toctree, *parts]))
    assert (
        0 == publish("nemo 25.04", "--fragments", "--notes", "--output", str(docs / "parts")).code
    )
    words = ("--output", str(docs / "published"))
    publish(*words)
    publish(*words, "dfm main", "--label", "ref-performance")

    words = ["-nWq", "--keep-going", "-b", "html", str(docs), str(tmp_path / "html")]
    assert (0, "") == (sphinx(words), capsys.readouterr().err)
    nemo = (tmp_path / "html/published/nemo/25.04.html").read_text()
    assert nemo.count("sd-tab-set") > 1
    assert nemo.count("<details") == 1
    index = BeautifulSoup((tmp_path / "html/index.html").read_text(), "html.parser")
    assert 2 == len(index.select("table"))
    assert index.select("a.footnote-reference")
    links = index.select("p a")
    assert ["published/dfm/main.html"] * 2 + ["published/nemo/25.04.html"] == [
        str(link["href"]).partition("#")[0] for link in links[:3]
    ]
    assert not list((tmp_path / "html/published").rglob("*script*alert*"))
