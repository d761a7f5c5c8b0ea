"""FLOPs of models that mix full attention with layers that see a window of it: GPT-OSS."""

from perfdb.catalog.base import Model
from perfdb.flops.base import Convention, Cost
from perfdb.flops.layers import attention, feed_forward, query_width, scores, vocabulary

FAMILY = "sliding"


def cost(model: Model, sequence_length: int, convention: Convention) -> Cost | None:
    """As the GPT, with each layer's attention over the keys that its mask leaves, exactly.

    Source: AutoModel, flops_utils.py, gpt_oss_flops_calculator; Megatron-LM ignores the window.
    None with multi-token prediction: whether its layers see a window, the catalogue does not say.
    """
    if model.sliding_window is None or model.mtp_depth:
        return None
    weights = (
        *attention(model, model.num_layers, convention),
        *feed_forward(model, model.num_layers, convention),
        *vocabulary(model, convention),
    )
    return Cost(weights, _attended(model, sequence_length, convention))


def _attended(model: Model, sequence_length: int, convention: Convention) -> float:
    window = model.sliding_window
    if window is None or not convention.sliding_window:
        return scores(model, model.num_layers, sequence_length, convention)
    size = min(window.size, sequence_length)
    whole = keys_left(sequence_length, sequence_length, convention)
    seen = (model.num_layers - window.num_layers) * whole
    seen += window.num_layers * keys_left(size, sequence_length, convention)
    return 2 * seen * query_width(model, convention)


def keys_left(window: int, sequence_length: int, convention: Convention) -> float:
    """Keys that a query attends to on average: W - W(W-1)/2s under a causal mask, else W.

    The mask takes W - 1 keys from the first query, W - 2 from the second, none from the W-th on.
    """
    masked = window * (window - 1) / (2 * sequence_length)
    return window - masked if convention.causal_attention else window
