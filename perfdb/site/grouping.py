"""How results are put together: by task, by system or model, by release, the newest first."""

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Literal, Protocol, TypeVar

from perfdb import catalog
from perfdb.catalog import titles
from perfdb.groups import grouped
from perfdb.record import CONFIGURATION_FIELDS, Frozen
from perfdb.site import profiles
from perfdb.site.data import Result, Section, Tab
from perfdb.site.words import FINE_TUNING, framework_title
from perfdb.versions import natural, newness, version_order

Grouping = Literal["system", "model"]


class TaskResults(Frozen):
    """The results of a task."""

    task: str
    results: tuple[Result, ...]


def sections(results: Iterable[Result], group_by: Grouping) -> tuple[Section, ...]:
    """A section for each task and variant, with a tab for each system or model.

    Tasks that stand in one table are one section.
    """
    parts = grouped(results, lambda one: (_part(one.framework, one.task), one.variant))
    made = [
        Section(task=_task(some), variant=variant, tabs=tabs(some, group_by))
        for (_, variant), some in parts.items()
    ]
    return tuple(sorted(made, key=_section_order))


@cache
def _part(framework: str, task: str) -> str:
    """The task, or that it stands in the table that all fine-tuning stands in."""
    own = profiles.of_table(framework, task)
    return FINE_TUNING if profiles.TASK in own.columns else task


def _task(results: Sequence[Result]) -> str:
    tasks = {result.task for result in results}
    return tasks.pop() if len(tasks) == 1 else FINE_TUNING


def _section_order(one: Section) -> tuple[int, str, bool, str]:
    """Pre-training first; Megatron-Core before the other variants, as published pages have it."""
    is_special = one.variant not in (None, "megatron-core")
    return *task_order(one.task), is_special, one.variant or ""


def task_order(task: str) -> tuple[int, str]:
    """Pre-training, fine-tuning, and after them what else there is."""
    return place(task, titles.TASKS)


def tabs(results: Iterable[Result], group_by: Grouping) -> tuple[Tab, ...]:
    """A tab for each system, in the order of the catalogue, or for each model, by its name."""
    by_model = group_by == "model"
    groups = grouped(
        sorted(results, key=_row_order), lambda one: one.model if by_model else one.system
    )
    return tuple(
        Tab(
            name=name,
            title=groups[name][0].model_title if by_model else groups[name][0].system_title,
            results=tuple(groups[name]),
        )
        for name in sorted(groups, key=natural if by_model else system_order)
    )


@cache
def system_order(name: str) -> tuple[int, str]:
    """As the catalogue has them; a system that it lacks comes last."""
    return place(name, catalog.systems())


def place(name: str, among: Iterable[str]) -> tuple[int, str]:
    """Where a name stands among others; what is not among them comes last, by its name."""
    known = [*among]
    return (known.index(name) if name in known else len(known)), name


def _row_order(result: Result) -> tuple[object, ...]:
    """Published rows as they stand on their page; measured rows after them, by their work."""
    if result.is_measured:
        return True, *work_order(result)
    return False, result.source, result.source_line or 0


def by_task(results: Iterable[Result]) -> tuple[TaskResults, ...]:
    """The results of each task, pre-training first, in the order they come."""
    groups = grouped(results, lambda one: one.task)
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


def newest_first(given: Iterable[Item], results: Collection[Result]) -> list[Item]:
    """By framework, the newest release first; what is of the same one stays as it comes.

    `results` are those of all the releases. Trials come last: of a framework its releases without a
    result on a GPU, and of frameworks those that have no others.
    """
    builds, trials = _builds(results), _trials(results)
    by_release = sorted(
        given, key=lambda one: version_order(one.release, builds[_release(one)]), reverse=True
    )
    on_gpus = {one.framework for one in by_release if _release(one) not in trials}
    return sorted(
        by_release,
        key=lambda one: (
            one.framework not in on_gpus,
            framework_title(one.framework),
            _release(one) in trials,
        ),
    )


def _builds(results: Iterable[Result]) -> dict[Release, int]:
    """The place of each release among those that only the hash of a commit tells apart."""
    return {_release(one): one.build for one in results}


def _trials(results: Iterable[Result]) -> frozenset[Release]:
    """The releases that have no result on a GPU."""
    on_gpus = {(_release(one), is_on_gpus(one)) for one in results}
    return frozenset(one for one, _ in on_gpus if (one, True) not in on_gpus)


def _release(one: OfRelease) -> Release:
    return one.framework, one.release


def is_on_gpus(result: Result) -> bool:
    """Whether its system has GPUs."""
    return catalog.has_gpus(result.system)


def work_order(result: Result) -> tuple[object, ...]:
    """A key that sorts results by system, model, precision and size, then by how it was done."""
    size = (result.num_gpus, result.sequence_length, result.global_batch_size)
    names = (system_order(result.system), natural(result.model_title), result.precision or "")
    layout = (natural(str(getattr(result, name) or "")) for name in CONFIGURATION_FIELDS)
    return (*names, *size, *layout)


def of_newest_releases(results: Sequence[Result]) -> list[Result]:
    """The results of each framework's newest release among them.

    A release without a result on a GPU is that only where the framework has no others.
    """
    tried, builds = _trials(results), _builds(results)
    newest: dict[str, Release] = {}
    for framework, some in grouped(builds, lambda one: one[0]).items():
        on_gpus = [one for one in some if one not in tried]
        newest[framework] = max(on_gpus or some, key=lambda one: newness(one[1], builds[one]))
    return [one for one in results if newest[one.framework] == _release(one)]
