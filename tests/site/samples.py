"""Results as the site reads them from the store, and pages as a reader has them."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from bs4 import BeautifulSoup
from bs4.element import Tag
from markupsafe import Markup

from perfdb.record import Origin
from perfdb.site.build import all_pages, with_comparisons
from perfdb.site.data import Audited, Flag, SiteData, SiteResult
from perfdb.site.page import Block, Code, Section, SitePage, Tabs
from perfdb.site.pages import scaling

HASH = "0123456789abcdef" * 4
WRONG = Flag("1 error", "error", "result-0")


def result(**changed: object) -> SiteResult:
    """A measured result of Llama 3 8B in BF16 on a DGX-H100, with these fields changed."""
    fields: dict[str, object] = {
        "framework": "megatron-core", "release": "0.16.0", "system": "dgx-h100",
        "system_title": "DGX-H100", "model": "llama3-8b", "model_title": "Llama 3 8B",
        "precision": "bf16", "num_gpus": 8, "global_batch_size": 128, "sequence_length": 8192,
        "step_time_s": 4.05, "window": "skip_warmup(2)", "tokens_per_sec_per_gpu": 32363.5,
        "model_tflops_per_sec_per_gpu": 1665.6, "mfu": 0.4312, "origin": Origin.MEASURED,
        "source": "runs/run-1/steps.jsonl", "source_sha256": HASH, "run_id": "run-1",
        "has_open_errors": changed.get("flag") is WRONG,
    }  # fmt: skip
    return SiteResult(**(fields | changed))  # type: ignore[arg-type]


def row(**changed: object) -> SiteResult:
    """A row of NeMo 25.04's page: Llama 3 70B in FP8 on 64 GPUs, with these fields changed."""
    measured = ("step_time_s", "window", "model_tflops_per_sec_per_gpu", "mfu", "run_id")
    fields: dict[str, object] = dict.fromkeys(measured) | {
        "framework": "nemo", "release": "25.04", "model": "llama3-70b",
        "model_title": "Llama 3 70B", "precision": "fp8", "num_gpus": 64,
        "tokens_per_sec_per_gpu": 1621.0, "origin": Origin.PUBLISHED,
        "source": "data/published/nemo.md", "source_line": 74,
    }  # fmt: skip
    return result(**(fields | changed))


def site_data(results: Iterable[SiteResult], audited: Iterable[Audited] = ()) -> SiteData:
    """What a site has of results and of what the audit found in them."""
    known = tuple(results)
    return with_comparisons(
        SiteData(results=known, current=known, audited=tuple(audited),
                 scaling=tuple(scaling.of_results(known)))
    )  # fmt: skip


def html(blocks: Iterable[Block]) -> str:
    """The HTML of blocks, with their sections, and their code in an element."""
    return "".join(map(_html, blocks))


def _html(block: Block) -> str:
    match block:
        case Markup():
            return str(block)
        case Section(title, blocks):
            return str(Markup("<h2>{}</h2>").format(title)) + html(blocks)
        case Tabs(_, tabs):
            return "".join(html(tab.blocks) for tab in tabs)
        case Code(text, _):
            return str(Markup("<pre>{}</pre>").format(text))
        case _:
            return ""


def soup(shown: SitePage | Path | str) -> BeautifulSoup:
    """The elements of a page, of a file, or of HTML."""
    if isinstance(shown, SitePage):
        shown = html(shown.body())
    return BeautifulSoup(shown.read_text() if isinstance(shown, Path) else shown, "html.parser")


def words(element: Tag | None) -> str:
    """Its text, on one line."""
    assert element is not None
    return " ".join(element.get_text(" ").split())


def table(shown: Tag) -> list[dict[str, str]]:
    """The rows of every table, by the titles of their columns."""
    return [line for one in shown.select("table.perf") for line in _rows(one)]


def _rows(one: Tag) -> Sequence[dict[str, str]]:
    heads = [words(head) for head in one.select("thead th")]
    rows = [[words(it) for it in line.select("th, td")] for line in one.select("tbody tr")]
    return [dict(zip(heads, line, strict=True)) for line in rows]


def page_named(name: str, data: SiteData) -> BeautifulSoup:
    """A page of the site of some data."""
    return soup(next(page for page in all_pages(data) if page.name == name))


def part(shown: BeautifulSoup, title: str) -> BeautifulSoup:
    """What is below the headings that begin with a title."""
    found: list[str] = []
    for heading in shown.find_all("h3", string=re.compile(f"^{title}")):
        for element in heading.next_siblings:
            if isinstance(element, Tag) and element.name in ("h2", "h3"):
                break
            found.append(str(element))
    return soup("".join(found))
