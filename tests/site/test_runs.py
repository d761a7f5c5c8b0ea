"""The parts of a run's page: figures with their formulas, the drawing, the steps."""

import json
import re
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from sqlalchemy import URL

from perfdb.ingest import LogOptions, Options, ingest
from perfdb.pages.base import PageContext
from perfdb.site import environment, evidence, figures, read, runs
from perfdb.site.charts import step_times
from perfdb.site.contents import Contents
from perfdb.site.data import MOST_STEPS, Flag, RunPage
from perfdb.site.markup import table
from perfdb.site.profiles import RUNS
from perfdb.site.tables import results_table
from tests import logs
from tests.factories import release, stored, write_run
from tests.site.samples import address, run_page

SVG = "{http://www.w3.org/2000/svg}"
TIMES = (9.0, 5.0, 4.1, 4.0, 4.2, 4.0, 4.3, 4.0, 4.1, 4.0)


def rows(part: str, page: RunPage) -> list[list[str]]:
    made = BeautifulSoup(runs.PARTS[part](page, address).text, "html.parser")
    return [
        [cell.get_text(" ", strip=True) for cell in row.find_all(["th", "td"])]
        for row in made.find_all("tr")
    ]


def test_each_figure_has_its_formula_with_the_numbers_of_the_run() -> None:
    said = {row[0]: row[1:] for row in rows("figures", run_page(*TIMES, peak_tflops=989.0))}
    assert ["4.050", "median of 8 steps: skip_warmup(2)"] == said["Step time (s)"][::2]
    assert "128 × 8,192 ÷ 4.050 ÷ 8" == said["Tokens/s/GPU"][2]
    assert ["43.1%", "1,665.60 ÷ 989"] == said["MFU"][::2]
    [small] = [row for row in rows("figures", run_page(*TIMES, mfu=0.00004)) if row[0] == "MFU"]
    assert "0.00400%" == small[1]


@pytest.mark.parametrize(("tokens", "tflops"), [(32363.5, 1211.638), (0.618, 0.00618)])
def test_a_figure_of_a_run_is_printed_as_in_every_table(tokens: float, tflops: float) -> None:
    """Also the few that a CPU reaches."""
    changed = {"tokens_per_sec_per_gpu": tokens, "model_tflops_per_sec_per_gpu": tflops}
    page = run_page(*TIMES, **changed)
    said = {row[0]: row[1] for row in rows("figures", page)}
    printed = results_table("Runs", [page.result], RUNS, address)
    by_head = {head.title: cell for head, cell in zip(printed.heads, printed.rows[0], strict=True)}
    for title in ("Step time (s)", "Tokens/s/GPU", "TFLOP/s/GPU", "MFU"):
        assert by_head[title].content == said[title]


@pytest.mark.parametrize(
    ("precision", "reason"),
    [
        (None, "the precision is not stated"),
        ("nvfp4", "no peak for this system and precision"),
    ],
)
def test_where_no_mfu_is_known_the_run_says_why(precision: str | None, reason: str) -> None:
    page = run_page(*TIMES, mfu=None, peak_tflops=None, precision=precision)
    assert ["MFU", "–", reason] == [
        row[place] for row in rows("figures", page) if row[0] == "MFU" for place in (0, 1, 3)
    ]


def test_a_rate_that_is_not_known_of_a_run_is_computed_nowhere() -> None:
    """Its steps have samples of many lengths: batch × sequence length is not what they read."""
    page = run_page(
        *TIMES, tokens_per_sec_per_gpu=None, model_tflops_per_sec_per_gpu=None, mfu=None
    )
    assert figures.figure(page.result, figures.RATE) is None
    assert not figures.is_computed(page.result, figures.RATE)

    said = {row[0]: row[1:] for row in rows("figures", page)}
    reason = "not computed: its steps do not all have GBS × sequence length tokens"
    assert ["–", reason] == said["Tokens/s/GPU"][::2]
    assert ["–", "no tokens/s/GPU"] == said["TFLOP/s/GPU"][::2]


def test_a_note_on_a_run_is_among_what_its_figures_rest_on() -> None:
    assert ["Note", "it was <restarted>"] in rows(
        "figures", run_page(*TIMES, notes=("it was <restarted>",))
    )


def test_the_job_has_its_rate_its_days_and_what_memory_it_left_free() -> None:
    """By hand: 32,363.5 × 8 tokens/s; 10¹² of them in days; 64 GiB of a GPU's 81,559 MiB."""
    page = run_page(*TIMES, peak_memory_bytes=64 * 2**30)
    said = {row[0]: row[1:] for row in rows("figures", page)}
    assert ["258,908", "32,364 × 8"] == said["Tokens/s, all GPUs"][::2]
    assert "44.70" == said["Days to 1T tokens"][0]
    assert ["64.00 GiB", "68,719,476,736 bytes"] == said["Peak memory"][::2]
    numbers = "1 − 64.00 GiB ÷ 79.65 GiB, as nvidia-smi on DGX-H100 says"
    assert ["19.6%", numbers] == said["Memory headroom"][::2]


@pytest.mark.parametrize(
    ("system", "environment", "headroom"),
    [
        # torchtitan prints `78.00GiB(98.61%)` of the 79.10 GiB that it is told of.
        ("dgx-h100", {"gpu_memory_bytes": 84_932_978_278}, [
            "1.4%", "1 − 78.00 GiB ÷ 79.10 GiB, as the run says",
        ]),
        ("dgx-h100", {}, ["2.1%", "1 − 78.00 GiB ÷ 79.65 GiB, as nvidia-smi on DGX-H100 says"]),
        ("dgx-h100", {"gpu_memory_bytes": 2**36}, ["–", "the memory of its GPUs is not known"]),
        ("dgx-gb300", {}, ["–", "the memory of its GPUs is not known"]),
        ("NVIDIA A900", {}, ["–", "the memory of its GPUs is not known"]),
        ("cpu", {}, None),
    ],
)  # fmt: skip
def test_headroom_is_against_what_a_gpu_reports_and_never_negative(
    system: str, environment: dict[str, object], headroom: list[str] | None
) -> None:
    page = run_page(*TIMES, peak_memory_bytes=78 * 2**30, system=system)
    run = page.run.model_copy(update={"environment": environment})
    said = {row[0]: row[1:] for row in rows("figures", page.model_copy(update={"run": run}))}
    assert headroom == (said["Memory headroom"][::2] if "Memory headroom" in said else None)


def test_what_no_step_tells_of_memory_is_not_said() -> None:
    assert not {"Peak memory", "Memory headroom"} & {row[0] for row in rows("figures", run_page(1))}


def test_a_run_without_figures_says_why() -> None:
    page = run_page(9.0, withheld="the run was out of memory")
    assert "There are no figures: the run was out of memory." in runs.figures(page, address).text


def outcome(page: RunPage, **changed: object) -> dict[str, str]:
    """The facts at the top of a run's page; `changed` are fields of the run."""
    run = page.run.model_copy(update=changed)
    return {it[0]: it[1] for it in rows("outcome", page.model_copy(update={"run": run}))}


def test_a_second_run_that_was_asked_for_is_a_repeat_and_a_first_one_is_nothing() -> None:
    """The record counts what --repeat asks for; it does not count runs that failed before."""
    assert "run 2 of those that --repeat asked for" == outcome(run_page(1), attempt=2)["Repeat"]
    assert not {"Repeat", "Attempt"} & outcome(run_page(1), attempt=1).keys()


def test_uncommitted_changes_are_told_with_the_outcome() -> None:
    """A run in a clean checkout, or in none, says nothing there."""
    commit = "0123456789abcdef" * 2 + "01234567"
    dirty = outcome(run_page(1), environment={"git_commit": commit, "git_dirty": True})
    assert "made with uncommitted changes to 0123456789ab" == dirty["Recipe's checkout"]
    for known in ({"git_commit": commit, "git_dirty": False}, {"git_dirty": None}, {}):
        assert "Recipe's checkout" not in outcome(run_page(1), environment=known)


def test_a_run_leads_to_the_other_runs_of_its_case_and_says_which_is_in_the_tables(
    store: URL, tmp_path: Path
) -> None:
    """Of 12, 12.1 and 12.2 s the tables show 12.1; of two the faster. Other releases are others."""
    made = [
        write_run(tmp_path, run_id=name, step_times=(seconds,) * 10)
        for name, seconds in (("c", 12.2), ("b", 12.1), ("a", 12.0))
    ]
    stored(store, *made[:2], write_run(tmp_path, run_id="old", release=release("0.9.1")))
    two = {"b": ["c"], "c": ["b (in the tables)"], "old": []}
    assert two == {name: [text for text, _ in links] for name, links in others(store).items()}
    stored(store, made[2])
    assert [("b (in the tables)", "../runs/b.html"), ("c", "../runs/c.html")] == others(store)["a"]


def test_what_the_audit_found_in_a_run_of_no_table_is_said_where_it_is_led_to() -> None:
    flag = Flag(said="1 error", kind="error", anchor="x")
    hidden = run_page(1, case_key="case", flag=flag)
    run = hidden.run.model_copy(update={"run_id": "shown"})
    shown = run_page(1, case_key="case", run_id="shown").model_copy(update={"run": run})
    contents = Contents(results=(shown.result,), runs=(shown, hidden))
    told = [one.data for one in evidence.KIND.pages(contents) if isinstance(one.data, RunPage)]
    assert [["run-1 (1 error)"], ["shown (in the tables)"]] == [
        [link.text for link in one.others] for one in told
    ]


def others(store: URL) -> dict[str, list[tuple[str, object]]]:
    """The other runs of its case that the page of each run leads to."""
    pages = [it.data for it in evidence.KIND.pages(read.stored(store))]
    found = {}
    for page in pages:
        if isinstance(page, RunPage):
            made = BeautifulSoup(runs.outcome(page, address).text, "html.parser")
            links = made.select("tr:has(th:-soup-contains('Other runs')) a")
            found[page.run.run_id] = [(link.get_text(), link["href"]) for link in links]
    return found


def test_a_case_lists_what_is_known_and_the_options() -> None:
    page = run_page(*TIMES, tensor_parallel=2, options={"recompute": "full", "fused": True})
    case = dict(rows("case", page))
    assert "2" == case["TP (tensor parallel size)"]
    assert ("full", "true") == (case["option recompute"], case["option fused"])
    assert not [name for name in case if name.startswith("PP")]


def test_the_environment_leaves_out_what_is_unknown() -> None:
    environment = dict(rows("environment", run_page(*TIMES)))
    assert {"hostname": "node-1", "packages: torch": "2.9.0"} == environment


def test_what_each_rank_recorded_is_told_in_a_line() -> None:
    """By the least and the largest; the file has it of each of thousands of ranks."""
    page = run_page(*TIMES)
    summary = {
        "data_parallel": 2,
        "device": ["cpu"],
        "peak_memory_bytes": [300, 100, 400, 200],
        "num_layers": [2048] * 1024,
        "ranks": [{"rank": 0}, {"rank": 1}],
    }
    told = page.model_copy(update={"run": page.run.model_copy(update={"summary": summary})})
    said = {name: text for name, text in rows("environment", told) if name.startswith("worker")}
    assert {
        "worker: data parallel": "2",
        "worker: device": '["cpu"]',
        "worker: peak memory bytes": "100 (rank 1) to 400 (rank 2), of 4 ranks",
        "worker: num layers": "2048 on each of 1,024 ranks",
        "worker: ranks": "2 entries, in worker.json",
    } == said


def test_a_run_that_tells_nothing_of_its_environment_says_so() -> None:
    """As every log: no heading stands over nothing."""
    page = run_page(*TIMES)
    log = page.model_copy(update={"run": page.run.model_copy(update={"environment": {}})})
    assert "<p>The run kept nothing of its machine and software.</p>" == (
        environment.facts_of(log, address).text.strip()
    )


def test_the_latest_run_is_the_last_that_was_started_or_the_last_log_that_was_read() -> None:
    """A log does not say when it started; of those that were read at once the last comes first."""
    moments = {
        "old": (1, datetime(2026, 1, 2), datetime(2026, 3, 1)),
        "log-a": (2, None, datetime(2026, 2, 1)),
        "log-b": (3, None, datetime(2026, 2, 1)),
        "new": (4, datetime(2026, 2, 2), datetime(2026, 3, 1)),
        "unknown": (5, None, None),
    }
    page = run_page(1)
    made = [
        page.model_copy(update={"run": page.run.model_copy(update={
            "run_id": name, "id": number, "started_at": started, "ingested_at": read_at,
        })})
        for name, (number, started, read_at) in moments.items()
    ]  # fmt: skip
    latest = [one.run.run_id for one in evidence.latest_first(made)]
    assert ["new", "log-b", "log-a", "old", "unknown"] == latest


def test_the_list_of_runs_names_the_logs_and_knows_when_they_were_read(
    store: URL, tmp_path: Path
) -> None:
    """A run directory has a recipe; where there is nothing else there is no such column."""
    stored(store, write_run(tmp_path, run_id="a"))
    assert "Log" not in listed_runs(store)[0]
    ingest([logs.write(tmp_path, name="rep0.log")], store, logs.GIVEN)
    head, *found = listed_runs(store)
    assert {"–", "rep0.log"} == {row[head.index("Log")] for row in found}
    assert all(one.run.ingested_at for one in read.stored(store).runs)


def listed_runs(store: URL) -> list[list[str]]:
    """The rows of the list of runs, its head first."""
    given = [page.result for page in read.stored(store).runs]
    made = table(results_table("Runs", given, RUNS, address)).text
    return [
        [cell.get_text(" ", strip=True) for cell in row.find_all(["th", "td"])]
        for row in BeautifulSoup(made, "html.parser").find_all("tr")
    ]


def test_steps_say_which_are_warm_up_and_where_they_were_read() -> None:
    steps = rows("steps", run_page(*TIMES))
    assert ["1 warm-up", "9.0000", "10.9000", "–", "–", "1"] == steps[1]
    assert "3" == steps[3][0]


def test_a_very_long_run_shows_its_first_steps_and_how_many_there_are_more() -> None:
    page = run_page(*[1.0] * (MOST_STEPS + 7))
    assert MOST_STEPS == len(rows("steps", page)) - 1
    assert "In the steps file: 7 more steps." in runs.steps(page, address).text


def test_the_drawing_is_the_same_each_time_and_holds_no_date() -> None:
    first, again = step_times(run_page(*TIMES)), step_times(run_page(*TIMES))
    assert first == again
    assert first is not None
    assert "metadata" not in first.text
    assert not re.search(r"20\d\d-\d\d-\d\d", first.text)


def test_the_drawing_tells_a_screen_reader_what_it_shows() -> None:
    drawn = step_times(run_page(*TIMES))
    assert drawn is not None
    svg = ElementTree.fromstring(drawn.text).find(f"{SVG}svg")
    assert svg is not None
    assert "img" == svg.get("role")
    assert "Step times of run-1" == svg.findtext(f"{SVG}title")
    assert svg.findtext(f"{SVG}desc") == (
        "10 step times, of steps 1 to 10; those up to step 2 are warm-up and shaded; between 4.000 "
        "and 9.000 seconds, median of the window 4.050 seconds."
    )


@pytest.mark.parametrize(
    ("numbers", "warmup_steps", "expected"),
    [
        ((1, 10, 20), 10, "3 step times, of steps 1 to 20; those up to step 10 are warm-up"),
        ((50,), 49, "1 step time, of step 50; those up to step 49 are warm-up"),
        ((1001, 1002), 0, "2 step times, of steps 1,001 to 1,002; none is warm-up;"),
    ],
)
def test_the_drawing_counts_no_lines_of_a_log_as_steps(
    numbers: tuple[int, ...], warmup_steps: int, expected: str
) -> None:
    page = run_page(*[4.0] * len(numbers), warmup_steps=warmup_steps)
    steps = (
        one.model_copy(update={"step": step}) for one, step in zip(page.steps, numbers, strict=True)
    )
    drawn = step_times(page.model_copy(update={"steps": tuple(steps)}))
    assert drawn is not None
    assert expected in drawn.text


def test_the_drawing_takes_its_colours_from_the_theme() -> None:
    drawn = step_times(run_page(*TIMES))
    assert drawn is not None
    assert set() == set(re.findall(r"(?:fill|stroke): *(#\w+)", drawn.text))
    assert "var(--perf-warmup" in drawn.text


def test_a_run_of_one_step_has_a_drawing_and_a_run_of_none_has_words() -> None:
    assert step_times(run_page(9.0, step_time_s=None)) is not None
    assert "The run left no step." in runs.chart(run_page(), address).text


def lines_of(page: RunPage) -> dict[str, str]:
    """The text behind each link of the table of steps, by the step's number."""
    made = BeautifulSoup(runs.steps(page, address).text, "html.parser")
    found = {}
    for row in made.select("tbody tr"):
        href = row.select("a")[-1]["href"]
        line = made.select_one(f"[id='{str(href).removeprefix('#')}']")
        assert line is not None
        found[row.get_text(" ", strip=True).split()[0]] = line.get_text()
    return found


def test_each_step_of_a_run_leads_to_the_line_that_it_was_read_from(
    store: URL, tmp_path: Path
) -> None:
    stored(store, write_run(tmp_path, run_id="one", step_times=(9.0, 4.1, 4.0)))
    [page] = read.stored(store).runs
    said = {step: json.loads(line.lstrip("123")) for step, line in lines_of(page).items()}
    assert {"1": 9.0, "2": 4.1, "3": 4.0} == {
        step: line["step_time_s"] for step, line in said.items()
    }


def test_the_lines_of_a_log_have_no_colours_and_no_markup(sqlite: URL, tmp_path: Path) -> None:
    """A step stands on the third line here, behind a word in red."""
    step = logs.step_line(0, 1, 2.5).rstrip("\n")
    text = f"<b>begin</b>\n\n\x1b[31m0: \x1b[0m{step} | <i>note</i>\n"
    options = Options(PageContext(release="2.0"), logs=LogOptions(logs.SET, window="last"))
    ingest([logs.write(tmp_path / "log", text)], sqlite, options)
    [page] = read.stored(sqlite).runs
    assert {"1": f"30: {step} | <i>note</i>"} == lines_of(page)


def test_of_a_large_file_no_line_is_shown(
    sqlite: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "MOST_LISTED_BYTES", 10)
    stored(sqlite, write_run(tmp_path, run_id="one"))
    [page] = read.stored(sqlite).runs
    assert {} == page.lines
    assert "<details>" not in runs.steps(page, address).text
    assert "1" == rows("steps", page)[1][-1]
