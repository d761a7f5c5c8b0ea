"""`perfdb ingest`, `perfdb export` and `perfdb db` as a shell sees them."""

import json
import os
import socket
import struct
import subprocess
from pathlib import Path

import pytest

from perfdb.db import session
from tests import factories
from tests.archives import of_folder, tar, write, zipped
from tests.logs import SET as SET_OF_LOGS
from tests.logs import nemo
from tests.shell import Shell


def test_runs_are_ingested_from_the_current_folder_by_default(
    perfdb: Shell, tmp_path: Path
) -> None:
    """`perfdb ingest`, twice, and what the second one says."""
    factories.write_run(tmp_path / "runs")

    first, second = perfdb("ingest"), perfdb("ingest", "--json")

    found = "findings: 1 info (perfdb audit)\n"
    assert (0, "1 new, 0 revised, 0 unchanged, 0 rejected\n", found) == (
        first.code,
        first.stdout,
        first.stderr,
    )
    told = json.loads(second.stdout)
    [finding] = told.pop("findings")
    counts = {"new": 0, "revised": 0, "unchanged": 1, "withdrawn": 0}
    names = (
        "rejected", "still_running", "unattributed", "notes", "duplicates", "completed",
        "passed_over",
    )  # fmt: skip
    lists = {name: [] for name in names}
    assert (0, counts | lists) == (second.code, told)
    assert "info" == finding["severity"]
    assert (tmp_path / "perfdb.sqlite").is_file()


def test_without_paths_and_without_runs_it_says_what_to_do(perfdb: Shell, tmp_path: Path) -> None:
    """Exit code 2, and no store is made."""
    done = perfdb("ingest")

    assert (2, "") == (done.code, done.stdout)
    assert "there is no folder runs here; name a folder, page, or log to read" in done.stderr
    assert [] == list(tmp_path.iterdir())


def test_a_rejection_is_told_with_its_place_and_exits_with_1(perfdb: Shell, tmp_path: Path) -> None:
    """What is sound is stored all the same."""
    factories.write_run(tmp_path / "runs", run_id="sound")
    factories.write_run(tmp_path / "runs", run_id="broken").record.write_text("{\n")

    told = perfdb("ingest", "--db", "a.sqlite")
    as_json = perfdb("ingest", "--db", "b.sqlite", "--json")

    assert (1, 1) == (told.code, as_json.code)
    assert "1 new, 0 revised, 0 unchanged, 1 rejected\n" == told.stdout
    assert told.stderr.startswith("rejected: runs/broken/run.json:2: Invalid JSON")
    found = json.loads(as_json.stdout)
    [rejected] = found.pop("rejected")
    counts = {name: found[name] for name in ("new", "revised", "unchanged", "withdrawn")}
    assert {"new": 1, "revised": 0, "unchanged": 0, "withdrawn": 0} == counts
    assert ("runs/broken/run.json", 2) == (rejected["path"], rejected["line"])
    assert rejected["reason"].startswith("Invalid JSON")
    assert "was it written by another version?" in rejected["reason"]


def test_a_run_still_at_work_is_listed_and_is_no_error(perfdb: Shell, tmp_path: Path) -> None:
    """Exit code 0: the next ingest will read it."""
    here = factories.environment(hostname=socket.gethostname())
    factories.write_run(tmp_path / "runs", outcome=None, environment=here, runner_pid=os.getpid())

    done = perfdb("ingest", "--json")
    assert 0 == done.code
    found = json.loads(done.stdout)
    assert (["runs/llama3-8b_bf16_8gpu-1"], []) == (found["still_running"], found["rejected"])
    told = perfdb("ingest")
    assert "still running: runs/llama3-8b_bf16_8gpu-1\n" == told.stderr
    assert "0 new, 0 revised, 0 unchanged, 0 rejected, 1 still running\n" == told.stdout


NEMO_LOG = nemo((4.0, 2.0))
SET = SET_OF_LOGS[:-1]
"""Not the precision."""


def test_a_log_is_given_what_it_lacks(perfdb: Shell, tmp_path: Path) -> None:
    """First it is unattributed and says the options; with them it is a result of a release."""
    (tmp_path / "train.log").write_text(NEMO_LOG)
    options = [word for setting in SET for word in ("--set", setting)]

    bare = perfdb("ingest", "train.log")
    given = perfdb("ingest", "train.log", *options, "--release", "2.0", "--window", "last")
    [row] = json.loads(perfdb("export", "results", "--format", "json").stdout)

    assert (0, "0 new, 0 revised, 0 unchanged, 0 rejected, 1 unattributed\n") == (
        bare.code,
        bare.stdout,
    )
    assert (
        "unattributed: train.log: names no model, system, num_gpus, sequence_length, task, "
        "release; pass --set model=… --set system=… --set num_gpus=… --set sequence_length=… "
        "--set task=… --release …\n"
    ) == bare.stderr
    assert (0, "1 new, 0 revised, 0 unchanged, 0 rejected\n") == (given.code, given.stdout)
    assert ("llama3-8b", "2.0", "last", 2.0, 128 * 8192 / 2.0 / 8) == tuple(
        row[name]
        for name in ("model", "release", "window", "step_time_s", "tokens_per_sec_per_gpu")
    )


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (["--set", "num_gpu=8"], "--set: num_gpu: no such field; did you mean num_gpus?"),
        (["--set", "num_gpus=eight"], "--set: num_gpus: Input should be a valid integer"),
        (["--set", f"num_gpus={2**63}"], "--set: num_gpus: Input should be less than or equal to"),
        (["--set", "num_gpus"], "--set: 'num_gpus' is not FIELD=VALUE; write --set num_gpus=8"),
        (["--set", "=8"], "--set: '=8' is not FIELD=VALUE"),
        (["--set", "task=sft", "--set", "model=[a"], "--set model=[a: not YAML"),
        (["--set", "system=dgx-h10"], "--set system: no system 'dgx-h10' in the catalogue"),
        (["--set", "task=sft", "--set", "task=lora"], "--set: task: given twice; keep one of them"),
        (["--system", "dgx-h10"], "--system: no system 'dgx-h10' in the catalogue; nearest: dgx-h"),
        (["--format", "nemo3"], "--format: no format 'nemo3'; did you mean nemo2?"),
        (["--window", "first"], "--window: no window 'first'; known: last"),
    ],
)
def test_an_option_for_logs_that_is_wrong_exits_with_2(
    perfdb: Shell, tmp_path: Path, option: list[str], told: str
) -> None:
    """Where, what and what to do; nothing is stored."""
    (tmp_path / "train.log").write_text(NEMO_LOG)

    done = perfdb("ingest", "train.log", *option)

    assert (2, "") == (done.code, done.stdout)
    assert done.stderr.startswith(f"error: {told}")


def test_a_dry_run_shows_what_would_be_stored_and_stores_nothing(
    perfdb: Shell, tmp_path: Path
) -> None:
    """It needs no store and makes none."""
    factories.write_run(tmp_path / "runs", run_id="a")
    factories.write_run(tmp_path / "runs", run_id="b", outcome="out_of_memory", step_times=())

    done = perfdb("ingest", "--dry-run")

    assert 0 == done.code
    assert "runs/a/steps.jsonl: info [few_steps] " in done.stderr
    assert done.stderr.endswith("findings: 1 info (--json lists them)\n")
    assert "2 new (1 without figures: out of memory), 0 revised" in done.stdout
    assert "megatron-core 0.16.0: Llama 3 8B" in done.stdout
    assert "12.15" in done.stdout
    assert "10,788" in done.stdout
    assert "the run ran out of memory" in done.stdout
    assert ["runs"] == [path.name for path in tmp_path.iterdir()]


def test_more_may_be_unpacked_where_the_command_line_says_so(perfdb: Shell, tmp_path: Path) -> None:
    """A zip that says that it holds 2 GiB: refused below that, and then looked into."""
    content = bytearray(zipped([("a.bin", b"1")]))
    struct.pack_into("<L", content, content.index(b"PK\x01\x02") + 24, 2 << 30)
    write(tmp_path / "a.zip", bytes(content))

    few, more = (perfdb("ingest", "a.zip", "--archive-limit", limit) for limit in ("1", "3"))

    assert (
        "rejected: a.zip: unpacks to more than 1 GiB; raise --archive-limit if you trust it\n"
        == few.stderr
    )
    assert "the archive holds no run directory, page or log" in more.stderr


def test_an_export_goes_to_a_file_or_to_stdout(
    perfdb: Shell, preloaded: Path, tmp_path: Path
) -> None:
    """The same bytes."""
    factories.write_run(tmp_path / "runs")
    perfdb("ingest")

    words = ("export", "results", "--format", "csv")
    into = perfdb(*words, "--output", "out")
    command = [preloaded / "bin" / "perfdb", *words]
    piped = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)

    assert (0, "", "") == (into.code, into.stdout, into.stderr)
    assert (tmp_path / "out").read_bytes() == piped.stdout


def test_an_export_that_cannot_be_written_exits_with_2(perfdb: Shell, tmp_path: Path) -> None:
    """So does one of a store that is not there."""
    missing = perfdb("export", "results", "--format", "csv")
    perfdb("db", "upgrade")
    nowhere = perfdb("export", "results", "--format", "csv", "--output", "no/such/folder")

    assert (2, 2) == (missing.code, nowhere.code)
    assert "perfdb.sqlite: no database here; run `perfdb ingest` first" in missing.stderr
    assert "error: no/such/folder: No such file or directory\n" == nowhere.stderr


def test_the_schema_can_be_made_shown_checked_and_taken_down(perfdb: Shell, tmp_path: Path) -> None:
    """upgrade, current, check, downgrade, current."""
    told = [
        perfdb("db", *words.split(), "--db", "x.sqlite")
        for words in ("upgrade", "current", "check", "downgrade base", "current", "check")
    ]

    head = session.HEAD
    assert [0, 0, 0, 0, 0, 2] == [done.code for done in told]
    assert [
        f"sqlite:///x.sqlite: schema {head}\n",
        f"{head} (newest: {head})\n",
        f"sqlite:///x.sqlite: schema {head}, as expected\n",
        "sqlite:///x.sqlite: schema none\n",
        f"none (newest: {head})\n",
        "",
    ] == [done.stdout for done in told]


def test_a_schema_that_differs_fails_the_check(perfdb: Shell, tmp_path: Path) -> None:
    """Exit code 1, and each difference on a line."""
    import sqlite3

    perfdb("db", "upgrade")
    connection = sqlite3.connect(tmp_path / "perfdb.sqlite")
    connection.execute("ALTER TABLE models ADD COLUMN colour TEXT")
    connection.commit()
    connection.close()

    done = perfdb("db", "check")
    assert 1 == done.code
    assert "colour" in done.stdout


def words_of(*changed: str) -> list[str]:
    """--set for each setting, with what is given in place of the field's own."""
    fields = {setting.partition("=")[0]: setting for setting in (*SET, *changed)}
    return [word for setting in fields.values() for word in ("--set", setting)]


def test_a_log_whose_times_follow_from_its_gpus_is_not_mixed_with_others(
    perfdb: Shell, tmp_path: Path
) -> None:
    """torchtitan prints tokens per second of one of so many GPUs."""
    good = Path(__file__).parent / "data" / "formats" / "torchtitan" / "good"
    path = next(one for one in sorted(good.iterdir()) if one.suffix in (".log", ".txt"))
    (tmp_path / "titan.log").write_bytes(path.read_bytes())

    done = perfdb("ingest", "titan.log", *words_of("num_gpus=4096"), "--release", "2.0")

    assert 1 == done.code
    assert "--set says 4096; its step times follow from num_gpus; leave the option" in done.stderr


def test_a_log_of_torchtitan_without_its_beginning_is_timed_by_what_the_options_say(
    perfdb: Shell, tmp_path: Path
) -> None:
    """8 samples × 8192 tokens ÷ (4096 tokens/s × 8 GPUs)."""
    line = "[rank0]:2024-07-12 - root - INFO - step: {:2}  loss:  8.1  memory: 9.5GiB(10%)  "
    rate = "\x1b[34mtps: 4,096  \x1b[35mmfu: 17.39%\x1b[39m\n"
    text = "".join(line.format(step) + rate for step in range(1, 31))
    (tmp_path / "titan.log").write_text(text + "see https://example.org\nTraining completed\n")
    words = [*words_of("global_batch_size=8"), "--release", "0.1"]

    assert "names no" in perfdb("ingest", "titan.log", "--release", "0.1").stderr
    done = perfdb("ingest", "titan.log", *words)

    assert 0 == done.code, done.stderr
    assert "global_batch_size, sequence_length, which it lacks" in done.stderr
    [result] = json.loads(perfdb("export", "results", "--format", "json").stdout)
    assert 2 == result["step_time_s"]


def row(precision: str, num_gpus: int, rate: str) -> str:
    return f"| LLAMA3-8B | {num_gpus} | 128 | 8192 | {precision} | {rate} |\n"


HEADER = """\
---
perfdb: {framework: nemo, release: "25.04"}
---
## DGX-H100

| Model | #-GPUs | GBS | Sequence Length | Precision | Tokens / sec / GPU |
|---|---|---|---|---|---|
"""


def test_a_dry_run_lists_what_would_become_of_each_result(perfdb: Shell, tmp_path: Path) -> None:
    """What is revised with both figures, by its precision, and where it is read."""
    page = tmp_path / "page.md"
    page.write_text(HEADER + row("FP8-CS", 8, "14079") + row("FP8-MX", 8, "14005"))
    perfdb("ingest", "page.md")
    page.write_text(HEADER + row("FP8-MX", 8, "14709") + row("FP8-MX", 16, "13000"))

    shown = perfdb("ingest", "page.md", "--dry-run")
    told = json.loads(perfdb("ingest", "page.md", "--dry-run", "--json").stdout)

    assert "1 new, 1 revised, 0 unchanged, 1 withdrawn, 0 rejected\n" in shown.stdout
    lines = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    work = "nemo 25.04: Llama 3 8B · Pre-training · {} · {} × DGX-H100 · sequence 8,192 · GBS 128"
    for result, cells in (
        (work.format("FP8-CS", 8), "withdrawn 14,079 finished page.md:8"),
        (work.format("MXFP8", 8), "revised 14,005 → 14,709 finished page.md:8"),
        (work.format("MXFP8", 16), "new 13,000 finished page.md:9"),
    ):
        assert cells == lines[lines.index(result) + 1]
    assert (1, 1, 0, 1) == tuple(
        told[name] for name in ("new", "revised", "unchanged", "withdrawn")
    )
    gone, revised, new = told["results"]
    assert ["withdrawn", "revised", "new"] == [one["status"] for one in told["results"]]
    rate = "tokens_per_sec_per_gpu"
    assert (14005.0, 14709.0) == (revised["before"][rate], revised[rate])
    assert (None, None) == (gone["before"], new["before"])
    assert ("fp8_cs", "fp8_mx", 128, "pretrain", "page.md", 9) == (
        gone["precision"], new["precision"], new["global_batch_size"], new["task"], new["source"],
        new["source_line"],
    )  # fmt: skip


def test_a_dry_run_says_whatever_a_correction_changes(perfdb: Shell, tmp_path: Path) -> None:
    """MFU, a column without a field, a note; and figures with every digit that a page prints."""
    page = tmp_path / "page.md"
    head = HEADER.replace("| Tokens / sec / GPU |", "| Tokens / sec / GPU | MFU | Cooling |")
    head = head.replace("|---|\n", "|---|---|---|\n")
    note = "\nNote: {}\n"
    rows = [row("FP8-MX", count, "1,234.5").rstrip("|\n") for count in (8, 16, 32)]
    before, after = (
        head + "".join(f"{one}| {more} |\n" for one, more in zip(rows, said, strict=True))
        for said in (
            ("43.15% | air", "43% | air", "43% | air"),
            ("43.2% | air", "43% | liquid", "43% | air"),
        )
    )
    page.write_text(before)
    perfdb("ingest", "page.md")

    page.write_text(after)
    shown = perfdb("ingest", "page.md", "--dry-run").stdout
    told = json.loads(perfdb("ingest", "page.md", "--dry-run", "--json").stdout)["results"]
    page.write_text(before + note.format("warm"))
    noted = perfdb("ingest", "page.md", "--dry-run").stdout

    lines = [" ".join(line.split()) for line in shown.splitlines() if "page.md:" in line]
    assert 2 == len(lines)
    assert "revised 1,234.5 43.15% → 43.2% finished page.md:8" == lines[0]
    assert "revised 1,234.5 43% finished page.md:9" == lines[1]
    assert "Cooling: air → liquid\n" in shown
    mfu, cooling, same = told
    assert (0.4315, 0.432) == (mfu["before"]["mfu"], mfu["mfu"])
    assert ("air", "liquid") == (
        cooling["before"]["printed"]["Cooling"], cooling["printed"]["Cooling"]
    )  # fmt: skip
    assert "unchanged" == same["status"]
    assert 3 == noted.count("note: – → warm")


def test_findings_that_are_accepted_are_counted_as_the_audit_counts_them(
    perfdb: Shell, tmp_path: Path
) -> None:
    """By the reviewed file of the project."""
    factories.write_run(tmp_path / "runs")
    rule = json.loads(perfdb("ingest", "--json").stdout)["findings"][0]["rule"]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "acknowledged.yaml").write_text(
        f"- {{rule: {rule}, reason: known, by: A. Person, date: 2026-01-31}}\n"
    )

    done = perfdb("ingest")
    tried = perfdb("ingest", "--db", "other.sqlite", "--dry-run")
    [finding] = json.loads(perfdb("ingest", "--json").stdout)["findings"]

    assert "findings: 1 explained (perfdb audit)\n" == done.stderr
    assert "findings: 1 explained (--json lists them)\n" == tried.stderr
    assert "known (A. Person, 2026-01-31)" == finding["acknowledged"]


def test_every_unattributed_log_is_in_the_json(perfdb: Shell, tmp_path: Path) -> None:
    """The terminal names the reason once, five of them, and where all are."""
    for number in range(7):
        (tmp_path / f"{number}.log").write_text(NEMO_LOG.replace("4.0", f"{number + 1}.0"))
    paths = [f"{number}.log" for number in range(7)]

    done = perfdb("ingest", *paths, "--set", "task=pretrain")
    told = json.loads(perfdb("ingest", *paths, "--set", "task=sft", "--json").stdout)

    assert "unattributed: 7 files: names no model, system, " in done.stderr
    listed = "0.log, 1.log, 2.log, 3.log, 4.log, and 2 more (--json lists all)"
    assert f"\n  {listed}\n" in done.stderr
    assert paths == [one["path"] for one in told["unattributed"]]
    for one in told["unattributed"]:
        missing = ["model", "system", "num_gpus", "sequence_length", "release"]
        assert missing == one["missing"]
        assert one["reason"].startswith("names no model, system, ")


def placed(path: Path, content: bytes = b"") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def test_logs_of_a_folder_that_hold_nothing_are_told_in_one_note(
    perfdb: Shell, tmp_path: Path
) -> None:
    """Empty ones, and those of which only the launcher has written."""
    for name in ("a/train.log", "a/b/empty.jsonl"):
        placed(tmp_path / "logs" / name)
    placed(tmp_path / "logs" / "job.out", b"srun: error: node1: task 0: Exited with exit code 1\n")
    placed(tmp_path / "logs" / "config.yaml", b"a: 1\n")
    placed(tmp_path / "logs" / "good.log", NEMO_LOG.encode())

    done = perfdb("ingest", "logs")
    told = json.loads(perfdb("ingest", "logs", "--json").stdout)
    packed = write(tmp_path / "a.tar", tar(of_folder(tmp_path / "logs")))
    [in_archive] = json.loads(perfdb("ingest", packed.name, "--json").stdout)["notes"]

    names = ["logs/job.out", "logs/a/b/empty.jsonl", "logs/a/train.log"]
    assert (
        "note: logs: passed over 3 logs in which no format finds a result: "
        f"{', '.join(sorted(names))}; --json names each\n"
    ) in done.stderr
    assert sorted(names) == told["passed_over"]
    assert "passed over 3 logs" in in_archive["reason"]


def test_a_file_of_attributions_says_what_each_log_is_and_set_holds_over_it(
    perfdb: Shell, tmp_path: Path
) -> None:
    """A glob of all, a path of one, and a result of a card by its name."""
    (tmp_path / "logs").mkdir()
    for name, batch in (("a", 64), ("b", 128)):
        text = NEMO_LOG.replace("global_batch_size: 128", f"global_batch_size: {batch}")
        (tmp_path / "logs" / f"{name}.log").write_text(text)
    (tmp_path / "what.yaml").write_text(
        "logs/*.log: {model: llama3-8b, system: dgx-h100, num_gpus: 8, task: sft, release: '2.0'}\n"
        "logs/a.log: {sequence_length: 2048}\n"
        "logs/b.log: {sequence_length: 4096, num_gpus: 16}\n"
        "logs/b.log#999: {num_gpus: 32}\n"
    )

    done = perfdb("ingest", "logs", "--attribution", "what.yaml", "--set", "task=pretrain")

    assert 1 == done.code
    assert "what.yaml:4: logs/b.log#999: names no result of its file" in done.stderr
    found = json.loads(perfdb("export", "results", "--json").stdout)
    assert [("2.0", "pretrain", 8, 2048), ("2.0", "pretrain", 16, 4096)] == [
        tuple(one[it] for it in ("release", "task", "num_gpus", "sequence_length")) for one in found
    ]


def test_a_file_of_attributions_is_refused_with_every_line_that_is_wrong(
    perfdb: Shell, tmp_path: Path
) -> None:
    (tmp_path / "a.log").write_text(NEMO_LOG)
    text = "none.log: {num_gpus: 8}\na.log:\n  num_gpu: 8\na.log#3:\n  system: dgx-zzz\n"
    (tmp_path / "what.yaml").write_text(text)

    done = perfdb("ingest", "a.log", "--attribution", "what.yaml")

    assert 2 == done.code
    for place in (
        "1: none.log: names no file",
        "3: num_gpu: no such field",
        "5: system: no system",
    ):
        assert f"what.yaml:{place}" in done.stderr
