"""Series of results: the same work on two or more numbers of GPUs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Final, Literal, get_args

from perfdb import metrics
from perfdb.groups import grouped
from perfdb.site import addresses
from perfdb.site.data import SiteResult
from perfdb.site.grouping import newest_first, section_title, system_order
from perfdb.site.pages import best_results
from perfdb.site.pages.best_results import RATES, Rate, qualifiers
from perfdb.stated import figure
from perfdb.versions import natural

Scaling = Literal["weak", "strong"]
SCALINGS: Final[Sequence[Scaling]] = get_args(Scaling)


@dataclass(frozen=True, kw_only=True)
class ScalingSeries:
    """The same work on two or more numbers of GPUs, in ascending order, the best of each.

    Weak: the global batch grows with the GPUs. Strong: it stays as it is. `rate` is the figure
    that all of them know. `wrong` counts the rows with open errors, of which none is among them.
    """

    scaling: Scaling
    rate: Rate
    points: tuple[SiteResult, ...]
    wrong: int

    @property
    def anchor(self) -> str:
        """What it is called on its page, the same in every build and whatever its figures."""
        first = self.points[0]
        known = (first.model, *_work(first, self.scaling), self.scaling, self.rate)
        return addresses.hashed("series", known)

    @property
    def title(self) -> str:
        """'Pre-training, FP8, sequence 4,096: weak scaling, 4 samples per GPU'."""
        first = self.points[0]
        per_gpu = Fraction(first.global_batch_size, first.num_gpus)
        samples = f"{per_gpu} sample{'' if per_gpu == 1 else 's'} per GPU"
        batch = samples if self.scaling == "weak" else f"GBS {first.global_batch_size:,}"
        known = (
            section_title(first.task, first.variant),
            qualifiers(first),
            best_results.precision_of(first),
            f"sequence {first.sequence_length:,}",
            first.origin,
        )
        return f"{', '.join(filter(None, known))}: {self.scaling} scaling, {batch}"


@dataclass(frozen=True, kw_only=True)
class ScaledModel:
    """The series of a model."""

    model: str
    title: str
    series: tuple[ScalingSeries, ...]


@dataclass(frozen=True, kw_only=True)
class ScalingPage:
    """Everything on the page of a release over numbers of GPUs of a system.

    `audited` are the entries of results whose scaling the audit remarks on, by their number in the
    store.
    """

    framework: str
    release: str | None
    system: str
    system_title: str
    models: tuple[ScaledModel, ...]
    audited: Mapping[int, str] = field(default_factory=dict)

    @property
    def document(self) -> str:
        """The name of the page."""
        return addresses.of_scaling(self.framework, self.release, self.system)


def groups(results: Sequence[SiteResult]) -> list[ScalingPage]:
    """A page for each release and system with a series, the newest release first."""
    found = grouped(results, lambda one: (one.framework, one.release, one.system))
    pages = []
    for (framework, release, system), some in found.items():
        models = grouped(some, lambda one: one.model).values()
        scaled = [
            ScaledModel(model=of_model[0].model, title=of_model[0].model_title, series=series)
            for of_model in sorted(models, key=lambda rows: natural(rows[0].model_title))
            if (series := tuple(_series_of(of_model)))
        ]
        if scaled:
            pages.append(
                ScalingPage(
                    framework=framework,
                    release=release,
                    system=system,
                    system_title=some[0].system_title,
                    models=tuple(scaled),
                )
            )
    return newest_first(sorted(pages, key=lambda page: system_order(page.system)), results)


def _series_of(results: Iterable[SiteResult]) -> Iterator[ScalingSeries]:
    """Every way in which results are the same work at several scales, weak scaling first."""
    by_rate = grouped(
        results, lambda one: next((it for it in RATES if figure(one, it) is not None), None)
    )
    for scaling, rate in product(SCALINGS, RATES):
        same = grouped(by_rate.get(rate, ()), partial(_work, scaling=scaling))
        for some in same.values():
            best = best_results.best_of_each(some, rate, lambda one: one.num_gpus)
            if len(best) > 1:
                points = tuple(best[count] for count in sorted(best))
                wrong = sum(one.has_open_errors for one in some)
                yield ScalingSeries(scaling=scaling, rate=rate, points=points, wrong=wrong)


def _work(result: SiteResult, scaling: Scaling) -> tuple[object, ...]:
    """What stays the same: last the samples of each GPU, or those of all."""
    gpus = result.num_gpus if scaling == "weak" else 1
    return (
        result.task, result.variant, qualifiers(result), result.origin, result.precision,
        result.sequence_length, Fraction(result.global_batch_size, gpus),
    )  # fmt: skip


def efficiency(series: ScalingSeries) -> dict[int, float]:
    """The rate of each GPU as a share of that at the smallest scale, by number of GPUs."""
    return metrics.scaling_efficiency(
        {one.num_gpus: figure(one, series.rate) or 0.0 for one in series.points}
    )
