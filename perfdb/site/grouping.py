"""How results are put together: by task, by system or model, by release, the newest first."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from operator import attrgetter
from typing import Final, Literal, Protocol, TypeVar

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
    made = []
    parts = grouped(results, lambda one: (_table(one.framework, one.task), one.variant))
    for (_, variant), some in parts.items():
        tasks = {str(result.task) for result in some}
        made.append(
            TaskGroup(tasks.pop() if len(tasks) == 1 else FINE_TUNING, variant, tuple(some))
        )
    last = (None, "megatron-core")
    return sorted(
        made, key=lambda it: (*_task_order(it.task), it.variant not in last, it.variant or "")
    )


@cache
def _table(framework: str, task: str) -> str:
    """What the table of a task is of: the task, or all fine-tuning."""
    is_shared = columns.TASK in columns.of_table(framework, task).columns
    return FINE_TUNING if is_shared else task


def by_task(results: Iterable[SiteResult]) -> list[TaskGroup]:
    """The results of each task, pre-training first, in the order they come."""
    groups = grouped(results, lambda one: str(one.task))
    return [TaskGroup(task, None, tuple(groups[task])) for task in sorted(groups, key=_task_order)]


def by_name(results: Iterable[SiteResult], group_by: Grouping) -> list[ResultGroup]:
    """A group for each system, in the order of the catalog, or for each model, by its name.

    Published rows are in the order of their page; measured rows after them, by their work.
    """

    def row_order(one: SiteResult) -> tuple[object, ...]:
        if one.is_measured:
            return True, *work_order(one)
        return False, one.source, one.source_line or 0

    rows = sorted(results, key=row_order)
    if group_by == "model":
        models = grouped(rows, lambda one: one.model)
        return [
            ResultGroup(name, models[name][0].model_title, tuple(models[name]))
            for name in sorted(models, key=natural)
        ]
    systems = grouped(rows, lambda one: one.system)
    return [
        ResultGroup(name, systems[name][0].system_title, tuple(systems[name]))
        for name in sorted(systems, key=system_order)
    ]


def system_titles(results: Iterable[SiteResult]) -> list[str]:
    """The titles of the systems of results, in the order of the catalog."""
    titles_of = {one.system: one.system_title for one in results}
    return [titles_of[name] for name in sorted(titles_of, key=system_order)]


def newest_systems_first(results: Iterable[SiteResult]) -> list[ResultGroup]:
    """A group for each system, from the newest to the oldest, and CPUs last."""
    return sorted(by_name(results, "system"), key=lambda group: newest_system_order(group.name))


@cache
def newest_system_order(name: str) -> tuple[float, float, tuple[int, str]]:
    """A key that sorts systems from the newest down: by BF16 peak, then by memory of a GPU."""
    entry = catalog.systems().get(name)
    peak = entry.peaks.get("bf16") if entry else None
    memory_gb = entry.memory_gb if entry else None
    return -(peak.tflops if peak else 0.0), -(memory_gb or 0.0), system_order(name)


def release_dates(results: Iterable[SiteResult]) -> dict[ReleaseName, date]:
    """When each release came out: the month in its version, as of 25.04, else its newest source.

    A release of which neither is known came first.
    """
    return {name: _dated(name[1], some) for name, some in grouped(results, _release).items()}


def month_of(version: str | None) -> date | None:
    """The first day of the month that a version names, as 25.04 does."""
    found = re.match(r"(2[0-9])\.(0[1-9]|1[0-2])(?![0-9])", version or "")
    return date(2000 + int(found[1]), int(found[2]), 1) if found else None


def _dated(version: str | None, results: Iterable[SiteResult]) -> date:
    if month := month_of(version):
        return month
    days = [it.published_on or (it.started_at and it.started_at.date()) for it in results]
    return max(filter(None, days), default=date.min)


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


def precision_order(name: str | None) -> tuple[int, str]:
    """In the order of the catalog; one that it lacks, or that is not stated, comes last."""
    return catalog_order(name or "", catalog.precisions())


_LAYOUT: Final = attrgetter(*(name for name in CONFIGURATION_FIELDS if name != "options"))


@lru_cache(maxsize=10_000)
def _layout_order(values: Sequence[object], options: str) -> tuple[object, ...]:
    """Many results share a layout."""
    return tuple(natural(str(value or "")) for value in (*values, options))


def work_order(result: SiteResult) -> tuple[object, ...]:
    """A key that sorts results by system, model, precision and size, then by how it was done."""
    size = (result.num_gpus, result.sequence_length, result.global_batch_size)
    names = (system_order(result.system), natural(result.model_title), result.precision or "")
    return (*names, *size, *_layout_order(_LAYOUT(result), str(result.options or "")))


class OfRelease(Protocol):
    """What belongs to a release."""

    @property
    def framework(self) -> str: ...
    @property
    def release(self) -> str | None: ...


Item = TypeVar("Item", bound=OfRelease)


def newest_first(items: Iterable[Item], results: Collection[SiteResult]) -> list[Item]:
    """By framework, the newest release first; items of the same release stay as they come.

    `results` are those of all the releases. Trials come last: of a framework its releases without a
    result on a GPU, and of frameworks those that have no others.
    """
    builds = {(one.framework, one.release): one.build for one in results}
    on_gpus = _on_gpus(results)
    groups = grouped(items, _release)
    names = sorted(groups, key=lambda name: version_order(name[1], builds[name]), reverse=True)
    frameworks = {name[0] for name in names if name in on_gpus}
    names.sort(
        key=lambda name: (name[0] not in frameworks, titles.framework(name[0]), name not in on_gpus)
    )
    return [one for name in names for one in groups[name]]


def of_newest_releases(results: Sequence[SiteResult]) -> list[SiteResult]:
    """The results of each framework's newest release among them.

    A release without a result on a GPU is that only where the framework has no others.
    """
    builds = {(one.framework, one.release): one.build for one in results}
    on_gpus = _on_gpus(results)
    newest = set()
    for some in grouped(builds, lambda one: one[0]).values():
        known = [one for one in some if one in on_gpus]
        newest.add(max(known or some, key=lambda one: newness(one[1], builds[one])))
    return [one for one in results if _release(one) in newest]


def _release(one: OfRelease) -> ReleaseName:
    return one.framework, one.release


def _on_gpus(results: Iterable[SiteResult]) -> set[ReleaseName]:
    """The releases with a result on a GPU."""
    systems = {(one.framework, one.release, one.system) for one in results}
    return {(name, version) for name, version, system in systems if catalog.has_gpus(system)}


def is_on_gpus(result: SiteResult) -> bool:
    """Whether its system has GPUs."""
    return catalog.has_gpus(result.system)


def apart(
    results: Sequence[SiteResult], among: Iterable[SiteResult] = ()
) -> tuple[list[SiteResult], list[SiteResult]]:
    """Results on GPUs, and CPU tests; without a GPU among them and others there are no tests.

    CPU tests say nothing of speed: no chart, index or headline has them beside other results.
    """
    own = {system: catalog.has_gpus(system) for system in {one.system for one in results}}
    if all(own.values()) or not (any(own.values()) or any(map(is_on_gpus, among))):
        return [*results], []
    tests = [one for one in results if not own[one.system]]
    return [one for one in results if own[one.system]], tests


def on_gpus(results: Sequence[SiteResult]) -> list[SiteResult]:
    """The results on GPUs; all of them where none is on a GPU."""
    return apart(results)[0]


def release_title(framework: str, version: str | None) -> str:
    """'NeMo Framework 25.04'; a release whose version nobody stated is unattributed."""
    return f"{titles.framework(framework)} {version or f'({UNATTRIBUTED})'}"


def section_title(task: str, variant: str | None = None) -> str:
    """'Pre-training', or 'Megatron-Core pre-training' where a release has several variants."""
    title = "Fine-tuning" if task == FINE_TUNING else titles.task(task)
    title = f"Fine-tuning ({title})" if task in TUNED else title
    return f"{title}: {titles.framework(variant)}" if variant else title
