"""From the rows of a table, and what holds for them, to published results or diagnostics."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Final

from perfdb import catalog
from perfdb.catalog import names
from perfdb.catalog.names import ModelName, Refusal
from perfdb.errors import Diagnostic
from perfdb.fields import FIGURES
from perfdb.pages import columns, context, peaks
from perfdb.pages.base import PageContext, Row, marks
from perfdb.pages.context import PageStatement
from perfdb.pages.peaks import Peaks
from perfdb.pages.tables import PageTable
from perfdb.record import Case, Figures, Method, Note, NoteCode, PublishedResult, Release, Result
from perfdb.text import absent, parsed

BRACKETED: Final = "bracketed"
"""The variant of values in brackets, where the page does not state what sets them apart."""
_NAMES: Final = ("framework", "model", "system")
_SPLITS: Final = ("tensor_parallel", "pipeline_parallel", "context_parallel")
_SHARD_GROUPS: Final = "automodel"
"""The framework whose FSDP column is always the size of the group that shards."""
_NO_FRAMEWORK: Final = Refusal("the page names no framework", "pass --framework")
_NO_SYSTEM: Final = Refusal(
    "the page names no system", "pass --system, or put `System: NAME` above the table"
)


@dataclass(frozen=True)
class PageSetting:
    """What holds for all tables of a page; `fallback`: where neither they nor the page state it."""

    where: str
    stated: PageStatement
    method: Method
    fallback: PageContext
    footnotes: Mapping[str, str]
    peaks: Peaks


@dataclass(frozen=True)
class TableReader:
    """Reads the rows of one table."""

    table: PageTable
    page: PageSetting

    @cached_property
    def _stated(self) -> PageStatement:
        """What holds for the rows of the table, as far as they do not state it."""
        return self.page.stated.then(self.table.stated).with_container()

    def results(self) -> Iterator[PublishedResult | Diagnostic]:
        """The results of each row, or why it cannot be read."""
        refusal, width = self._refusal(), len(self.table.columns)
        for row in self.table.rows:
            if refusal:
                yield self._problem(row.line, refusal)
            elif len(row.cells) != width:
                message = f"the row has {len(row.cells)} cells, its table {width} columns"
                remedy = "give each column a cell, - where it has no value"
                yield self._problem(row.line, Refusal(message, remedy))
            else:
                yield from self._row(row)

    def configurations(self) -> Iterator[Result]:
        """The sizes of each row that says on how many GPUs: by their number, or by DP.

        What it does not state is empty or 0; without a GBS it has no batches.
        """
        for row in self.table.rows:
            stated, values = self._values(self.table.texts(row))
            sizes = {name: it for name in columns.SIZES if isinstance(it := values.get(name), int)}
            copy = prod(sizes.get(name, 1) for name in _SPLITS)
            gpus = sizes.pop("num_gpus", sizes.get("data_parallel", 0) * copy)
            if "global_batch_size" not in sizes:
                sizes = {name: size for name, size in sizes.items() if "batch" not in name}
            if gpus and len(row.cells) == len(self.table.columns):
                named = (it if isinstance(it := values.get(name), str) else "" for name in _NAMES)
                framework, model, system = named
                configuration = Result(
                    framework=framework,
                    model=model,
                    system=system,
                    release=stated.release,
                    num_gpus=gpus,
                    global_batch_size=0,
                    sequence_length=0,
                    source=self.page.where,
                    source_line=row.line,
                )
                yield replace(configuration, **sizes)  # type: ignore[arg-type]

    def notes(self) -> Iterator[Diagnostic]:
        """The columns that are kept but not understood, and a task that is taken for granted."""
        if unknown := [repr(one.title) for one in self.table.columns if not one.is_known]:
            message = f"no field for the columns {', '.join(unknown)}; they are kept as extras"
            yield self._problem(self.table.line, Refusal(message, ""))
        is_open = not (self._stated.task or self._stated.task_refusal)
        if is_open and self.table.rows and "task" not in self.table.fields:
            message = "the page does not say the task; its rows count as pre-training"
            yield self._problem(self.table.line, Refusal(message, "put the task in a heading"))

    def _refusal(self) -> Refusal | None:
        """Why no row of the table can be read."""
        header = self.table.columns
        counts = Counter(one.field for one in header if one.field)
        if repeated := [repr(one.title) for one in header if one.field and counts[one.field] > 1]:
            return Refusal(f"the columns {', '.join(repeated)} mean the same", "keep one of them")
        if self._stated.refusal:
            return Refusal(self._stated.refusal, "put measured rows below a heading of their own")
        return None

    def _problem(self, line: int, refusal: Refusal, field: str | None = None) -> Diagnostic:
        return Diagnostic(self.page.where, refusal.message, field, line, refusal.remedy)

    def _row(self, row: Row) -> Iterator[PublishedResult | Diagnostic]:
        texts = self.table.texts(row)
        halves = columns.halves(texts)
        both = columns.pair(texts.get("precision", ""))
        has_precisions = both is not None and all(map(catalog.precision_of, both))
        read = []
        for at, half in enumerate(halves):
            stated, values = self._values(half)
            if at and not has_precisions:
                values["variant"] = " ".join(filter(None, (stated.variant, BRACKETED)))
            if any(isinstance(one, Refusal) for one in values.values()):
                yield from self._faulty(row, values)
                return
            read.append((stated, values))
        for half, (stated, values) in zip(halves, read, strict=True):
            yield self._result(row, stated, values, half)

    def _faulty(self, row: Row, values: Mapping[str, object]) -> Iterator[Diagnostic]:
        """A diagnostic for each field of a row that is wrong, in the order of its cells."""
        header = self.table.columns
        order = [column.title for column in header]
        titled = {
            columns.title_of(name, header): one
            for name, one in values.items()
            if isinstance(one, Refusal)
        }
        for title in sorted(titled, key=lambda it: order.index(it) if it in order else -1):
            refusal = titled[title]
            yield self._problem(row.line, refusal, None if refusal is _NO_FRAMEWORK else title)

    def _values(self, texts: Mapping[str, str]) -> tuple[PageStatement, dict[str, object]]:
        """What holds for a row, and its values by field, or what is wrong with them."""
        own = context.of_cells(texts)
        if isinstance(own, Refusal):
            return self._stated, {"release": own}
        stated, fallback = self._stated.then(own).with_container(), self.page.fallback
        if stated.framework is None:
            return stated, {"framework": _NO_FRAMEWORK}
        given = {} if fallback.case is None else columns.texts_of(fallback.case)
        texts = {**texts, **{it: given[it] for it in given if absent(texts.get(it, ""))}}
        model = _model(texts.get("model") or stated.model or "")
        precision = texts.get("precision") or stated.precision or fallback.precision or ""
        variant = texts.get("variant", "")
        return stated, {
            **columns.values(texts),
            "framework": stated.framework,
            "model": model.name if isinstance(model, ModelName) else model,
            "qualifiers": model.qualifiers if isinstance(model, ModelName) else (),
            "system": _system(texts, stated.system, fallback.system),
            "precision": names.precision(precision),
            "task": _task(texts.get("task", ""), stated),
            "variant": stated.variant if absent(variant) else variant,
            **self._fsdp(texts.get("fsdp_enabled", ""), stated),
        }

    def _fsdp(self, printed: str, stated: PageStatement) -> dict[str, object]:
        """FSDP is a switch on some pages, the size of the sharding group on others."""
        size = columns.size("fsdp_size", printed)
        is_switch = stated.framework != _SHARD_GROUPS
        if is_switch and (parsed(printed) == 0 or (size == 1 and not self._has_fsdp_sizes)):
            return {"fsdp_enabled": bool(size)}
        return {"fsdp_enabled" if isinstance(size, Refusal) else "fsdp_size": size}

    @cached_property
    def _has_fsdp_sizes(self) -> bool:
        """Whether a row of the table gives FSDP a size: a 1 is no switch there."""
        texts = (self.table.texts(row).get("fsdp_enabled", "") for row in self.table.rows)
        return any((parsed(text) or 0) > 1 for text in texts)

    def _result(
        self,
        row: Row,
        stated: PageStatement,
        values: dict[str, object],
        texts: Mapping[str, str],
    ) -> PublishedResult:
        assert stated.framework is not None, "a row without a framework is refused"
        figures = Figures.model_validate({name: values.pop(name) for name in FIGURES})
        peak = peaks.of_case(self.page.peaks, str(values["system"]), str(values["precision"]))
        pairs = list(zip(self.table.columns, row.cells, strict=True))
        own = (mark for cell in row.cells for mark in marks(cell.text))
        footnotes = [self.page.footnotes.get(mark) for mark in (*own, *self.table.marks)]
        return PublishedResult(
            case=Case.model_validate(values),
            release=Release(
                framework=stated.framework, version=stated.release, container=stated.container
            ),
            figures=figures,
            method=self.page.method,
            peak_tflops=None if figures.mfu is None else peak or self.page.fallback.peak_tflops,
            line=row.line,
            raw={column.title: cell.raw for column, cell in pairs},
            printed=self._printed(texts),
            extras={
                column.title: cell.text.replace("\n", " ")
                for column, cell in pairs
                if column.field is None
            },
            notes=tuple(
                Note(NoteCode.FOOTNOTE, {"text": text})
                for text in dict.fromkeys((*footnotes, *self.table.notes))
                if text is not None
            ),
        )

    def _printed(self, texts: Mapping[str, str]) -> dict[str, str]:
        """The text of each cell by field, as a table shows it; of GPUs their number alone."""
        found = {name: " ".join(text.split()) for name, text in texts.items()}
        if "num_gpus" in found:
            found["num_gpus"] = columns.gpus(found["num_gpus"])[0]
        if "fsdp_enabled" in found:
            found["fsdp_size"] = found["fsdp_enabled"]
        title = columns.title_of("sequence_length", self.table.columns)
        if title.casefold().startswith("packed") and "sequence_length" in found:
            found["packed_sequence_length"] = found["sequence_length"]
        return found


def _model(printed: str) -> ModelName | Refusal:
    """A model. What its brackets name of precision or task belongs in a column."""
    model = names.model(" ".join(printed.split()))
    if isinstance(model, Refusal) or catalog.named_model(printed):
        return model
    for words in model.qualifiers:
        if names.tasks(words) or any(map(catalog.precision_of, words.replace(",", " ").split())):
            message = f"{printed!r} names a precision or a task next to the model"
            return Refusal(message, "write it in a column Precision or Task")
    return model


def _system(texts: Mapping[str, str], above: str | None, option: str | None) -> str | Refusal:
    """The system of a row: its own, the one above its table, that of its GPUs, or an option's."""
    printed = texts.get("system", "")
    if printed and not absent(printed):
        return names.system(printed)
    if above:
        return names.system(above)
    # A B200 is in a DGX-B200 and, as part of a superchip, in a DGX-GB200.
    superchips = {word.casefold() for one in catalog.systems().values() for word in one.detect}
    kind = columns.gpus(texts.get("num_gpus", ""))[1]
    if kind and f"G{kind}".casefold() not in superchips:
        return names.system_of_gpu(kind)
    return names.system(option) if option else _NO_SYSTEM


def _task(printed: str, stated: PageStatement) -> str | Refusal:
    """The row's task; pre-training where nothing states it: it is what a benchmark trains."""
    if not absent(printed):
        return names.task(printed)
    if stated.task_refusal:
        return Refusal(stated.task_refusal, "write Pre-training, SFT or LoRA in a column Task")
    return stated.task or "pretrain"
