"""What targets begin with: files that mean something, out of the test data and the corpora."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from perfdb.formats import FORMATS
from perfdb.record import Outcome
from tests import factories
from tests.archives import COMPRESSORS, of_folder, tar, zipped
from tests.fuzz import trees
from tests.fuzz.mutations import LAUGHS
from tests.logs import SUMMARY, nemo
from tests.trees import PAGE

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
SHARED = [ROOT.parent / "shared" / name for name in ("corpus", "seeds")]
"""Read where they are present."""

MOST_BYTES = 1 << 16
LOG = nemo().encode()

NAMES = {
    "megatron_golden": "golden_values_dev.json", "megatron_bridge_golden": "golden_values.json",
    "automodel_summary": "benchmark.json", "automodel_training": "training.jsonl",
    "llmb_config": "llmb-config_1.yaml", "megatron_config": "model_config.yaml",
    "verification_card": "card.yaml", "mlperf": "result_0.txt",
}  # fmt: skip
"""What a file of a format is called, where not train.log."""


@cache
def of(name: str) -> Sequence[bytes]:
    """The seeds of a target."""
    return tuple(dict.fromkeys(SEEDS[name]() if name in SEEDS else _logs(name)))


def _contents(paths: Iterator[Path]) -> Iterator[bytes]:
    return (path.read_bytes()[:MOST_BYTES] for path in sorted(paths) if path.is_file())


def _logs(name: str) -> Iterator[bytes]:
    """Each of the format's own files; of the corpora, those that it recognises."""
    own = (DATA / "formats" / name).glob("*/*")
    yield from _contents(one for one in own if one.suffixes[1:] not in ([".yml"], [".txt"]))
    member = FORMATS[name]
    for folder in SHARED:
        for path in sorted(one for one in folder.glob("*") if one.is_file()):
            content = path.read_bytes()[:MOST_BYTES]
            if member.recognizes(content, path.name):
                yield content


def _pages() -> Iterator[bytes]:
    for folder in (DATA / "pages" / "good", DATA / "pages" / "bad"):
        yield from _contents(
            one for one in folder.iterdir() if one.suffix in (".md", ".mdx", ".rst", ".html")
        )
    for folder in SHARED:
        yield from _contents(folder.rglob("*.md"))


def _fronts() -> Iterator[bytes]:
    yield b'perfdb:\n  framework: nemo\n  release: "25.04"\n'
    yield b"title: A page\ntags: [a, b]\nperfdb: {container: null}\n"
    yield LAUGHS + b"perfdb: *l11\n"


def _recipes() -> Iterator[bytes]:
    yield from _contents((DATA / "recipes").glob("*/*.yaml"))
    yield from _contents((ROOT / "recipes").rglob("*.yaml"))
    yield LAUGHS


def _acknowledged() -> Iterator[bytes]:
    yield from _contents((DATA / "audit").rglob("*.y*ml"))
    yield (
        b"- rule: zero_figure\n  model: llama3-8b\n  reason: the page prints it\n  by: A. Person\n"
        b"  date: 2026-01-31\n"
    )
    yield LAUGHS


def _words() -> Iterator[bytes]:
    yield from (b"last", b"last_n(10)", b"window(3,7)", b"skip_warmup(2)", b"last_n(99999999999)")
    yield b"model=llama3-8b\nnum_gpus=8\nprecision=fp8\nkernels=[a, b]\nvirtual_pipeline=1"
    yield b"nemo\n25.04\nnvcr.io/nvidia/nemo:25.04\ndgx-h100\nbf16"


def _runs() -> Iterator[bytes]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = [
            factories.write_run(folder, run_id="a"),
            factories.write_run(folder, run_id="b", outcome=Outcome.OUT_OF_MEMORY),
            factories.write_run(folder, run_id="c", outcome=None, ended_at=None, exit_code=None),
        ]
        yield from (trees.joined(of_folder(run.path)) for run in made)


def _archives() -> Iterator[bytes]:
    members = [("a/train.log", LOG), ("page.md", PAGE.encode()), ("x/benchmark.json", b"{}")]
    run = [(f"runs/{name}", content) for name, content in trees.files(next(_runs()))]
    for compress in COMPRESSORS.values():
        yield compress(tar([*members, *run]))
        yield compress(LOG)
        yield compress(b"\0" * (4 << 20))
    yield zipped([*members, *run])
    yield tar([("in.zip", zipped([("in.tar.gz", COMPRESSORS[".gz"](tar(members)))]))])
    yield zipped([("../x.log", LOG), ("/etc/x.log", LOG), ("a\\..\\x.log", LOG), ("good.log", LOG)])
    yield zipped([("bomb.log", b"\0" * (4 << 20))])
    yield tar([(f"{n}.log", LOG) for n in range(12)])


def _trees() -> Iterator[bytes]:
    """One log of each format, a few pages, and folders in which files speak of one another."""
    for name in FORMATS:
        file_name = NAMES.get(name, "train.log")
        yield from (trees.joined([(file_name, log)]) for log in islice(_logs(name), 1))
    for content in list(_pages())[::8]:
        yield trees.joined([("page.md", content)])
    for number, run in enumerate(_runs()):
        inside = [(f"runs/{number}/{path}", content) for path, content in trees.files(run)]
        yield trees.joined([*inside, ("page.md", PAGE.encode()), ("b/train.log", LOG)])
    yield trees.joined([("benchmark.json", SUMMARY.encode()), ("a.zip", zipped([("a.log", LOG)]))])
    yield trees.joined([("a.log", LOG), ("b.log", LOG), ("c.log", LOG[:900])])
    llmb = DATA / "formats" / "llmb_config" / "good" / "llmb-config_1.yaml"
    yield trees.joined([("llmb-config_1.yaml", llmb.read_bytes()), ("log_1.out", LOG)])


SEEDS: Mapping[str, Callable[[], Iterator[bytes]]] = {
    "page": _pages, "front": _fronts, "recipe": _recipes, "acknowledged": _acknowledged,
    "words": _words, "run": _runs, "archive": _archives, "tree": _trees,
}  # fmt: skip
