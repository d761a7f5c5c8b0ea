"""Whether a run trained the model that the catalogue has under its name. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from perfdb import catalog
from perfdb.record import WorkerConfiguration

SAID: Final = "the model was trained in another shape than the catalogue's: "


def difference(name: str, configuration: WorkerConfiguration | None) -> str | None:
    """How the model that a worker was told to train is not the catalogue's of this name.

    None where it is, or where one of the two is not known.
    """
    model, shape = catalog.models().get(name), configuration and configuration.model
    if model is None or not isinstance(shape, Mapping):
        return None
    fields = ", ".join(_different(model, shape))
    return f"{SAID}{fields}; TFLOP/s and MFU are unknown" if fields else None


def _different(model: catalog.Model, shape: Mapping[str, object]) -> Iterator[str]:
    for name, told in shape.items():
        if name in catalog.Model.model_fields and told != (known := getattr(model, name)):
            yield f"{name} {told}, not {known}"


def is_other(notes: Iterable[str]) -> bool:
    """Whether one of these notes says that another shape was trained."""
    return any(map(is_said, notes))


def is_said(note: str) -> bool:
    """Whether a note says that another shape was trained."""
    return note.startswith(SAID)
