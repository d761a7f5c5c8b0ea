"""Proxies: a model that is cut to fit smaller hardware. Its name says how: llama3-70b-proxy-8l.

It is a model of its own, so that its results are never taken for those of the whole model.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import ValidationError

from perfdb.catalog.entries import Model

MARK: Final = "-proxy-"
LETTERS: Final[Mapping[str, str]] = {
    "num_layers": "l", "hidden_size": "h", "ffn_hidden_size": "f", "num_attention_heads": "a",
    "num_query_groups": "g", "head_dim": "d", "vocab_size": "v", "num_experts": "e",
    "moe_top_k": "k", "moe_ffn_hidden_size": "m", "moe_shared_expert_ffn_hidden_size": "s",
}  # fmt: skip
"""What may be cut, and its letter in the name of a proxy."""


class Models(Mapping[str, Model]):
    """The models of the catalog by name; a proxy is found by its name, and is not listed."""

    def __init__(self, listed: Mapping[str, Model]) -> None:
        self._listed = listed
        self._proxies: dict[str, Model | None] = {}

    def __getitem__(self, name: str) -> Model:
        """Raises KeyError for a name that is neither a model's nor a proxy's."""
        if MARK not in name or name in self._listed:
            return self._listed[name]
        if name not in self._proxies:
            base, _, cuts = name.rpartition(MARK)
            self._proxies[name] = _cut(self._listed.get(base), name, cuts)
        if found := self._proxies[name]:
            return found
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)


def proxy_name(model: Model, sizes: Mapping[str, int]) -> str:
    """The name of a model's proxy, of these sizes where they differ, and of so many layers."""
    kept = {it: size for it, size in sizes.items() if it == "num_layers" or vars(model)[it] != size}
    cuts = "-".join(f"{kept[it]}{letter}" for it, letter in LETTERS.items() if it in kept)
    return f"{model.name}{MARK}{cuts}"


def _cut(model: Model | None, name: str, cuts: str) -> Model | None:
    fields = {letter: field for field, letter in LETTERS.items()}
    read = [re.fullmatch(r"([1-9]\d{0,8})([a-z])", word) for word in cuts.split("-")]
    sizes = {fields.get(it[2], ""): int(it[1]) for it in read if it}
    if model is None or not all(read) or "" in sizes or "num_layers" not in sizes:
        return None
    if proxy_name(model, sizes) != name:  # one name for each
        return None
    narrower = ", narrower" if len(sizes) > 1 else ""
    kept = f"proxy: {sizes['num_layers']} of {model.num_layers} layers{narrower}"
    own = {"name": name, "title": f"{model.title} ({kept})", "aliases": ()}
    try:
        return Model.model_validate({**dict(model), **sizes, **own})
    except ValidationError:
        return None
