"""The dashboard's pages, run without a browser on real stores."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from sqlalchemy import URL
from streamlit.testing.v1 import AppTest

import dashboards
from dashboards import charts, data
from dashboards.findings import plain
from perfdb import aggregation
from perfdb.ingest import ingest
from perfdb.queries.best import EVERYTHING
from perfdb.queries.scope import Scope
from perfdb.record import Figures, Outcome, Release, Result
from perfdb.verify.figures import Asked
from perfdb.verify.recompute import recompute
from tests import logs
from tests.factories import (
    TEN_STEPS,
    case,
    published,
    release,
    steps,
    stored,
    write_run,
    write_steps,
)
from tests.trees import writing

APP = Path(dashboards.__file__).with_name("app.py")
FASTER = tuple(time * 0.8 for time in TEN_STEPS)
"""Seconds; the median of the eight after the warm-up is 0.8 × 12.15 = 9.72."""


def compared() -> None:
    from dashboards.views import compare

    compare.show()


def explored() -> None:
    from dashboards.views import explore

    explore.show()


def looked_into() -> None:
    from dashboards.views import runs

    runs.show()


def everything(**asked: str) -> AppTest:
    """The page *Explore* with all filters open but those that are asked for."""
    app = AppTest.from_function(explored)
    for name, value in ({"release": "all", "precision": "all"} | asked).items():
        app.query_params[name] = value
    return app


def two_measured_and_two_published(url: URL, folder: Path) -> None:
    """Two measured releases that share a case, a failed run, and two published releases."""
    failed = {"outcome": Outcome.OUT_OF_MEMORY, "error": "CUDA out of memory"}
    wan = published(
        case=case(framework="dfm", model="wan2.1-14b"),
        release=Release(framework="dfm", version="26.02"),
        figures=Figures(model_tflops_per_sec_per_gpu=820),
    )
    stored(
        url,
        write_run(folder, run_id="old", step_times=TEN_STEPS),
        write_run(folder, run_id="new", release=release("0.16.1"), step_times=FASTER),
        write_run(folder, run_id="oom", case=case(model="llama3-70b"), **failed),
        published(release=Release(framework="nemo", version="25.10")),
    )
    stored(url, wan, page="wan.md")


@pytest.fixture
def filled(shows) -> URL:
    return shows(two_measured_and_two_published)


def two_impossible(url: URL, folder: Path) -> None:
    """The two measured releases in a third of the time, which no H100 can; beside them a row."""
    runs = [
        write_run(
            folder, run_id=run_id, release=release(version), step_times=[it / 3 for it in times]
        )
        for run_id, version, times in (("old", "0.16.0", TEN_STEPS), ("new", "0.16.1", FASTER))
    ]
    stored(url, *runs, published())


@pytest.fixture
def impossible(shows) -> URL:
    return shows(two_impossible)


def shown(app: AppTest) -> AppTest:
    """The page after a run without an error."""
    app.run(timeout=60)
    assert [] == [error.message for error in app.exception]
    return app


def drawn(metric: str) -> list[Result]:
    """The results of a chart of all systems, models and origins."""
    store = data.store()
    by = ("system", "model", "origin")
    return list(data.ranked(store, metric, by, EVERYTHING, data.wrong(store)).results)


def unescaped(markdown: str) -> str:
    """A text as a browser shows it."""
    return re.sub(r"\\(.)", r"\1", markdown)


def matched(app: AppTest) -> list[dict[str, str]]:
    """The rows of the table of matches, by column; of a link the address."""
    head, *rows = ElementTree.fromstring(app.html[0].value).iter("tr")
    names = [one.text for one in head]
    cells = [[one.text or one[0].get("href") for one in row] for row in rows]
    return [dict(zip(names, row, strict=True)) for row in cells]


def listed(parameter: str | list[str]) -> list[str]:
    """The values of a parameter of the address: a test writes a list and a page a text."""
    return [parameter] if isinstance(parameter, str) else parameter


class TestCompare:
    def page(self, a: str, b: str) -> AppTest:
        app = AppTest.from_function(compared)
        app.query_params["a"], app.query_params["b"] = a, b
        return shown(app)

    def test_matched_cases_have_a_ratio_and_a_verdict_in_words(self, filled):
        """Both runs use 60 GiB: another figure can be chosen, and more memory is worse."""
        app = self.page("megatron-core 0.16.0", "megatron-core 0.16.1")
        row = matched(app)[0]
        assert ("Llama 3 8B", "1.250", "▲ faster") == (row["Model"], row["B/A"], row["Verdict"])
        assert "1" == row["No."], "by this number the chart names it"
        assert ("10,788", "13,485", "measured") == (row["A"], row["B"], row["Source"])
        assert "Only in Megatron-Core 0.16.0: 1" in [unescaped(one.label) for one in app.expander]
        assert app.dataframe[0].value["Model"][0].startswith("Llama 3 70B")
        assert "runs?run=new&with=old" == row["Runs"]
        app.selectbox(key="figure").select("Peak memory (bytes)")
        row = matched(shown(app))[0]
        assert ("64,424,509,440", "= same") == (row["A"], row["Verdict"])
        assert {"▲ better", "▼ worse"} < {metric.label for metric in app.metric}
        assert "in Peak memory (bytes)." in app.caption[0].value

    def test_releases_that_cannot_be_compared_say_why_and_an_unknown_one_is_replaced(self, filled):
        """The choice is in the address, and releases stay text."""
        app = self.page("nemo 25.10", "dfm 26.02")
        names = "NeMo Framework 25.10 and NeMo DFM 26.02"
        assert f"Nothing to compare: {names} share no work" in unescaped(app.info[0].value)
        assert "different models (Llama 3 8B / WAN 2.1 14B)" in unescaped(app.info[0].value)
        app = self.page("nemo 25.10", "nemo 25.10")
        assert ["A and B are both NeMo Framework 25.10: choose another release for one."] == [
            unescaped(info.value) for info in app.info
        ]
        assert ([], []) == (list(app.html), list(app.subheader))
        app = self.page("nemo 99", "megatron-core 0.16.1")
        assert [
            "The store has no release a “nemo 99” with results that count; Megatron-Core 0.16.0 is "
            "shown instead."
        ] == [unescaped(warning.value) for warning in app.warning]
        assert 1 == len(matched(app))
        assert ["megatron-core 0.16.0"] == listed(app.query_params["a"])
        assert "NeMo Framework 25.10" in app.selectbox[0].options

    def test_a_release_that_regains_what_the_one_before_lost_has_recovered(self, filled, tmp_path):
        """0.16.2 is as slow as 0.16.0, and 0.16.3 as fast as 0.16.1."""
        for version, times in (("0.16.2", TEN_STEPS), ("0.16.3", FASTER)):
            stored(filled, write_run(tmp_path, run_id=version, release=release(version),
                                     step_times=times))  # fmt: skip
        app = self.page("megatron-core 0.16.2", "megatron-core 0.16.3")
        assert "△ recovered" == matched(app)[0]["Verdict"]

    def test_a_row_with_findings_is_marked_unless_they_are_accepted(
        self, impossible, tmp_path, monkeypatch
    ):
        """4.05 s for 128 × 8,192 tokens on 8 GPUs is 1,660 TFLOP/s on a peak of 989."""
        app = self.page("megatron-core 0.16.0", "megatron-core 0.16.1")
        row = matched(app)[0]
        assert "A ⚑ 1 error" in row["Audit"]
        assert ("1.250", "⚑ not judged") == (row["B/A"], row["Verdict"])
        assert "measured, ⚑ open errors" == row["Source"]
        counts = {metric.label: metric.value for metric in app.metric}
        assert ("0", "1") == (counts["▲ faster"], counts["⚑ not judged"])
        (said,) = [one for one in app.expander if one.label.startswith("⚑ What the audit says: ")]
        assert "of the dense peak" in said.markdown[0].value
        assert "Left out: 1 with an error that the audit found." in [
            caption.value for caption in app.caption
        ]
        reviewed = tmp_path / "data" / "acknowledged.yaml"
        reviewed.parent.mkdir()
        reviewed.write_text(
            "- {rule: peak, results: 2, reason: times are invented, by: A, date: 2026-01-31}\n"
            "- {rule: flops_formula, results: 2, reason: the same, by: A, date: 2026-01-31}\n"
        )
        monkeypatch.chdir(tmp_path)
        app = self.page("megatron-core 0.16.0", "megatron-core 0.16.1")
        row = matched(app)[0]
        assert ("▲ faster", True) == (row["Verdict"], "explained" in row["Audit"])
        assert not any("Left out" in caption.value for caption in app.caption)

    def test_a_reviewed_file_that_cannot_be_read_is_named(self, filled, tmp_path, monkeypatch):
        reviewed = tmp_path / "data" / "acknowledged.yaml"
        reviewed.parent.mkdir()
        reviewed.write_text("- rule: no_such_rule\n")
        monkeypatch.chdir(tmp_path)
        app = shown(AppTest.from_file(str(APP)))
        assert "data/acknowledged.yaml:1" in unescaped(app.info[0].value)
        assert f"perfdb audit --db {filled.render_as_string()}" == app.code[0].value


class TestExplore:
    def test_it_opens_on_the_newest_release_in_one_precision(self, filled):
        app = shown(AppTest.from_function(explored))
        assert ["megatron-core 0.16.1"] == app.multiselect(key="release").value
        assert ["bf16"] == app.multiselect(key="precision").value
        assert ["Megatron-Core 0.16.1"] == list(app.dataframe[0].value["release_name"])
        assert unescaped(app.caption[0].value) == (
            "Only Megatron-Core 0.16.1, BF16. Change the filters in the sidebar."
        )
        app.multiselect(key="release").set_value([])
        assert 5 == len(shown(app).dataframe[0].value)
        assert ["all"] == listed(app.query_params["release"])

    def test_repeats_are_counted(self, filled, tmp_path):
        """Five cases of six results: the repeat of 'old' is behind it."""
        stored(filled, write_run(tmp_path, run_id="again", step_times=FASTER))
        app = shown(everything())
        assert (
            "5 results, one for each case, release and origin; repeats, and runs without figures: "
            "1. – means unknown. (computed): it follows from what the page states."
        ) == app.caption[1].value

    def test_a_row_with_findings_is_marked_and_in_no_chart(self, impossible):
        app = shown(everything())
        table = app.dataframe[0].value
        marked = table[table["run_link"] == "runs?run=old"].iloc[0]
        assert marked["audit"].startswith("⚑ 1 error")
        assert "Results with an error that the audit found are left out." in app.caption[0].value
        assert ["published"] == [it.origin for it in drawn("tokens_per_sec_per_gpu")]
        assert any("of the dense peak" in one.value for one in app.expander[0].markdown)
        app = AppTest.from_function(looked_into)
        app.query_params["run"] = "old"
        assert "of the dense peak" in shown(app).error[0].value.replace("\\", "")

    def test_results_are_shown_with_origin_source_and_a_link_to_their_run(self, filled):
        """711 TFLOP/s/GPU of the 989.4 that a DGX-H100's GPU has in BF16 are 71.9 % MFU."""
        stored(filled, published(case=case(qualifiers=("2-node",), task="lora")), page="lora.md")
        table = shown(everything()).dataframe[0].value
        measured = table[table["run_link"] == "runs?run=old"].iloc[0]
        assert "measured Megatron-Core 0.16.0" == f"{measured['origin']} {measured['release_name']}"
        assert measured["source"].endswith("old/steps.jsonl")
        [nemo] = table[table["release_name"] == "NeMo Framework 25.10"].to_dict("records")
        assert "data/published/page.md:7" == nemo["source"]
        assert 0.719 == pytest.approx(nemo["mfu"], abs=5e-4)
        failed = table[table["run_link"] == "runs?run=oom"].iloc[0]
        assert pd.isna(failed["tokens_per_sec_per_gpu"])
        assert "the run ran out of memory" == failed["withheld"]
        two_nodes = table[table["model_title"] == "Llama 3 8B (2-node)"].iloc[0]
        assert ("LoRA", "BF16") == (two_nodes["task"], two_nodes["precision"])

    def test_filters_in_the_address_narrow_the_results_and_unknown_ones_are_left_out(self, filled):
        app = everything(origin="published", release="nemo 25.10")
        assert ["NeMo Framework 25.10"] == list(shown(app).dataframe[0].value["release_name"])
        app.multiselect(key="origin").set_value(["measured"])
        assert "No result is like this" in unescaped(shown(app).info[0].value)

        app = everything(task="pretrain", model="Nope")
        app.query_params["system"] = ["dgx-h100", "dgx-x9"]
        said = "with results that count"
        assert {
            f"The store has no model “Nope” {said}; all are shown instead.",
            f"The store has no system “dgx-x9” {said}; the others are shown instead.",
        } == {unescaped(warning.value) for warning in shown(app).warning}
        assert [] == listed(app.query_params.get("model", []))

    def test_what_is_downloaded_is_what_the_command_exports(self, filled, perfdb):
        """Also where every figure is a whole number."""
        from dashboards.views import explore

        _, exported, _ = perfdb("export", "results", "--format", "csv")
        rows = data.rows(data.store(), EVERYTHING)
        assert exported == explore.exported(rows)
        nemo = [line for line in exported.splitlines(keepends=True)[1:] if line.startswith("nemo,")]
        of_nemo = [row for row in rows if row["framework"] == "nemo"]
        assert nemo == explore.exported(of_nemo).splitlines(keepends=True)[1:]


class TestRuns:
    def test_a_run_in_the_address_is_shown_or_else_the_newest(self, filled, tmp_path):
        """With figures, command, machine and files; one that failed says why it has no figures.

        The newest started last, in the midst of the alphabet.
        """
        app = AppTest.from_function(looked_into)
        app.query_params["run"] = "old"
        shown(app)
        figures = {metric.label: metric.value for metric in app.metric}
        assert ("12.15", "10,788") == (figures["Step time (s)"], figures["Tokens/s/GPU"])
        assert "torchrun train.py" == app.code[0].value
        machine, files = (table.value for table in app.dataframe[1:3])
        assert ("hostname", "node-1") == tuple(machine.iloc[0])
        assert {"run.json", "steps.jsonl"} <= set(files["name"])

        app = AppTest.from_function(looked_into)
        app.query_params["run"] = "oom"
        errors, warnings = shown(app).error, app.warning
        assert ["out_of_memory: CUDA out of memory"] == [unescaped(one.value) for one in errors]
        found = [unescaped(one.value) for one in warnings]
        assert ["No figures: the run ran out of memory."] == found
        work = "Pre-training · BF16 · 8 × DGX-H100 · sequence 8,192 · GBS 128"
        configured = f"Megatron-Core 0.16.0 · Llama 3 70B · {work} · MBS 1, TP 1, PP 1, CP 2"
        assert configured in [unescaped(one.value) for one in app.markdown]
        assert "Read from" == unescaped(app.caption[1].value)[:9]

        late = datetime(2026, 5, 1, tzinfo=UTC)
        run = write_run(tmp_path, run_id="nx", started_at=late, ended_at=late + timedelta(hours=1))
        stored(filled, run)
        app = shown(AppTest.from_function(looked_into))
        assert "nx" == app.selectbox[0].value == app.dataframe[0].value["run_name"].iloc[0]

    def test_two_runs_are_held_against_each_other(self, filled):
        """The other is one of the same case, or one that the address names."""
        app = AppTest.from_function(looked_into)
        app.query_params["run"] = "new"
        table = shown(app).dataframe[-1].value
        assert "old" == app.selectbox[-1].value
        expected = [["versions: release", "0.16.0", "0.16.1"],
                    ["steps: step_time_s", "12.150", "9.7200"]]  # fmt: skip
        assert expected == table.to_numpy().tolist()
        app.query_params["with"] = "oom"
        assert "oom" == shown(app).selectbox[-1].value
        fields = app.dataframe[-1].value["Field"].tolist()
        assert {"configuration: model"} <= set(fields)

    @pytest.mark.parametrize(
        ("window", "skipped", "measured"),
        [("skip_warmup(2)", (), [3, 4, 5, 6, 7, 8, 9, 10]), ("window(2,5)", (3,), [2, 4, 5])],
    )
    def test_the_steps_that_the_figures_are_taken_over_are_marked(
        self, filled, tmp_path, window, skipped, measured
    ):
        run = write_run(tmp_path, run_id="one")
        flags = ({"skipped": place in skipped} for place in range(1, 11))
        written = zip(steps(TEN_STEPS), flags, strict=True)
        write_steps(run, [one.model_copy(update=flag) for one, flag in written])
        stored(filled, run)
        recompute(filled, Scope(), Asked(aggregation.named(window)))
        found = data.steps(data.store(), "one")
        rows = charts.step_times(found)["data"]["values"]
        assert measured == rows.loc[rows["phase"] == "measured", "step"].tolist()

    def test_a_run_of_a_log_says_neither_recipe_start_nor_command(
        self, sqlite, tmp_path, monkeypatch
    ):
        """Beside a run that says them, and alone in the list; no heading stands over nothing."""
        monkeypatch.setenv("PERFDB_URL", str(sqlite))
        ingest([logs.write(tmp_path / "a")], sqlite, logs.GIVEN)
        alone = shown(AppTest.from_function(looked_into))
        stored(sqlite, write_run(tmp_path, run_id="old", step_times=TEN_STEPS))
        both = shown(AppTest.from_function(looked_into))

        assert [[True], [True, False]] == [
            sorted(app.dataframe[0].value["recipe"].isna(), reverse=True) for app in (alone, both)
        ]
        headings = [heading.value for heading in alone.subheader]
        assert ["Step time", "Loss"] == headings[:2]
        assert "Command" not in headings


class TestWithoutData:
    def test_a_store_of_published_results_has_no_runs(self, sqlite, monkeypatch):
        monkeypatch.setenv("PERFDB_URL", str(sqlite))
        stored(sqlite, published())
        assert "published results only" in shown(AppTest.from_function(looked_into)).info[0].value

    def test_a_missing_and_an_empty_store_say_how_to_fill_it(self, sqlite, tmp_path, monkeypatch):
        monkeypatch.setenv("PERFDB_URL", str(tmp_path / "none.sqlite"))
        app = shown(AppTest.from_file(str(APP)))
        assert f"{tmp_path}/none.sqlite: no database here" in unescaped(app.info[0].value)
        assert f"perfdb ingest runs/ --db sqlite:///{tmp_path}/none.sqlite" in app.code[0].value
        monkeypatch.setenv("PERFDB_URL", str(sqlite))
        app = shown(AppTest.from_file(str(APP)))
        assert "The store is empty." == unescaped(app.info[0].value)
        assert f"perfdb run recipes/\nperfdb ingest runs/ --db {sqlite}" == app.code[0].value

    @pytest.mark.parametrize(("schema", "helps"), [("0000", True), ("9999", False)])
    def test_a_store_of_another_schema_is_brought_up_to_date_where_it_is_older(
        self, sqlite, monkeypatch, schema, helps
    ):
        monkeypatch.setenv("PERFDB_URL", str(sqlite))
        with writing(sqlite) as connection:
            connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{schema}'")
        app = shown(AppTest.from_file(str(APP)))
        upgrade = f"perfdb db upgrade --db {sqlite}"
        assert helps == (upgrade in unescaped(app.info[0].value))
        other = "perfdb dashboard --db sqlite:///FILE"
        assert (upgrade if helps else other) == app.code[0].value


def test_what_is_ingested_later_is_shown_at_the_next_click(store, tmp_path, monkeypatch):
    monkeypatch.setenv("PERFDB_URL", store.render_as_string(hide_password=False))
    stored(store, write_run(tmp_path, run_id="first"))
    app = shown(AppTest.from_function(looked_into))
    assert ["first"] == list(app.dataframe[0].value["run_id"])
    stored(store, write_run(tmp_path, run_id="later", release=release("0.16.2")))
    assert ["later", "first"] == list(shown(app).dataframe[0].value["run_id"])


def test_a_link_to_a_figure_that_is_not_there_says_so(filled: URL) -> None:
    for page, key in ((compared, "figure"), (explored, "chart")):
        app = AppTest.from_function(page)
        app.query_params[key] = "mfu"
        [warned] = [unescaped(warning.value) for warning in shown(app).warning]
        assert warned.startswith("There is no figure “mfu”: it is one of ")


def test_the_browsers_back_shows_what_the_address_says(filled: URL) -> None:
    app = AppTest.from_function(compared)
    app.query_params["a"], app.query_params["b"] = "megatron-core 0.16.0", "megatron-core 0.16.1"
    shown(app)
    app.selectbox(key="a").select("nemo 25.10")
    shown(app)
    assert ["nemo 25.10"] == listed(app.query_params["a"])
    app.query_params["a"] = "megatron-core 0.16.0"
    assert "megatron-core 0.16.0" == shown(app).selectbox(key="a").value
    assert 1 == len(matched(app))


ODD = "**a** _b_ [c](d) $e$ :rocket: GPTModel.__init__()"
"""What Markdown would take for its own signs."""


def test_names_and_errors_are_shown_as_they_are(sqlite, tmp_path, monkeypatch):
    monkeypatch.setenv("PERFDB_URL", str(sqlite))
    odd = case(model=ODD)
    stored(
        sqlite,
        write_run(tmp_path, run_id="old", case=odd),
        write_run(tmp_path, run_id="new", case=odd, release=release("0.16.1")),
        write_run(tmp_path, run_id="bad", outcome=Outcome.FAILED, error=ODD),
        write_run(tmp_path, run_id="odd", case=odd, release=release(ODD)),
    )
    failed = AppTest.from_function(looked_into)
    failed.query_params["run"] = "bad"
    assert [plain(f"failed: {ODD}")] == [error.value for error in shown(failed).error]
    app = AppTest.from_function(compared)
    app.query_params["b"] = f"megatron-core {ODD}"
    assert plain(f"Megatron-Core {ODD}") in shown(app).caption[0].value
