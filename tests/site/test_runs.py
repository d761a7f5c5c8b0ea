"""The parts of a run's page: figures with their formulas, the drawing, the steps."""

import re
from xml.etree import ElementTree

from bs4 import BeautifulSoup

from perfdb.site import runs
from perfdb.site.charts import step_times
from perfdb.site.data import RunPage
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
    figures = {row[0]: row[1:] for row in rows("figures", run_page(*TIMES, peak_tflops=989.0))}
    assert ["4.050", "median of 8 steps: skip_warmup(2)"] == figures["Step time (s)"][::2]
    assert "128 × 8,192 ÷ 4.050 ÷ 8" == figures["Tokens/s/GPU"][2]
    assert ["43.1%", "1,666 ÷ 989.0"] == figures["MFU"][::2]


def test_the_job_has_its_rate_its_days_and_what_memory_it_left_free() -> None:
    """By hand: 32,363.5 × 8 tokens/s; 10¹² of them in days; 64 GiB of a GPU's 80 GB."""
    page = run_page(*TIMES)
    full = page.steps[4].model_copy(update={"peak_memory_bytes": 64 * 2**30})
    steps = (*page.steps[:4], full, *page.steps[5:])
    figures = {row[0]: row[1:] for row in rows("figures", page.model_copy(update={"steps": steps}))}
    assert ["258,908", "32,364 × 8"] == figures["Tokens/s, all GPUs"][::2]
    assert "44.70" == figures["Days to 1T tokens"][0]
    assert ["64.00 GiB", "68,719,476,736 bytes"] == figures["Peak memory"][::2]
    assert ["14.1%", "1 − 68.7 GB ÷ 80 GB"] == figures["Memory headroom"][::2]


def test_what_no_step_tells_of_memory_is_not_said() -> None:
    assert not {"Peak memory", "Memory headroom"} & {row[0] for row in rows("figures", run_page(1))}


def test_a_run_without_figures_says_why() -> None:
    page = run_page(9.0, withheld="the run was out of memory")
    assert "There are no figures: the run was out of memory." in runs.figures(page, address).text


def test_a_case_lists_what_is_known_and_the_options() -> None:
    page = run_page(*TIMES, tensor_parallel=2, options={"recompute": "full", "fused": True})
    case = dict(rows("case", page))
    assert "2" == case["TP (tensor parallel size)"]
    assert ("full", "true") == (case["option recompute"], case["option fused"])
    assert not [name for name in case if name.startswith("PP")]


def test_the_environment_leaves_out_what_is_unknown() -> None:
    environment = dict(rows("environment", run_page(*TIMES)))
    assert {"hostname": "node-1", "packages: torch": "2.9.0"} == environment


def test_steps_say_which_are_warm_up_and_where_they_were_read() -> None:
    steps = rows("steps", run_page(*TIMES))
    assert ["1 warm-up", "9.0000", "10.9000", "–", "–", "1"] == steps[1]
    assert "3" == steps[3][0]


def test_a_very_long_run_shows_its_first_steps_and_how_many_there_are_more() -> None:
    page = run_page(*[1.0] * (runs.MOST_STEPS + 7))
    assert runs.MOST_STEPS == len(rows("steps", page)) - 1
    assert "7 more steps are in the steps file." in runs.steps(page, address).text


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
        "10 steps, of which 2 are warm-up and shaded; between 4.000 and 9.000 seconds, median of "
        "the window 4.050 seconds."
    )


def test_the_drawing_takes_its_colours_from_the_theme() -> None:
    drawn = step_times(run_page(*TIMES))
    assert drawn is not None
    assert set() == set(re.findall(r"(?:fill|stroke): *(#\w+)", drawn.text))
    assert "var(--perf-warmup" in drawn.text


def test_a_run_of_one_step_has_a_drawing_and_a_run_of_none_has_words() -> None:
    assert step_times(run_page(9.0, step_time_s=None)) is not None
    assert "The run left no step." in runs.chart(run_page(), address).text
