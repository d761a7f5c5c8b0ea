"""How results are put together: by task, by system or model, by release, the newest first."""

from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from functools import cache
from typing import Literal, Protocol, TypeVar

from perfdb import catalog
from perfdb.catalog import titles
from perfdb.record import Frozen
from perfdb.site import profiles
from perfdb.site.data import Result, Section, Tab
from perfdb.site.words import FINE_TUNING, framework_title
from perfdb.versions import natural, newest_version, version_order

TASK_ORDER = tuple(titles.TASKS)

Grouping = Literal["system", "model"]


class TaskResults(Frozen):
    """The results of a task."""

    task: str
    results: tuple[Result, ...]


def sections(results: Iterable[Result], group_by: Grouping) -> tuple[Section, ...]:
    """A section for each task and variant, with a tab for each system or model.

    Tasks that stand in one table are one section.
    """
    parts: dict[tuple[str, str | None], list[Result]] = defaultdict(list)
    for result in results:
        parts[_part(result), result.variant].append(result)
    made = [
        Section(task=_task(some), variant=variant, tabs=tabs(some, group_by))
        for (_, variant), some in parts.items()
    ]
    return tuple(sorted(made, key=lambda one: _section_order((one.task, one.variant))))


def _part(result: Result) -> str:
    """The task, or that it stands in the table that all fine-tuning stands in."""
    own = profiles.of_table(result.framework, result.task)
    return FINE_TUNING if profiles.TASK in own.columns else result.task


def _task(results: Sequence[Result]) -> str:
    tasks = {result.task for result in results}
    return tasks.pop() if len(tasks) == 1 else FINE_TUNING


def _section_order(key: tuple[str, str | None]) -> tuple[int, str, bool, str]:
    """Pre-training first; Megatron-Core before the other variants, as published pages have it."""
    task, variant = key
    return *task_order(task), variant not in (None, "megatron-core"), variant or ""


def task_order(task: str) -> tuple[int, str]:
    """Pre-training, fine-tuning, and after them what else there is."""
    return (TASK_ORDER.index(task) if task in TASK_ORDER else len(TASK_ORDER)), task


def tabs(results: Iterable[Result], group_by: Grouping) -> tuple[Tab, ...]:
    """A tab for each system, in the order of the catalogue, or for each model, by its name."""
    by_model = group_by == "model"
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in sorted(results, key=_row_order):
        groups[result.model if by_model else result.system].append(result)
    named = {
        name: some[0].model_title if by_model else some[0].system_title
        for name, some in groups.items()
    }
    return tuple(
        Tab(name=name, title=named[name], results=tuple(groups[name]))
        for name in sorted(groups, key=natural if by_model else system_order)
    )


@cache
def system_order(name: str) -> tuple[int, str]:
    """As the catalogue has them; a system that it lacks comes last."""
    known = list(catalog.systems())
    return (known.index(name) if name in known else len(known)), name


def _row_order(result: Result) -> tuple[bool, str, int]:
    """Published rows as they stand on their page; measured rows after them, as they come."""
    if result.is_measured:
        return True, "", 0
    return False, result.source, result.source_line or 0


def by_task(results: Iterable[Result]) -> tuple[TaskResults, ...]:
    """The results of each task, pre-training first, in the order they come."""
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        groups[result.task].append(result)
    return tuple(
        TaskResults(task=task, results=tuple(groups[task]))
        for task in sorted(groups, key=task_order)
    )


class OfRelease(Protocol):
    """What is of a release."""

    @property
    def framework(self) -> str:
        """Its framework."""

    @property
    def release(self) -> str | None:
        """Its version."""


Item = TypeVar("Item", bound=OfRelease)

Release = tuple[str, str | None]
"""A framework and its version."""


def newest_first(given: Iterable[Item], trials: Container[Release]) -> list[Item]:
    """By framework, the newest release first; what is of the same one stays as it comes.

    `trials` come last: of a framework its releases without a result on a GPU, and of frameworks
    those that have no others.
    """
    by_release = sorted(given, key=lambda one: version_order(one.release), reverse=True)
    on_gpus = {one.framework for one in by_release if _release(one) not in trials}
    return sorted(
        by_release,
        key=lambda one: (
            one.framework not in on_gpus,
            framework_title(one.framework),
            _release(one) in trials,
        ),
    )


def trials(results: Iterable[Result]) -> frozenset[Release]:
    """The releases that have no result on a GPU."""
    on_gpus = {(_release(one), is_on_gpus(one)) for one in results}
    return frozenset(one for one, _ in on_gpus if (one, True) not in on_gpus)


def _release(one: OfRelease) -> Release:
    return one.framework, one.release


def is_on_gpus(result: Result) -> bool:
    """Whether its system has GPUs."""
    return catalog.has_gpus(result.system)


def work_order(result: Result) -> tuple[object, ...]:
    """A key that sorts results by system, model, precision and size."""
    size = (result.num_gpus, result.sequence_length, result.global_batch_size)
    names = (system_order(result.system), natural(result.model_title), result.precision or "")
    return (*names, *size)


def of_newest_releases(results: Sequence[Result]) -> list[Result]:
    """The results of each framework's newest release among them.

    A release without a result on a GPU is that only where the framework has no others.
    """
    tried = trials(results)
    versions: dict[tuple[str, bool], set[str | None]] = defaultdict(set)
    for result in results:
        versions[result.framework, _release(result) in tried].add(result.release)
    newest = {
        framework: newest_version(versions.get((framework, False), some))
        for (framework, _), some in versions.items()
    }
    return [one for one in results if newest[one.framework] == one.release]
