"""How results are put together: by task, by system or model, by release, the newest first."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol, TypeVar

from perfdb import catalog
from perfdb.catalog import titles
from perfdb.groups import grouped
from perfdb.record import CONFIGURATION_FIELDS
from perfdb.site import columns
from perfdb.site.addresses import FINE_TUNING, TUNED, UNATTRIBUTED
from perfdb.site.data import SiteResult
from perfdb.versions import natural, newness, version_order

Grouping = Literal["system", "model"]
ReleaseName = tuple[str, str | None]
"""A framework and its version."""


@dataclass(frozen=True)
class ResultGroup:
    """The results of a system or of a model."""

    name: str
    title: str
    results: tuple[SiteResult, ...]


@dataclass(frozen=True)
class TaskGroup:
    """The results of a task, or of all fine-tuning, of one variant where there are several."""

    task: str
    variant: str | None
    results: tuple[SiteResult, ...]

    @property
    def title(self) -> str:
        """'Pre-training', 'Fine-tuning (LoRA): Megatron-Core'."""
        return section_title(self.task, self.variant)


def sections(results: Iterable[SiteResult]) -> list[TaskGroup]:
    """A group for each task and variant; tasks that share a table are one group.

    Pre-training first; Megatron-Core before the other variants, as published pages have it.
    """
    parts = grouped(results, lambda one: (_part(one.framework, one.task), one.variant))
    made = []
    for (_, variant), some in parts.items():
        tasks = {result.task for result in some}
        task = str(tasks.pop()) if len(tasks) == 1 else FINE_TUNING
        made.append(TaskGroup(task, variant, tuple(some)))
    others = (None, "megatron-core")
    return sorted(
        made, key=lambda it: (*_task_order(it.task), it.variant not in others, it.variant or "")
    )


@cache
def _part(framework: str, task: str) -> str:
    """The task, or that its results are in the table of all fine-tuning."""
    return FINE_TUNING if columns.TASK in columns.of_table(framework, task).columns else task


def by_task(results: Iterable[SiteResult]) -> list[TaskGroup]:
    """The results of each task, pre-training first, in the order they come."""
    groups = grouped(results, lambda one: str(one.task))
    return [TaskGroup(task, None, tuple(groups[task])) for task in sorted(groups, key=_task_order)]


def by_name(results: Iterable[SiteResult], group_by: Grouping) -> list[ResultGroup]:
    """A group for each system, in the order of the catalog, or for each model, by its name."""
    by_model = group_by == "model"
    groups = grouped(
        sorted(results, key=_row_order), lambda one: one.model if by_model else one.system
    )
    return [
        ResultGroup(
            name,
            groups[name][0].model_title if by_model else groups[name][0].system_title,
            tuple(groups[name]),
        )
        for name in sorted(groups, key=natural if by_model else system_order)
    ]


def _task_order(task: str) -> tuple[int, str]:
    return catalog_order(task, titles.TASKS)


@cache
def system_order(name: str) -> tuple[int, str]:
    """In the order of the catalog; a system that it lacks comes last."""
    return catalog_order(name, catalog.systems())


def catalog_order(name: str, among: Iterable[str]) -> tuple[int, str]:
    """The place of a name among those of the catalog; others come last, by name."""
    known = [*among]
    return (known.index(name) if name in known else len(known)), name


def _row_order(result: SiteResult) -> tuple[object, ...]:
    """Published rows in the order of their page; measured rows after them, by their work."""
    if result.is_measured:
        return True, *work_order(result)
    return False, result.source, result.source_line or 0


def work_order(result: SiteResult) -> tuple[object, ...]:
    """A key that sorts results by system, model, precision and size, then by how it was done."""
    size = (result.num_gpus, result.sequence_length, result.global_batch_size)
    names = (system_order(result.system), natural(result.model_title), result.precision or "")
    layout = (natural(str(getattr(result, name) or "")) for name in CONFIGURATION_FIELDS)
    return (*names, *size, *layout)


class OfRelease(Protocol):
    """What belongs to a release."""

    @property
    def framework(self) -> str:
        """Its framework."""

    @property
    def release(self) -> str | None:
        """Its version."""


Item = TypeVar("Item", bound=OfRelease)


def newest_first(items: Iterable[Item], results: Collection[SiteResult]) -> list[Item]:
    """By framework, the newest release first; items of the same release stay as they come.

    `results` are those of all the releases. Trials come last: of a framework its releases without a
    result on a GPU, and of frameworks those that have no others.
    """
    builds, trials = _builds(results), _trials(results)
    by_release = sorted(
        items, key=lambda one: version_order(one.release, builds[_release(one)]), reverse=True
    )
    on_gpus = {one.framework for one in by_release if _release(one) not in trials}
    return sorted(
        by_release,
        key=lambda one: (
            one.framework not in on_gpus,
            titles.framework(one.framework),
            _release(one) in trials,
        ),
    )


def of_newest_releases(results: Sequence[SiteResult]) -> list[SiteResult]:
    """The results of each framework's newest release among them.

    A release without a result on a GPU is that only where the framework has no others.
    """
    trials, builds = _trials(results), _builds(results)
    newest: dict[str, ReleaseName] = {}
    for framework, some in grouped(builds, lambda one: one[0]).items():
        on_gpus = [one for one in some if one not in trials]
        newest[framework] = max(on_gpus or some, key=lambda one: newness(one[1], builds[one]))
    return [one for one in results if newest[one.framework] == _release(one)]


def _builds(results: Iterable[SiteResult]) -> dict[ReleaseName, int]:
    """The order of releases that only the hash of a commit tells apart."""
    return {_release(one): one.build for one in results}


def _trials(results: Iterable[SiteResult]) -> frozenset[ReleaseName]:
    """The releases that have no result on a GPU."""
    on_gpus = {(_release(one), is_on_gpus(one)) for one in results}
    return frozenset(one for one, _ in on_gpus if (one, True) not in on_gpus)


def _release(one: OfRelease) -> ReleaseName:
    return one.framework, one.release


def is_on_gpus(result: SiteResult) -> bool:
    """Whether its system has GPUs."""
    return catalog.has_gpus(result.system)


def release_title(framework: str, version: str | None) -> str:
    """'NeMo Framework 25.04'; a release whose version nobody stated is unattributed."""
    return f"{titles.framework(framework)} {version or f'({UNATTRIBUTED})'}"


def section_title(task: str, variant: str | None = None) -> str:
    """'Pre-training', or 'Megatron-Core pre-training' where a release has several variants."""
    title = "Fine-tuning" if task == FINE_TUNING else titles.task(task)
    title = f"Fine-tuning ({title})" if task in TUNED else title
    return f"{title}: {titles.framework(variant)}" if variant else title
