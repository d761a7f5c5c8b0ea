"""The pages beside comparison, results and runs, run without a browser on real stores."""

import shutil
from pathlib import Path

import pytest
from sqlalchemy import URL
from streamlit.testing.v1 import AppTest

import dashboards
from dashboards import data, upload
from perfdb.record import Figures, Release
from tests import logs
from tests.dashboards.test_pages import FASTER, listed, matched, shown, unescaped
from tests.factories import TEN_STEPS, case, published, release, stored, write_run

APP = Path(dashboards.__file__).with_name("app.py")


def page(module: str, function: str = "show", **asked: str) -> AppTest:
    """A page, opened with what its address asks for."""
    app = AppTest.from_string(f"from dashboards.views import {module}\n{module}.{function}()")
    for name, value in asked.items():
        app.query_params[name] = value
    return shown(app)


def three_systems_and_three_sizes(url: URL, folder: Path) -> None:
    """Two releases of two systems, a CPU test, and NeMo on 8, 16 and 32 GPUs."""
    nemo = Release(framework="nemo", version="25.04")
    rates = {8: 12_000, 16: 11_400, 32: 10_800}
    rows = [
        published(
            case=case(framework="nemo", num_gpus=gpus, global_batch_size=16 * gpus), line=line,
            release=nemo, figures=Figures(tokens_per_sec_per_gpu=rate),
        )
        for line, (gpus, rate) in enumerate(rates.items(), start=7)
    ]  # fmt: skip
    b200 = case(system="dgx-b200")
    on_cpu = case(system="cpu", num_gpus=1, context_parallel=1)
    stored(
        url,
        write_run(folder, run_id="old", step_times=TEN_STEPS),
        write_run(folder, run_id="new", release=release("0.16.1"), step_times=FASTER),
        write_run(folder, run_id="b200", case=b200, release=release("0.16.1"),
                  step_times=[it / 2 for it in TEN_STEPS]),
        write_run(folder, run_id="cpu", case=on_cpu, release=release("0.16.1")),
        *rows,
    )  # fmt: skip


@pytest.fixture
def filled(shows) -> URL:
    return shows(three_systems_and_three_sizes)


def test_the_first_page_is_the_newest_comparison(filled: URL) -> None:
    """12.15 s and 9.72 s: B does the same in 0.8 of the time, 1.25 times as fast."""
    app = shown(AppTest.from_file(str(APP)))
    assert "Overview" == app.title[0].value
    figures = {metric.label: metric.value for metric in app.metric}
    assert ("+25.0%", "1", "2") == tuple(figures[it] for it in ("Mean change", "▲ faster", "New"))
    assert "runs?run=new&with=old" == matched(app)[0]["Runs"]
    assert ["megatron-core 0.16.0"] == listed(app.query_params["a"])


def test_two_systems_have_a_ratio_and_no_verdict(filled: URL) -> None:
    """12.15 s on eight H100 against 6.075 s on as many B200; the CPU is not among them."""
    app = page("compare", compare="Two systems", system_a="dgx-h100", system_b="dgx-b200")
    assert ["DGX-B200", "DGX-H100"] == app.selectbox(key="system_a").options
    [row] = matched(app)
    assert ("1.600", "8 → 8") == (row["B/A"], row["GPUs"])
    assert "Verdict" not in row
    same = page("compare", compare="Two systems", system_a="dgx-h100", system_b="dgx-h100")
    assert "the same system" in same.info[0].value


def test_matches_are_narrowed_to_a_group_of_verdicts(filled: URL) -> None:
    app = page("compare", a="megatron-core 0.16.0", b="megatron-core 0.16.1", only="faster")
    assert ["All 1", "Faster: 1"] == app.selectbox(key="only").options
    assert ["▲ faster"] == [row["Verdict"] for row in matched(app)]


def test_a_model_has_its_best_configuration_on_each_system_and_no_cpu(filled: URL) -> None:
    app = page("history", "show_model")
    table = app.dataframe[0].value
    assert ["DGX-B200", "DGX-H100"] == list(table["system_title"])
    assert ["runs?run=b200", "runs?run=new"] == list(table["run_link"])
    assert ["llama3-8b"] == listed(app.query_params["model"])


def test_a_system_has_the_best_of_each_model_and_a_cpu_where_it_is_asked_for(filled: URL) -> None:
    app = page("history", "show_system")
    assert ["dgx-h100"] == listed(app.query_params["system"])
    assert ["Llama 3 8B"] == list(app.dataframe[0].value["model_title"])
    cpu = page("history", "show_system", system="cpu", figure="Tokens/s/GPU")
    assert ["runs?run=cpu"] == list(cpu.dataframe[0].value["run_link"])


def test_scaling_has_efficiency_and_days_for_the_tokens(filled: URL) -> None:
    """10,800 of 12,000 are 90 %; 2 × 10¹² tokens at 32 × 10,800 are 66.98 days."""
    app = page("scaling", system="dgx-h100", tokens="2")
    last = app.dataframe[0].value.iloc[-1]
    assert (32, 0.9) == (last["GPUs"], round(last["Efficiency"], 6))
    assert 66.98 == pytest.approx(last["Days"], abs=0.01)
    one_size = page("scaling", system="dgx-b200")
    assert "at one number of GPUs only" in unescaped(one_size.info[0].value)


def test_an_estimate_is_from_the_nearest_result_or_refused(filled: URL) -> None:
    """Llama 3 8B on DGX-H100 is known on 8 to 32 GPUs: 64 are near, 129 are not."""
    app = page("whatif", system="dgx-h100", gpus="64", price="2")
    figures = {metric.label: metric.value for metric in app.metric}
    assert ("10,800", "25,720", "51,440") == tuple(
        figures[name] for name in ("Tokens/s/GPU", "GPU-hours", "Cost")
    )
    assert "measured on 32 GPUs, 2 times fewer than asked" in unescaped(app.warning[0].value)
    far = page("whatif", system="dgx-h100", gpus="129")
    assert "nothing is near" in far.warning[0].value
    assert [] == list(far.metric)


def test_findings_are_listed_gravest_first_and_narrowed(filled: URL, tmp_path: Path) -> None:
    impossible = write_run(tmp_path, run_id="fast", case=case(model="llama3-70b"))
    stored(filled, impossible)
    app = page("findings")
    assert {"error", "warning"} >= set(app.multiselect(key="kind").value)
    table = app.dataframe[0].value
    assert "error" == table["Kind"].iloc[0]
    assert "peak" in set(table["Rule"])
    app.multiselect(key="rule").set_value(["peak"])
    assert {"peak"} == set(shown(app).dataframe[0].value["Rule"])
    assert "peak" in listed(app.query_params["rule"])


def test_every_page_says_what_is_missing_in_a_store_of_one_release(sqlite, monkeypatch) -> None:
    monkeypatch.setenv("PERFDB_URL", str(sqlite))
    stored(sqlite, published())
    only = "Only NeMo Framework 25.04 has results: there is nothing to compare it with."
    for name in ("overview", "compare"):
        assert only == unescaped(page(name).info[0].value)
    assert "of one system" in page("compare", compare="Two systems").info[0].value
    assert "one number of GPUs only" in unescaped(page("scaling").info[0].value)
    assert "No audit findings." == page("findings").info[0].value
    for name, function in (("explore", "show"), ("history", "show_model"), ("whatif", "show"),
                           ("history", "show_system")):  # fmt: skip
        page(name, function)


class TestOwnFile:
    def test_a_run_is_laid_over_the_official_results_and_stored_nowhere(self, filled, tmp_path):
        """Half the step time of the newest release: twice as fast."""
        before = data.store().state
        mine = tmp_path / "mine"
        write_run(mine, run_id="own", release=release("0.16.1"),
                  step_times=[it / 2 for it in FASTER])  # fmt: skip
        archive = Path(shutil.make_archive(str(tmp_path / "own"), "zip", mine))
        app = page("mine")
        app.file_uploader(key="mine").upload(archive.name, archive.read_bytes(), "application/zip")
        shown(app)
        assert [] == list(app.error)
        assert ["Unofficial: your file", "Against a release"] == [
            it.value for it in app.subheader if "official results" not in it.value
        ][:2]
        app.selectbox(key="one against").select("megatron-core 0.16.1")
        assert "2.000" == matched(shown(app))[0]["B/A"]
        assert before == data.store().state

    def test_what_cannot_be_read_has_the_words_of_ingest(self, tmp_path, monkeypatch, perfdb):
        """A log that does not say its model, and a file that is no log."""
        monkeypatch.chdir(tmp_path)
        log, junk = logs.write(tmp_path), tmp_path / "junk.log"
        junk.write_text("nothing\n")
        for path in (log, junk):
            _, _, err = perfdb("ingest", path.name)
            found = upload.read(path.name, path.read_bytes())
            assert () == found.results
            for words in found.rejected:
                assert words in err
            assert found.rejected
        stated = upload.read(log.name, log.read_bytes(), [*logs.SET, "release=2.0"])
        assert 1 == len(stated.results)

    def test_a_file_has_a_bounded_size_and_cannot_name_another_folder(self, tmp_path):
        large = upload.read("a.log", b"\0" * ((upload.MOST_MIB << 20) + 1))
        assert ("a.log: larger than 64 MiB; ingest it into a store of your own",) == large.rejected
        outside = tmp_path / "x.md"
        assert upload.read(str(outside), b"no page").rejected
        assert not outside.exists()
