"""One run that several logs tell of: other renderings of it, and a log that moved as it grew."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from sqlalchemy import URL, select

from perfdb.db.tables import ingest_log, results, runs, sources
from perfdb.ingest import LogOptions, Options, Report, ingest, preview
from perfdb.ingest.withdraw import restore, withdraw
from perfdb.pages.base import PageContext
from tests import archives, factories
from tests.logs import GIVEN, SET, TIMES, nemo, step_line, titan, write
from tests.shell import Shell
from tests.snapshots import snapshot
from tests.trees import counted, rows_of

ERROR = "RuntimeError: CUDA error: an illegal memory access was encountered\n"
IN_FORCE = (
    select(sources.c.path, results.c.outcome, results.c.step_time_s)
    .join(sources, results.c.source_id == sources.c.id)
    .where(~results.c.superseded)
    .order_by(sources.c.path)
)


def of_rank(text: str) -> str:
    """A log as srun writes it that of rank 63 alone, with its label."""
    return "".join(f"63: {line}\n" for line in text.splitlines())


def part(share: float, text: str | None = None) -> str:
    """The first lines of a log."""
    lines = (text or nemo()).splitlines(keepends=True)
    return "".join(lines[: int(len(lines) * share)])


def told(report: Report) -> list[tuple[str, str]]:
    """Which logs tell of a run that another one has told of."""
    return [(Path(one.path).name, Path(one.same_as).name) for one in report.duplicates]


def in_force(store: URL) -> list[tuple[str, object, object]]:
    """The name of the file, the outcome and the step time of each result."""
    rows = rows_of(store, IN_FORCE)
    return [(Path(str(path)).name, outcome, time) for path, outcome, time in rows]


@pytest.mark.parametrize("order", [("runs", "train.log"), ("train.log", "runs"), (".",)])
def test_the_log_of_a_run_directory_is_no_run_of_its_own(
    store: URL, tmp_path: Path, order: Sequence[str]
) -> None:
    """Copied out of it, whichever of the two is read first, again and again."""
    run = factories.write_run(tmp_path / "runs")
    log = write(tmp_path)
    rank = run.path / "ranks" / "0" / "stdout.log"
    rank.parent.mkdir(parents=True)
    rank.write_bytes(log.read_bytes())
    for _ in range(2):
        for name in order:
            report = ingest([tmp_path / name], store, GIVEN)
            assert () == report.rejected
    assert [(str(run.steps),)] == rows_of(
        store, select(sources.c.path).join(results).where(~results.c.superseded)
    )
    assert [(run.path.name,)] == rows_of(store, select(runs.c.run_id))
    report = ingest([log], store, GIVEN)
    assert [("train.log", "stdout.log")] == told(report)
    said = f"tells of the same run as {rank}: the log of run '{run.path.name}'"
    assert said in [note.reason for note in report.notes]


def test_two_renderings_of_one_job_are_one_run(store: URL, tmp_path: Path) -> None:
    """The labels of ranks are no part of it; the second is told of, and the first stays."""
    first = write(tmp_path, name="log-1.out")
    second = write(tmp_path, of_rank(nemo()), "log-allranks_1.out")

    planned, _ = preview([tmp_path], store, GIVEN)
    report = ingest([tmp_path], store, GIVEN)

    for one in (planned, report):
        assert ((1, 0, 0, 0), [(second.name, first.name)]) == (counted(one), told(one))
        assert [f"{second}: tells of the same run as {first}: its steps are the same"] == [
            str(note) for note in one.notes
        ]
    before = snapshot(store)
    for order in permutations([first, second]):
        again = ingest(order, store, GIVEN)
        assert ((0, 0, 1, 0), [(second.name, first.name)]) == (counted(again), told(again))
    assert before == snapshot(store)
    assert [(str(first),)] == rows_of(store, select(ingest_log.c.path))


def test_the_command_counts_and_names_duplicates(perfdb: Shell, tmp_path: Path) -> None:
    """Also of logs of which nobody says the release: one of them lacks it."""
    write(tmp_path / "a")
    write(tmp_path / "b", of_rank(nemo()))
    options = [word for said in SET for word in ("--set", said)]

    said = perfdb("ingest", "a", "b", *options).stdout
    told = json.loads(perfdb("ingest", "b", *options, "--json").stdout)

    assert "1 new, 0 revised, 0 unchanged, 1 duplicate, 0 rejected, 1 unattributed\n" == said
    expected = {"path": "b/train.log", "same_as": "a/train.log"}
    assert (0, [expected], []) == (told["new"], told["duplicates"], told["unattributed"])


def with_set(*settings: str) -> Options:
    """What is said of logs, and more, or otherwise."""
    said = dict(one.split("=", 1) for one in (*SET, *settings))
    return replace(GIVEN, logs=LogOptions(tuple(map("=".join, said.items()))))


def of_loss(loss: float) -> str:
    """The log with another loss in its last step."""
    return nemo().replace("global_step: 19 | reduced_train_loss: 9.5",
                          f"global_step: 19 | reduced_train_loss: {loss}")  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (nemo(), nemo((*TIMES[:-1], 2.3))),
        (nemo(), of_loss(9.4)),
        (nemo(), nemo((20.5, *TIMES[1:]))),
    ],
)
def test_logs_of_other_steps_are_repeats(sqlite: URL, tmp_path: Path, one: str, other: str) -> None:
    write(tmp_path, one, "a.log")
    write(tmp_path, of_rank(other), "b.log")
    report = ingest([tmp_path], sqlite, GIVEN)
    assert ((2, 0, 0, 0), []) == (counted(report), told(report))


@pytest.mark.parametrize("times", [(2.5,) * 20, (20.0, *[2.5] * 9, *[2.1] * 10)])
def test_steps_of_equal_times_may_be_those_of_two_runs(
    sqlite: URL, tmp_path: Path, times: Sequence[float]
) -> None:
    """What a window holds is printed the same of two runs that do the same."""
    write(tmp_path, nemo(times), "a.log")
    write(tmp_path, of_rank(nemo(times)), "b.log")
    assert (2, 0, 0, 0) == counted(ingest([tmp_path], sqlite, GIVEN))


@pytest.mark.parametrize("share", [0.75, 1.0])
def test_a_log_of_another_release_or_case_is_another_run(
    sqlite: URL, tmp_path: Path, share: float
) -> None:
    """Though that one did not finish and this one goes on just so."""
    ingest([write(tmp_path / "a", part(share))], sqlite, with_set("tensor_parallel=1"))
    path = write(tmp_path / "b", of_rank(nemo()))
    assert 1 == ingest([path], sqlite, replace(GIVEN, context=PageContext(release="3"))).new
    path.write_text(of_rank(of_rank(nemo())))
    assert 1 == ingest([path], sqlite, with_set("tensor_parallel=2")).new


@pytest.mark.parametrize("order", list(permutations([0, 1])))
def test_a_rendering_that_says_less_of_the_case_is_the_same_run(
    sqlite: URL, tmp_path: Path, order: Sequence[int]
) -> None:
    """As a log without the settings that another one begins with: what is said of it counts."""
    logs = (
        (write(tmp_path, name="less.log"), GIVEN),
        (
            write(tmp_path, of_rank(nemo()), "more.log"),
            with_set("tensor_parallel=2", "options={recompute: full}"),
        ),
    )
    for number in order:
        ingest([logs[number][0]], sqlite, logs[number][1])
    before = snapshot(sqlite)
    assert [("more.log", "finished", pytest.approx(2.1))] == in_force(sqlite)

    for path, said in logs:
        ingest([path], sqlite, said)
    assert before == snapshot(sqlite)


def titan_of_rank(rank: int, times: Sequence[float]) -> str:
    """A log of torchtitan, of which each rank has the same 20 steps by its own clock."""
    steps = (
        f"[titan] step: {step:2}  loss:  8.{step:04}  grad_norm:  1.{step:04}  "
        f"memory:  1.50GiB(3.16%)  tps: {65536 / (seconds + rank / 1e3):.0f}  mfu: 1.00%\n"
        for step, seconds in enumerate(times, start=1)
    )
    done = "[titan] Training completed\n" if len(times) == 20 else ""
    return titan(1024, 0, 1.0).replace("steps 50", "steps 20") + "".join(steps) + done


def test_the_logs_that_torchrun_keeps_of_the_ranks_are_one_run(sqlite: URL, tmp_path: Path) -> None:
    """The rank that tells more holds; another attempt or job is another run."""
    jobs = [("none_a/attempt_0", 1.0), ("none_a/attempt_1", 1.1), ("none_b/attempt_0", 1.2)]
    for folder, slower in jobs:
        times = [slower * one for one in TIMES]
        for rank, text in {
            1: titan_of_rank(1, times[:15]),
            10: titan_of_rank(10, times),
            2: titan_of_rank(2, times),
        }.items():
            path = tmp_path / folder / str(rank) / "stderr.log"
            path.parent.mkdir(parents=True)
            path.write_text(text)
    options = with_set("num_gpus=1", "sequence_length=1024")

    report = ingest([tmp_path], sqlite, options)

    assert (3, 6) == (report.new, len(report.duplicates) + report.revised)
    assert [(f"{tmp_path}/{job}/10/stderr.log", "finished") for job, _ in jobs] == [
        row[:2] for row in rows_of(sqlite, IN_FORCE)
    ]
    before = snapshot(sqlite)
    again = ingest([tmp_path], sqlite, options)
    assert ((0, 0, 3, 0), 6) == (counted(again), len(again.duplicates))
    assert before == snapshot(sqlite)


def titan_of_node(node: int, *, falls: float = 0.1, slower: float = 1.0, steps: int = 20) -> str:
    """The log of a node's first rank, that measures by its own clock."""
    text = titan_of_rank(8 * node, [one * (slower + node / 1e3) for one in TIMES[:steps]])
    losses = (f"loss: {12 - falls * step:7.4f}" for step in range(1, 21))
    return re.sub(r"loss: +\S+", lambda _: next(losses), text)


NODES = with_set("num_gpus=1", "sequence_length=1024")


@pytest.mark.parametrize("at_once", [True, False])
def test_the_logs_of_the_nodes_are_one_run_by_their_losses(
    store: URL, tmp_path: Path, at_once: bool
) -> None:
    """Of two files of a job the one that is whole holds."""
    first = write(tmp_path, titan_of_node(0, steps=15), "slurm-7_0.out")
    if not at_once:
        ingest([first], store, NODES)
    write(tmp_path, titan_of_node(1), "slurm-7_1.out")
    third = write(tmp_path, titan_of_node(2), "slurm-7_2.out")
    report = ingest([tmp_path], store, NODES)
    assert ("slurm-7_2.out", "slurm-7_1.out") in told(report)
    why = f"{third}: tells of the same run as {tmp_path / 'slurm-7_1.out'}"
    assert f"{why}: its steps have the same losses" in map(str, report.notes)
    assert ["slurm-7_1.out"] == [name for name, _, _ in in_force(store)]


@pytest.mark.parametrize(
    "other",
    [
        titan_of_node(1, falls=0.11),
        titan_of_node(1, slower=1.1),
        titan_of_node(1).replace("step:  7  loss: 11.3", "step:  7  loss: 11.4"),
    ],
)
def test_logs_of_other_losses_or_much_other_times_are_repeats(
    sqlite: URL, tmp_path: Path, other: str
) -> None:
    write(tmp_path, titan_of_node(0), "a.log")
    write(tmp_path, other, "b.log")
    assert (2, 0, 0, 0) == counted(ingest([tmp_path], sqlite, NODES))


def test_losses_that_stay_the_same_tell_nothing(sqlite: URL, tmp_path: Path) -> None:
    write(tmp_path, titan_of_node(0, falls=0.0), "a.log")
    write(tmp_path, titan_of_node(1, falls=0.0), "b.log")
    assert (2, 0, 0, 0) == counted(ingest([tmp_path], sqlite, NODES))


@pytest.mark.parametrize("folder", [".", "attempt_0", "attempt_0/1"])
def test_the_ranks_of_an_attempt_are_known_from_whatever_folder(
    sqlite: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """A second job has its logs at the same relative paths, and is a run of its own."""
    options = with_set("num_gpus=1", "sequence_length=1024")
    for job, slower in (("a", 1.0), ("b", 1.1)):
        paths = [tmp_path / job / "attempt_0" / str(rank) / "stderr.log" for rank in (0, 1)]
        for rank, path in enumerate(paths):
            path.parent.mkdir(parents=True)
            path.write_text(titan_of_rank(rank, [slower * one for one in TIMES]))
        monkeypatch.chdir(tmp_path / job / folder)
        report = ingest([Path(os.path.relpath(path)) for path in paths], sqlite, options)
        assert (1, 1) == (report.new, len(report.duplicates))


def automodel(times: Sequence[float], steps: int = 20) -> tuple[str, str]:
    """What AutoModel writes of a run to the console and to training.jsonl."""
    console = (
        "World size: 8\nstep_scheduler:\n  global_batch_size: 16\n  local_batch_size: 2\n"
        "  max_steps: 20\ndataset:\n  seq_len: 4096\n"
    )
    lines = ""
    for step, seconds in enumerate(times[:steps]):
        loss, tps = 9.5 - step / 10 + 0.000123456, 65536 / (seconds + step / 1e3)
        console += (
            f"step {step} | epoch 0 | loss {loss:.4f} | grad_norm 1.9398 | lr 1.00e-05 | "
            f"mem 23.14 GiB | tps {tps:.2f}({tps / 8:.2f}/gpu) | num_label_tokens 65520\n"
        )
        said = {"step": step, "loss": loss, "tps": tps, "num_tokens_per_step": 65536}
        lines += json.dumps(said) + "\n"
    return console, lines


AUTOMODEL = with_set("global_batch_size=16", "sequence_length=4096")


@pytest.mark.parametrize("steps", [20, 15])
@pytest.mark.parametrize("order", list(permutations([0, 1])))
def test_the_console_and_training_jsonl_are_one_run(
    sqlite: URL, tmp_path: Path, order: Sequence[int], steps: int
) -> None:
    """The console holds, which says more of the case and alone how the run ended."""
    repeats = TIMES, tuple(1.001 * one for one in TIMES)
    paths = [
        write(tmp_path / str(number), text, name)
        for number, times in enumerate(repeats)
        for text, name in zip(automodel(times, steps), ("x.out", "training.jsonl"), strict=True)
    ]
    expected = ["finished" if steps == 20 else "incomplete"] * 2
    ingest([paths[2 * run + which] for run in (0, 1) for which in order], sqlite, AUTOMODEL)
    before = snapshot(sqlite)
    assert [("x.out", it) for it in expected] == [one[:2] for one in in_force(sqlite)]

    again = ingest([tmp_path], sqlite, AUTOMODEL)
    assert ((0, 0, 2, 0), [("training.jsonl", "x.out")] * 2) == (counted(again), told(again))
    assert before == snapshot(sqlite)


def test_a_log_of_a_run_that_another_one_read_with_it_takes_over(
    sqlite: URL, tmp_path: Path
) -> None:
    """training.jsonl has the steps of rank 0, whose run rank 1 tells more of, by its own clock."""
    ranks = [tmp_path / "attempt_0" / str(rank) / "stdout.log" for rank in (0, 1)]
    for path, text in zip(
        ranks, (automodel(TIMES, 15)[0], automodel([1.01 * one for one in TIMES])[0]), strict=True
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    lines = write(tmp_path, automodel(TIMES, 15)[1], "training.jsonl")
    ingest(ranks[:1], sqlite, AUTOMODEL)

    ingest([ranks[1], lines], sqlite, AUTOMODEL)

    folders = {Path(str(path)).parent.name for path, *_ in rows_of(sqlite, IN_FORCE)}
    assert {"1", tmp_path.name} == folders


@pytest.mark.parametrize("other", [(2.0,) * 20, (20.0, *[2.5] * 9, *[2.0, 2.21] * 5)])
def test_a_console_of_other_steps_is_another_run(
    sqlite: URL, tmp_path: Path, other: Sequence[float]
) -> None:
    write(tmp_path, automodel(TIMES)[1], "training.jsonl")
    write(tmp_path, automodel(other)[0], "x.out")
    assert (2, 0, 0, 0) == counted(ingest([tmp_path], sqlite, AUTOMODEL))


def test_where_the_one_is_withdrawn_the_other_may_come_in(sqlite: URL, tmp_path: Path) -> None:
    first, second = write(tmp_path / "a"), write(tmp_path / "b", of_rank(nemo()), "b.log")
    ingest([first, second], sqlite, GIVEN)
    withdraw([str(first)], sqlite, "the wrong file")

    report = ingest([first, second], sqlite, GIVEN)

    assert ((1, 0, 1, 0), []) == (counted(report), told(report))
    assert [("b.log", "finished", pytest.approx(2.1))] == in_force(sqlite)


@pytest.mark.parametrize("share", [0.75, 0.7, 0.8])
@pytest.mark.parametrize("turned", [False, True])
def test_two_renderings_that_grow_are_one_run_all_the_time(
    store: URL, tmp_path: Path, share: float, turned: bool
) -> None:
    """Though the one is a step behind or ahead, whichever is read first."""
    paths = write(tmp_path, part(0.75), "a.log"), write(tmp_path, of_rank(part(share)), "b.log")
    ingest(paths, store, GIVEN)
    assert ["incomplete"] == [outcome for _, outcome, _ in in_force(store)]
    paths[0].write_text(nemo())
    paths[1].write_text(of_rank(nemo()))

    for order in (paths[::-1] if turned else paths, paths, paths[::-1]):
        ingest(order, store, GIVEN)
        assert [("finished", pytest.approx(2.1))] == [one[1:] for one in in_force(store)]
    assert 1 == len(rows_of(store, select(runs.c.id)))


def test_a_rendering_that_has_the_end_takes_the_place_of_one_that_has_not(
    sqlite: URL, tmp_path: Path
) -> None:
    """The fifteen steps of a run that failed, with and without the words of the error."""
    cut = write(tmp_path, part(0.75), "a.log")
    whole = write(tmp_path, of_rank(part(0.75)) + ERROR, "b.log")
    ingest([cut], sqlite, GIVEN)

    report = ingest([whole], sqlite, GIVEN)

    assert (0, 1, 0, 0) == counted(report)
    assert [("b.log", "failed", None)] == in_force(sqlite)
    assert [("a.log", "b.log")] == told(ingest([tmp_path], sqlite, GIVEN))


def of_memory(size_bytes: int | None) -> str:
    """A log that says such a peak memory of its run, or none."""
    return nemo().replace("\n", f" | peak_memory_usage: {size_bytes}\n") if size_bytes else nemo()


PEAK = select(results.c.peak_memory_bytes).where(~results.c.superseded)


@pytest.mark.parametrize(("before", "after"), [*permutations([6 * 10**10, 7 * 10**10, None], 2)])
def test_a_log_that_was_corrected_is_a_later_state_of_its_run(
    sqlite: URL, tmp_path: Path, before: int | None, after: int | None
) -> None:
    """Its steps are the same, and what it says beside them holds, whatever that is."""
    log = write(tmp_path, of_memory(before))
    ingest([log], sqlite, GIVEN)
    log.write_text(of_memory(after))

    report = ingest([log], sqlite, GIVEN)

    assert ((0, 1, 0, 0), []) == (counted(report), told(report))
    assert [(after,)] == rows_of(sqlite, PEAK)
    said = "tells of the same run as before: its steps are the same, and what it says now holds"
    assert [f"{log}: {said}"] == [str(note) for note in report.notes]
    assert (0, 0, 1, 0) == counted(ingest([log], sqlite, GIVEN))


@pytest.mark.parametrize("names", [*permutations(["bare.log", "full.log"])])
def test_of_two_renderings_the_one_that_says_the_memory_holds(
    sqlite: URL, tmp_path: Path, names: tuple[str, str]
) -> None:
    """Whichever is read first."""
    write(tmp_path, nemo(), "bare.log")
    write(tmp_path, of_memory(6 * 10**10), "full.log")
    for name in (*names, *names):
        ingest([tmp_path / name], sqlite, GIVEN)
    assert [(6 * 10**10,)] == rows_of(sqlite, PEAK)


def test_an_attempt_that_failed_is_none_of_the_next_one(sqlite: URL, tmp_path: Path) -> None:
    """Whatever its steps were: its log says how it ended."""
    write(tmp_path, part(0.75) + ERROR, "log_0.log")
    write(tmp_path, of_rank(nemo()), "log_1.log")
    ingest([tmp_path], sqlite, GIVEN)
    assert ["failed", "finished"] == [outcome for _, outcome, _ in in_force(sqlite)]


@pytest.mark.parametrize("times", [TIMES, (2.5,) * 20])
def test_a_log_that_moved_while_it_grew_is_one_run(
    store: URL, tmp_path: Path, times: Sequence[float]
) -> None:
    """Known by its first bytes, whatever its times are."""
    live = write(tmp_path / "live", part(0.75, nemo(times)), "x.out")
    ingest([live], store, GIVEN)
    live.unlink()
    archived = write(tmp_path / "archived", nemo(times), "x.out")

    report = ingest([archived], store, GIVEN)

    note = f"{archived}: begins with the unfinished log {live}: it is that run, grown on"
    assert ((0, 1, 0, 0), [note]) == (counted(report), [str(one) for one in report.notes])
    assert [("finished",)] == rows_of(store, select(runs.c.outcome))
    assert [str(archived)] == [row[0] for row in rows_of(store, IN_FORCE)]
    assert (0, 0, 1, 0) == counted(ingest([archived], store, GIVEN))


@pytest.mark.parametrize("other", ["x" + nemo((2.5,) * 20), nemo((5.0, *[3.0] * 19))])
def test_a_log_that_does_not_begin_so_is_another_run(
    sqlite: URL, tmp_path: Path, other: str
) -> None:
    ingest([write(tmp_path / "a", part(0.75, nemo((2.5,) * 20)))], sqlite, GIVEN)
    assert (1, 0, 0, 0) == counted(ingest([write(tmp_path / "b", other)], sqlite, GIVEN))


@pytest.mark.parametrize("times", [TIMES, (2.1,) * 20])
@pytest.mark.parametrize("names", [("half.out", "whole.out"), ("whole.out", "half.out")])
def test_a_half_log_beside_the_whole_one_in_an_archive_is_one_run(
    sqlite: URL, tmp_path: Path, names: tuple[str, str], times: Sequence[float]
) -> None:
    whole = nemo(times)
    texts = {"half.out": part(0.6, whole).encode(), "whole.out": whole.encode()}
    members = archives.tar([(name, texts[name]) for name in names])
    path = archives.write(tmp_path / "a.tar.zst", archives.COMPRESSORS[".zst"](members))

    ingest([path], sqlite, GIVEN)
    before = snapshot(sqlite)
    ingest([path], sqlite, GIVEN)

    assert [("finished", pytest.approx(2.1))] == [one[1:] for one in in_force(sqlite)]
    assert before == snapshot(sqlite)


def test_many_logs_that_tell_twice_are_one_note(sqlite: URL, tmp_path: Path) -> None:
    for number in range(6):
        text = nemo((20.0 + number, *TIMES[1:]))
        write(tmp_path / "a", text, f"{number}.log")
        write(tmp_path / "b", of_rank(text), f"{number}.log")

    report = ingest([tmp_path], sqlite, GIVEN)

    assert [f"{tmp_path}/b: 6 logs tell of the same runs as other logs; --json names each"] == [
        str(note) for note in report.notes
    ]
    assert [(str(tmp_path / f"b/{n}.log"), str(tmp_path / f"a/{n}.log")) for n in range(6)] == [
        (one.path, one.same_as) for one in report.duplicates
    ]


def test_a_log_that_was_moved_is_withdrawn_by_its_new_path(sqlite: URL, tmp_path: Path) -> None:
    """And counts again by it."""
    old = write(tmp_path / "old")
    ingest([old], sqlite, GIVEN)
    new = old.rename(tmp_path / "new.log")

    report = withdraw([str(new)], sqlite, "too hot")

    assert (1, [f"{new}: has the bytes of {old}, which is meant"]) == (
        report.withdrawn, [str(note) for note in report.notes],
    )  # fmt: skip
    assert [] == in_force(sqlite)
    assert 1 == len(restore([str(new)], sqlite))
    assert 1 == len(in_force(sqlite))


def test_a_copy_withdraws_only_what_has_its_bytes(sqlite: URL, tmp_path: Path) -> None:
    """Not the run of another job that wrote to the same path later."""
    path, copy = write(tmp_path), write(tmp_path / "kept")
    ingest([path], sqlite, GIVEN)
    path.write_text(nemo((31.0, *[3.5] * 9, *[3.0, 3.2] * 5)))
    ingest([path], sqlite, GIVEN)

    assert 1 == withdraw([str(copy)], sqlite, "too hot").withdrawn
    assert [("train.log", "finished", pytest.approx(3.1))] == in_force(sqlite)


def test_a_resumed_attempt_in_a_log_of_its_own_is_measured_without_its_warm_up(
    sqlite: URL, tmp_path: Path
) -> None:
    """Steps 21 to 50: ten of 9 s, and then twenty of 2 s."""
    text = "".join(step_line(step, 50, 9.0 if step < 30 else 2.0) for step in range(20, 50))
    ingest([write(tmp_path, text)], sqlite, GIVEN)
    question = select(results.c.window, results.c.num_steps, results.c.step_time_mean_s)
    assert [("skip_warmup(10)", 20, 2.0)] == rows_of(sqlite, question)
    assert [(30, 20)] == rows_of(sqlite, select(runs.c.warmup_steps, runs.c.measured_steps))
