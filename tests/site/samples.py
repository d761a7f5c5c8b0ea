"""Results as the site reads them from the store, for tests that need no store."""

from bs4 import BeautifulSoup
from bs4.element import Tag

from perfdb.record import Finding
from perfdb.site import findings, models, systems
from perfdb.site.contents import Contents
from perfdb.site.data import Audited, Result, Run, RunPage, Step
from perfdb.site.models import ModelPage
from perfdb.site.systems import SystemPage

HASH = "0123456789abcdef" * 4


def result(**changed: object) -> Result:
    """A measured result of Llama 3 8B in BF16 on a DGX-H100, with what is given changed."""
    fields: dict[str, object] = {
        "framework": "megatron-core",
        "release": "0.16.0",
        "system": "dgx-h100",
        "system_title": "DGX-H100",
        "model": "llama3-8b",
        "model_title": "Llama 3 8B",
        "task": "pretrain",
        "precision": "bf16",
        "num_gpus": 8,
        "global_batch_size": 128,
        "sequence_length": 8192,
        "step_time_s": 4.05,
        "step_time_p10_s": 4.0,
        "step_time_p90_s": 4.23,
        "num_steps": 8,
        "window": "skip_warmup(2)",
        "tokens_per_sec_per_gpu": 32363.5,
        "model_tflops_per_sec_per_gpu": 1665.6,
        "mfu": 0.4312,
        "origin": "measured",
        "outcome": "finished",
        "source": "runs/run-1/steps.jsonl",
        "source_sha256": HASH,
        "run_id": "run-1",
        "started_at": "2026-01-02T03:04:05Z",
    }
    return Result.model_validate(fields | changed)


def published(**changed: object) -> Result:
    """The row of DFM's page for WAN 2.1 14B on DGX-GB300, with what is given changed."""
    fields: dict[str, object] = {
        "framework": "dfm",
        "release": "main",
        "system": "dgx-gb300",
        "system_title": "DGX-GB300",
        "model": "wan2.1-14b",
        "model_title": "WAN 2.1 14B",
        "variant": "megatron-core",
        "precision": None,
        "num_gpus": 32,
        "global_batch_size": 64,
        "sequence_length": 37440,
        "virtual_pipeline": None,
        "fsdp_enabled": False,
        "step_time_s": None,
        "step_time_p10_s": None,
        "step_time_p90_s": None,
        "num_steps": None,
        "window": None,
        "tokens_per_sec_per_gpu": None,
        "model_tflops_per_sec_per_gpu": 1022.26,
        "mfu": None,
        "origin": "published",
        "source": "data/published/dfm.md",
        "source_line": 74,
        "run_id": None,
        "started_at": None,
        "raw": {
            "Model": "WAN 2.1 14B",
            "#-GPUs": "32",
            "GBS": "64",
            "Sequence Length": "37440",
            "FSDP": "0",
            "VP": "0",
            "Model TFLOP / sec / GPU": "1,022.26",
        },
    }
    return result(**(fields | changed))


def run_page(*step_times: float, warmup_steps: int = 2, **changed: object) -> RunPage:
    """The page of a run with steps of so many seconds; `changed` are fields of its result."""
    steps = [
        Step(step=number, step_time_s=seconds, loss=11 - number / 10, source_line=number)
        for number, seconds in enumerate(step_times, start=1)
    ]
    run = {
        "run_id": "run-1",
        "recipe": "llama3-8b",
        "outcome": "finished",
        "attempt": 1,
        "started_at": "2026-01-02T03:04:05Z",
        "warmup_steps": warmup_steps,
        "measured_steps": len(steps) - warmup_steps,
        "environment": {"hostname": "node-1", "gpu": None, "packages": {"torch": "2.9.0"}},
        "command": ("torchrun", "--nproc-per-node", "8", "train.py"),
    }
    return RunPage(
        run=Run.model_validate(run),
        result=result(**changed),
        steps=tuple(steps),
        files=(),
        recipe_text="name: llama3-8b\n",
    )


def address(target: str) -> str:
    """A document's address, as if all were in one folder above this one."""
    return f"../{target}.html"


def soup(html: str) -> BeautifulSoup:
    """The elements of a part of a page."""
    return BeautifulSoup(html, "html.parser")


def model_page(*results: Result, audited: tuple[Audited, ...] = ()) -> ModelPage:
    """The page of the one model that the results are of."""
    pages = models.KIND.pages(Contents(results=results, audited=audited))
    [page] = [page.data for page in pages if isinstance(page.data, ModelPage)]
    return page


def system_page(*results: Result) -> SystemPage:
    """The page of the one system that the results are on."""
    pages = systems.KIND.pages(Contents(results=results))
    [page] = [page.data for page in pages if isinstance(page.data, SystemPage)]
    return page


def finding(severity: str = "error", **changed: object) -> Finding:
    """A finding that a row's GBS and MBS are swapped, with what is given changed."""
    fields: dict[str, object] = {
        "rule": "micro_batch",
        "severity": severity,
        "fields": ("global_batch_size", "micro_batch_size"),
        "expected": "GBS 64, MBS 1",
        "found": "GBS 1, MBS 64",
        "message": "a global batch of 1 cannot hold micro-batches of 64",
        "suggestion": "swap them: GBS 64, MBS 1",
        "model": "wan2.1-14b",
        "system": "dgx-gb300",
        "release": "main",
        "source": "data/published/dfm.md",
        "source_line": 74,
        "framework": "dfm",
    }
    return Finding.model_validate(fields | changed)


def audited(*found: Finding, key: str = "0123456789abcdef", **changed: object) -> Audited:
    """A published result with findings; `changed` are fields of the result."""
    return findings.audited(published(**changed), key, found)


def words(element: Tag | None) -> str:
    """Its text, on one line."""
    assert element is not None
    return element.get_text(" ", strip=True)


def nemotron4(num_gpus: int, global_batch_size: int, **changed: object) -> Result:
    """A row of the recipe's tables of Nemotron-4 15B, of no release, with what is given."""
    fields: dict[str, object] = {
        "framework": "nemo",
        "release": None,
        "model": "nemotron4-15b",
        "model_title": "Nemotron-4 15B",
        "variant": None,
        "system": "dgx-h100",
        "system_title": "DGX-H100",
        "num_gpus": num_gpus,
        "global_batch_size": global_batch_size,
        "sequence_length": 4096,
        "model_tflops_per_sec_per_gpu": None,
        "raw": {},
    }
    return published(**fields | changed)
