"""Series of results: the same work on two or more numbers of GPUs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Final, Literal, get_args

from perfdb import metrics
from perfdb.record import Frozen
from perfdb.site import addresses, bests
from perfdb.site.data import Result
from perfdb.site.words import framework_title, section_title, version_order

Scaling = Literal["weak", "strong"]
Rate = Literal["tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu"]
SCALINGS: Final[Sequence[Scaling]] = get_args(Scaling)
RATES: Final[Sequence[Rate]] = get_args(Rate)


class Series(Frozen):
    """The same work on two or more numbers of GPUs, in ascending order, the best of each.

    Weak: the global batch grows with the GPUs. Strong: it stays as it is. `rate` is the figure
    that all of them know.
    """

    scaling: Scaling
    rate: Rate
    points: tuple[Result, ...]

    @property
    def title(self) -> str:
        """'Pre-training, FP8, sequence 4,096: weak scaling, 4 samples per GPU'."""
        first = self.points[0]
        per_gpu = Fraction(first.global_batch_size, first.num_gpus)
        samples = f"{per_gpu} sample{'' if per_gpu == 1 else 's'} per GPU"
        batch = samples if self.scaling == "weak" else f"GBS {first.global_batch_size:,}"
        known = (
            section_title(first.task, first.variant),
            first.qualifiers,
            bests.precision_of(first),
            f"sequence {first.sequence_length:,}",
            first.origin,
        )
        return f"{', '.join(filter(None, known))}: {self.scaling} scaling, {batch}"


class ScalingPage(Frozen):
    """Everything on the page of a release's model over numbers of GPUs of a system."""

    framework: str
    release: str | None
    model: str
    model_title: str
    system: str
    system_title: str
    series: tuple[Series, ...]

    @property
    def document(self) -> str:
        """The name of the page."""
        return addresses.of_scaling(self.framework, self.release, self.model, self.system)


def groups(results: Iterable[Result]) -> list[ScalingPage]:
    """A page for each release, model and system with a series, the newest release first."""
    found: dict[tuple[str, str | None, str, str], list[Result]] = defaultdict(list)
    for result in results:
        found[result.framework, result.release, result.model, result.system].append(result)
    pages = []
    for (framework, release, model, system), some in found.items():
        series = tuple(_series(some))
        if series:
            first = series[0].points[0]
            pages.append(
                ScalingPage(
                    framework=framework, release=release,
                    model=model, model_title=first.model_title,
                    system=system, system_title=first.system_title,
                    series=series,
                )
            )  # fmt: skip
    newest_first = sorted(pages, key=lambda page: version_order(page.release), reverse=True)
    return sorted(newest_first, key=lambda page: framework_title(page.framework))


def _series(results: Sequence[Result]) -> Iterator[Series]:
    """Every way in which results are the same work at several scales, weak scaling first."""
    for scaling in SCALINGS:
        for rate in RATES:
            same: dict[tuple[object, ...], list[Result]] = defaultdict(list)
            for result in results:
                if _rate_known(result) == rate:
                    same[*_work(result), _batch(result, scaling)].append(result)
            for some in same.values():
                points = _best_of_each_scale(some, rate)
                if len(points) > 1:
                    yield Series(scaling=scaling, rate=rate, points=points)


def _work(result: Result) -> tuple[object, ...]:
    return (
        result.task, result.variant, result.qualifiers, result.origin, result.precision,
        result.sequence_length,
    )  # fmt: skip


def _batch(result: Result, scaling: Scaling) -> Fraction:
    """What stays the same: the samples of each GPU, or those of all."""
    gpus = result.num_gpus if scaling == "weak" else 1
    return Fraction(result.global_batch_size, gpus)


def _rate_known(result: Result) -> Rate | None:
    if result.withheld is not None:
        return None
    return next((rate for rate in RATES if rate_of(result, rate) is not None), None)


def rate_of(result: Result, rate: Rate) -> float | None:
    """The rate of each GPU: as stated, else from what is stated of the whole job."""
    stated = bests.figure(result, rate)
    if stated is not None or rate == "model_tflops_per_sec_per_gpu":
        return stated
    if result.tokens_per_sec:
        return result.tokens_per_sec / result.num_gpus
    if result.step_time_s:
        return metrics.tokens_per_sec_per_gpu(
            result.global_batch_size, result.sequence_length, result.step_time_s, result.num_gpus
        )
    return None


def _best_of_each_scale(results: Iterable[Result], rate: Rate) -> tuple[Result, ...]:
    best: dict[int, Result] = {}
    for result in sorted(results, key=lambda one: rate_of(one, rate) or 0.0):
        best[result.num_gpus] = result
    return tuple(best[count] for count in sorted(best))


def efficiency(series: Series) -> dict[int, float]:
    """The rate of each GPU as a share of that at the smallest scale, by number of GPUs."""
    return metrics.scaling_efficiency(
        {one.num_gpus: rate_of(one, series.rate) or 0.0 for one in series.points}
    )
