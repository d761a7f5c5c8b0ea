"""Archives in, rows out: as the trees they hold, and nothing that they should not do."""

import random
import struct
import tarfile
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import URL, select

from perfdb.db.tables import cases, releases, runs, sources, systems
from perfdb.errors import ArchiveError
from perfdb.ingest import LogOptions, Options, Report, ingest
from perfdb.ingest.find import printable
from perfdb.ingest.unpack import Budget, chunks, member_fault, unpack
from perfdb.pages.base import PageContext
from tests import factories
from tests.archives import COMPRESSORS, add, of_folder, tar, write, zipped
from tests.logs import GIVEN, LLMB, TIMES, nemo
from tests.trees import PAGE, counted, read_at, rows_of

LOG = nemo().encode()


def paths_of(url: URL) -> list[str]:
    """Where the sources of a store were."""
    return sorted(str(path) for (path,) in rows_of(url, select(sources.c.path)))


def told(report: Report) -> list[tuple[str, str]]:
    """Where something is wrong, and what."""
    return [(problem.where, problem.message) for problem in report.rejected]


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, which is to be empty at the end."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def with_tree(folder: Path) -> Path:
    """A run, a log with its launcher's notes, a page, and what is no source."""
    factories.write_run(folder / "runs", run_id="a")
    job = folder / "experiments" / "x"
    job.mkdir(parents=True)
    (job / "llmb-config_1.yaml").write_text(LLMB)
    (job / "train.log").write_bytes(LOG)
    (job / "readme.txt").write_text("nothing in here\n")
    (job / "weights.bin").write_bytes(b"\0" * 4096)
    (folder / "page.md").write_text(PAGE)
    return folder


WORDS = Options(
    PageContext(framework="nemo", release="25.04", precision="bf16"),
    logs=LogOptions(("sequence_length=8192",)),
)


@pytest.mark.parametrize("suffix", [*(f".tar{one}" for one in COMPRESSORS), ".zip", ".bin"])
def test_an_archive_is_read_as_the_tree_it_holds_in_whatever_order(
    sqlite: URL, tmp_path: Path, temporary: Path, suffix: str
) -> None:
    """The figures are the folder's; each source is named by the archive and its place in it."""
    tree = with_tree(tmp_path / "tree")
    members = of_folder(tree)
    random.Random(1).shuffle(members)
    packed = zipped(members) if suffix == ".zip" else tar(members)
    compress = COMPRESSORS.get(suffix.removeprefix(".tar"), bytes)
    path = write(tmp_path / f"a{suffix}", packed if suffix == ".zip" else compress(packed))

    of_tree, _ = read_at(tree, WORDS)
    of_archive, _ = read_at(path, WORDS)
    report = ingest([path], sqlite, WORDS)

    assert 4 == len(of_tree)
    assert {row.content_hash for row in of_tree} == {row.content_hash for row in of_archive}
    assert ((4, 0, 0, 0), (0, 0, 4, 0)) == (counted(report), counted(ingest([path], sqlite, WORDS)))
    assert f"{path}!/experiments/x/train.log" in paths_of(sqlite)
    assert f"{path}!/runs/a/run.json" in paths_of(sqlite)
    assert [] == list(temporary.iterdir())


@pytest.mark.parametrize("suffix", [one for one in COMPRESSORS if one])
def test_a_compressed_log_is_the_same_run_as_the_plain_one(
    sqlite: URL, tmp_path: Path, suffix: str
) -> None:
    """Known by its first bytes, whatever its name; with what lies beside it."""
    (tmp_path / "llmb-config_1.yaml").write_text(LLMB)
    plain = write(tmp_path / "train_1.log", LOG)
    packed = write(tmp_path / f"train_1.log{suffix}", COMPRESSORS[suffix](LOG))
    misnamed = write(
        tmp_path / "other_1.txt", COMPRESSORS[suffix](LOG[:1000]) + COMPRESSORS[suffix](LOG[1000:])
    )

    first = ingest([plain], sqlite, WORDS)
    again = [ingest([path], sqlite, WORDS) for path in (packed, misnamed)]

    assert (1, 0, 0, 0) == counted(first)
    assert [(0, 0, 1, 0)] * 2 == [counted(report) for report in again]


BAD_NAMES = {
    "../x.log": "the name leads out of the archive",
    "a/../../x.log": "the name leads out of the archive",
    "/etc/x.log": "the name is an absolute path",
    "C:/x.log": "the name is an absolute path",
    "a\\..\\x.log": "the name holds a backslash",
    "a\nb.log": "the name holds a line break or another control character",
    "a\udcffb.log": "the name is not UTF-8",
    f"{'a' * 256}.log": "the name is too long",
}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_member_of_a_name_that_is_not_safe_is_refused_and_the_rest_is_read(
    sqlite: URL, tmp_path: Path, temporary: Path, name: str
) -> None:
    """On one line, by archive and member; nothing is written beside the temporary folder."""
    made = BytesIO()
    with tarfile.open(fileobj=made, mode="w", errors="surrogateescape") as archive:
        add(archive, name, LOG)
        add(archive, "good.log", LOG)
    folder = tmp_path / "in"
    folder.mkdir()
    path = write(folder / "a.tar", made.getvalue())

    report = ingest([path], sqlite, GIVEN)

    [(where, message)] = told(report)
    assert BAD_NAMES[name] == message
    assert where.startswith(f"{path}!/")
    assert where.isprintable()
    assert (1, [f"{path}!/good.log"]) == (report.new, paths_of(sqlite))
    assert [path] == list(folder.iterdir())
    assert [] == list(temporary.iterdir())


@given(st.text(max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_name_leads_out_of_the_folder_that_is_written_to(tmp_path: Path, name: str) -> None:
    """Whatever is let through lies below it, and any name is shown on one line."""
    shown = printable(name)
    assert shown.encode().decode().splitlines() in ([shown], [])
    if member_fault(name) is None:
        assert (tmp_path / name).resolve().is_relative_to(tmp_path.resolve())


@given(
    st.lists(
        st.tuples(
            st.lists(
                st.sampled_from(["..", "a", "b", "run.json", "c.log", "x.md"]), min_size=1
            ).map("/".join),
            st.sampled_from([LOG, b"", b"{}", PAGE.encode()]),
        ),
        max_size=6,
    )
)
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_names_give_results_or_reasons(
    tmp_path: Path, members: list[tuple[str, bytes]]
) -> None:
    """Files that are folders too, names that come twice, runs that are none: never an exception."""
    path = write(tmp_path / "a.tar", tar(members))
    before = sorted(tmp_path.rglob("*"))
    rows, rejected = read_at(path, GIVEN)
    assert all(problem.where.startswith(str(path)) for problem in rejected)
    assert (
        rows
        or rejected
        or not any(name.endswith(".md") and text == PAGE.encode() for name, text in members)
    )
    assert before == sorted(tmp_path.rglob("*"))


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}, "a link, which is not followed"),
        ({"type": tarfile.LNKTYPE, "linkname": "good.log"}, "a link, which is not followed"),
        ({"type": tarfile.CHRTYPE}, "neither a file nor a folder"),
        ({"type": tarfile.FIFOTYPE}, "neither a file nor a folder"),
    ],
)
def test_links_and_devices_are_refused(
    sqlite: URL, tmp_path: Path, header: dict[str, object], reason: str
) -> None:
    """A link of a name that is not looked at is passed over, as any such file."""
    made = BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        add(archive, "good.log", LOG)
        add(archive, "bad.log", **header)
        add(archive, "latest", type=tarfile.SYMTYPE, linkname="..")
    path = write(tmp_path / "a.tar", made.getvalue())

    report = ingest([path], sqlite, GIVEN)
    assert (1, [(f"{path}!/bad.log", reason)]) == (report.new, told(report))


def test_a_run_of_which_a_file_is_refused_is_refused_whole(sqlite: URL, tmp_path: Path) -> None:
    """All or nothing: what is left of it is not what ran."""
    factories.write_run(tmp_path / "tree", run_id="a")
    factories.write_run(tmp_path / "tree", run_id="b")
    members = of_folder(tmp_path / "tree")
    path = write(tmp_path / "a.tar", tar([*members, ("a/steps.jsonl", b"")]))

    report = ingest([path], sqlite, Options())

    assert 1 == report.new
    assert [
        (f"{path}!/a/steps.jsonl", "twice in the archive; nobody says which is right"),
        (f"{path}!/a", "a file of the run is refused"),
    ] == told(report)


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_of_a_tar_that_is_cut_off_what_came_whole_is_read(
    sqlite: URL, tmp_path: Path, temporary: Path, suffix: str
) -> None:
    """The archive is named; no log is stored that is not there to its last byte."""
    noise = random.Random(1)
    texts = [nemo((20.0 + n, *TIMES[1:])).encode() for n in range(9)]
    logs = [(f"{n}.log", text + noise.randbytes(60_000)) for n, text in enumerate(texts)]
    content = COMPRESSORS[suffix](tar(logs))
    path = write(tmp_path / f"a.tar{suffix}", content[: len(content) * 3 // 5])

    report = ingest([path], sqlite, GIVEN)

    assert any(where == str(path) and "cut off" in message for where, message in told(report))
    unpack(path, tmp_path / "out", Budget(), "a.tar")
    unpacked = sorted((tmp_path / "out").glob("*"))
    out = [(one.name, one.stat().st_size) for one in unpacked]
    assert out == [(name, len(log)) for name, log in logs if name in dict(out)]
    sizes = rows_of(sqlite, select(sources.c.path, sources.c.size_bytes))
    whole = {f"{path}!/{name}": len(log) for name, log in logs}
    assert all(whole[str(place)] == size for place, size in sizes)
    assert report.new == len(sizes)
    assert report.new >= (3 if suffix in ("", ".gz", ".zst") else 0)
    assert [] == list(temporary.iterdir())


def test_the_run_that_a_tar_is_cut_off_in_is_refused(sqlite: URL, tmp_path: Path) -> None:
    """All of its files that came were whole; nobody says which did not."""
    for run_id in ("a", "b"):
        factories.write_run(tmp_path / "tree", run_id=run_id)
    members = of_folder(tmp_path / "tree")
    content = tar(members)
    cut = content.index(b"b/steps.jsonl")
    path = write(tmp_path / "a.tar", content[:cut])

    report = ingest([path], sqlite, Options())

    assert 1 == report.new
    assert [
        (f"{path}!/b", "the archive ends in this run"),
        (str(path), "cut off: the end of the archive is missing"),
    ] == told(report)


@pytest.mark.parametrize("suffix", [one for one in COMPRESSORS if one])
def test_a_compressed_log_that_is_cut_off_or_damaged_is_refused(
    sqlite: URL, tmp_path: Path, suffix: str
) -> None:
    """Its last steps are missing, or other than they were."""
    content = COMPRESSORS[suffix](LOG + random.Random(1).randbytes(5000))
    cut = write(tmp_path / f"cut.log{suffix}", content[:-9])
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 0xFF
    # zstd may be written without a checksum; then only what is no zstd shows.
    spoilt = write(tmp_path / f"spoilt.log{suffix}", bytes(damaged))

    assert ["cut off: the compressed data has no end"] == [
        message for _, message in told(ingest([cut], sqlite, GIVEN))
    ]
    if suffix != ".zst":
        [(where, message)] = told(ingest([spoilt], sqlite, GIVEN))
        assert (str(spoilt), "damaged") == (where, message.partition(":")[0])
        assert [] == paths_of(sqlite)


ZEROS = bytes(1 << 20)


@pytest.mark.parametrize("suffix", [one for one in COMPRESSORS if one])
def test_a_compressed_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, suffix: str) -> None:
    """8 MiB where 2 may be; the message says the limit and the option that raises it."""
    path = write(tmp_path / f"a.log{suffix}", COMPRESSORS[suffix](ZEROS * 8))
    with pytest.raises(Exception, match=r"unpacks to more than 0.00195 GiB; raise --archive-limit"):
        list(chunks(path, Budget(most_bytes=2 << 20)))


def test_a_member_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """A quarter of 4 MiB may be, and this has one byte more; it is not taken out."""
    members = [("large.log", ZEROS + b"1"), ("good.log", LOG)]
    path = write(tmp_path / "a.tgz", COMPRESSORS[".gz"](tar(members)))

    refused = unpack(path, tmp_path / "out", Budget(most_bytes=4 << 20), "a.tgz")

    reason = "unpacks to more than 0.000977 GiB; raise --archive-limit if you trust it"
    assert [f"a.tgz!/large.log: {reason}"] == [str(one) for one in refused]
    assert ["good.log"] == [one.name for one in (tmp_path / "out").iterdir()]


def encrypted() -> bytes:
    """The flag stands in the member's own header and in the list at the end."""
    content = bytearray(zipped([("a.log", LOG), ("b.log", LOG)]))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def bomb() -> bytes:
    """It says that it is small: what is above the stated size is never read."""
    content = bytearray(zipped([("a.log", LOG), ("b.log", LOG)]))
    struct.pack_into("<L", content, content.index(b"PK\x01\x02") + 24, 10)
    return bytes(content)


def endless_name() -> bytes:
    """A tar may say of a name that it has many gigabytes; tarfile would read them."""
    info = tarfile.TarInfo("a")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 8 << 30
    start = tar([("a.log", LOG)])[: 512 + (len(LOG) + 511) // 512 * 512]
    return start + info.tobuf(tarfile.GNU_FORMAT) + ZEROS


TWICE = tar([("a.log", LOG), ("b.log", LOG), *[("./a.log", b"")] * 3])
WITHIN = tar([("inner.tar", tar([("b.log", LOG)])), ("a.log", LOG)])


@pytest.mark.parametrize(
    ("content", "where", "reason"),
    [
        (TWICE, "!/a.log", "twice in the archive; nobody says which is right"),
        (encrypted(), "!/a.log", "encrypted"),
        (bomb(), "!/a.log", "damaged:"),
        (WITHIN, "!/inner.tar", "an archive in an archive is not read"),
        (endless_name(), "", "damaged: a header of 8,589,934,592 bytes"),
    ],
    ids=["twice", "encrypted", "bomb", "archive", "name"],
)
def test_what_cannot_be_trusted_is_refused_and_the_rest_is_read(
    sqlite: URL, tmp_path: Path, content: bytes, where: str, reason: str
) -> None:
    path = write(tmp_path / "a.bin", content)
    report = ingest([path], sqlite, GIVEN)
    [(place, message)] = told(report)
    assert (1, f"{path}{where}", True) == (report.new, place, message.startswith(reason))


def test_an_archive_of_too_many_members_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tar", tar([(f"{n}.log", LOG) for n in range(3)]))
    with pytest.raises(ArchiveError, match="holds more than 2 members"):
        unpack(path, tmp_path / "out", Budget(most_members=2), "a.tar")


EXPERIMENT = "pretrain_llama3.1_405b_fp8_cs_gpus128_tp2_pp1_cp1_vpNone_ep1_mbs1_gbs128_658572"
INSTALLATION = f"workloads/pretrain_llama3.1/experiments/{EXPERIMENT}/{EXPERIMENT}_1750000000"


def llmb(job: int, gpu_type: str, **job_config: object) -> bytes:
    """What the launcher notes of a job, as it was asked for."""
    return f"""\
job_info: {{job_id: '{job}', launch_time: '2025-07-01T21:05:18'}}
workload_info: {{framework: nemo2, gsw_version: '25.07', fw_version: 25.07.01,
  workload_type: pretrain}}
model_info: {{model_name: llama3.1, model_size: 405b, dtype: fp8, scale: 128, gpu_type: {gpu_type}}}
container_info: {{images: [nvcr.io#nvidia/nemo:25.07.01]}}
job_config: {{profile_enabled: {str(job_config.get("profiled", False)).lower()}}}
""".encode()


def test_an_archive_of_an_installation_gives_each_log_the_notes_of_its_own_job(
    sqlite: URL, tmp_path: Path
) -> None:
    """Model, GPUs and FP8 recipe by the name of what ran; the copy of the code is passed over."""
    inner = f"{INSTALLATION}/{EXPERIMENT}"
    members = [
        (f"{inner}/log-acct.{EXPERIMENT}_701_0.out", LOG),
        (f"{inner}/log-acct.{EXPERIMENT}_702_1.out", LOG + b"again\n"),
        (f"{inner}/log-acct.{EXPERIMENT}_703_0.out", LOG + b"a third\n"),
        (f"{inner}/sbatch_{EXPERIMENT}_701.out", b"srun: job 701 queued\n"),
        (f"{inner}/llmb-config_701.yaml", llmb(701, "h100")),
        (f"{INSTALLATION}/llmb-config_702.yaml", llmb(702, "gb200", profiled=True)),
        (f"{inner}/code/docs/performance.md", PAGE.encode()),
        ("release.yaml", b"llmb_version: '26.06.00'\n"),
    ]
    packed = COMPRESSORS[".zst"](tar(members))
    path = write(tmp_path / "llmb-archive_26.06.00_20260701.tar.zst", packed)
    options = Options(logs=LogOptions(("sequence_length=8192",)))

    report = ingest([path], sqlite, options)

    of_job = select(
        systems.c.name, cases.c.precision, cases.c.num_gpus, cases.c.global_batch_size,
        releases.c.version, releases.c.container,
    )  # fmt: skip
    joined = (
        of_job.select_from(runs)
        .join(cases, runs.c.case_id == cases.c.id)
        .join(systems, cases.c.system_id == systems.c.id)
        .join(releases, runs.c.release_id == releases.c.id)
        .order_by(systems.c.name)
    )
    container = "nvcr.io/nvidia/nemo:25.07.01"
    assert [
        ("dgx-gb200", "fp8_cs", 128, 128, "25.07.01", container),
        ("dgx-h100", "fp8_cs", 128, 128, "25.07.01", container),
    ] == rows_of(sqlite, joined)
    [unattributed] = report.unattributed
    assert "_703_0.out: names no system, release; pass" in str(unattributed)
    assert () == report.rejected
    profiled = [str(note) for note in report.notes if "profiler" in note.message]
    place = f"{path}!/{INSTALLATION}/llmb-config_702.yaml"
    assert [f"{place}: job_config.profile_enabled: steps under the profiler take longer; "
            "say which steps count with --window, such as 'window(35,44)'"] == profiled  # fmt: skip
