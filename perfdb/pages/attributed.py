"""What a row says of itself besides its sizes: whose it is, and what stands beside its model."""

from collections.abc import Mapping
from dataclasses import dataclass

from perfdb.pages import beside, cells, names, releases
from perfdb.pages.cells import Wrong
from perfdb.pages.context import Setting
from perfdb.pages.releases import Whose
from perfdb.pages.values import Faults

_SUMS_UP = Wrong("the row sums up others, and is no result", "put it into text below the table")
_NO_FRAMEWORK = Wrong(
    "the page does not say which framework its results are of", "pass --framework"
)
_WHOSE = "name the framework and its release in a heading of its own, or in columns"


@dataclass(frozen=True)
class Attributed:
    """The texts of a row by field, without the words beside its model, and what holds for it."""

    texts: Mapping[str, str]
    setting: Setting


def read(texts: Mapping[str, str], setting: Setting) -> Attributed | Faults | Wrong:
    """What a row says of itself, or what is wrong with it; what is nearest to its figures holds."""
    printed = texts.get("model", "")
    if names.is_summary(printed):
        return _SUMS_UP
    model, whose = beside.read(printed), releases.of_cells(texts)
    if isinstance(model, Wrong):
        return Faults({"model": model})
    if not isinstance(whose, Whose):
        return Faults(whose)
    said = _precision(texts, model.said) | _task(texts, model.said)
    if wrong := {name: one for name, one in said.items() if isinstance(one, Wrong)}:
        return Faults(wrong)
    found = {name: text for name, text in said.items() if isinstance(text, str)}
    bare = {"model": model.name} if printed else {}
    on = _gpu(texts, setting, model.said)
    return _of({**texts, **bare, **found, **on}, setting, whose)


def _of(texts: Mapping[str, str], setting: Setting, whose: Whose) -> Attributed | Wrong:
    own = setting.of(whose)
    if not own.framework:
        return _NO_FRAMEWORK
    if setting.said.unclear and whose == Whose():
        return Wrong(setting.said.unclear, _WHOSE)
    return Attributed(texts, own)


def _precision(texts: Mapping[str, str], said: Mapping[str, str]) -> dict[str, str | Wrong]:
    """The precision beside a model, where the row does not say one that is no less exact."""
    word, printed = said.get("precision"), texts.get("precision", "")
    if word is None or names.are_precisions([word], printed):
        return {}
    return {"precision": word if cells.absent(printed) else _at_odds(word, printed)}


def _task(texts: Mapping[str, str], said: Mapping[str, str]) -> dict[str, str | Wrong]:
    word, printed = said.get("task"), texts.get("task", "")
    if word is None or (not cells.absent(printed) and names.task(word) == names.task(printed)):
        return {}
    return {"task": word if cells.absent(printed) else _at_odds(word, printed)}


def _gpu(texts: Mapping[str, str], setting: Setting, said: Mapping[str, str]) -> dict[str, str]:
    """What stands beside the model, here or in a heading that says more than the row's GPUs."""
    above = None if setting.said.no_system else setting.said.beside_model
    kind = names.gpus(texts.get("num_gpus", "")).kind
    gpu = said.get("beside_model") or (above if above != kind else None)
    return {"beside_model": gpu} if gpu else {}


def _at_odds(word: str, printed: str) -> Wrong:
    return Wrong(f"{printed!r} is not {word!r}, which stands beside the model", "correct one")
