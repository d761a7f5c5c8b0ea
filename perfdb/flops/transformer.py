"""FLOPs of transformers of text: dense, with experts, latent attention, or sliding windows.

First the layers that architectures consist of, then the cost of a token in each family.
"""

from dataclasses import replace

from perfdb.catalog.entries import Model
from perfdb.flops.base import Convention, Cost, Weight

Weights = tuple[Weight, ...]


def query_width(model: Model, convention: Convention) -> int:
    """The width of all query heads together, in elements."""
    if model.family in convention.hidden_wide_families:
        return model.hidden_size
    return model.num_attention_heads * model.head_dim


def attention(model: Model, layers: int, convention: Convention) -> Weights:
    """Query, key, value and output projections of so many layers: h·(Q + 2K) + Q·h each.

    Source: Megatron-LM, megatron/training/training.py, num_floating_point_operations. An output
    gate is one more matrix of the query's shape (AutoModel, flops_utils.py, qwen3_5_flops).
    """
    query = query_width(model, convention)
    groups = model.num_query_groups if convention.grouped_query else model.num_attention_heads
    key_value = query * groups // model.num_attention_heads
    queries = layers * (2 if model.attention_output_gate and convention.output_gate else 1)
    return (
        Weight(model.hidden_size, query, queries, queries),
        Weight(model.hidden_size, key_value, 2 * layers, 2 * layers),
        Weight(query, model.hidden_size, layers, layers),
    )


def keys_seen(sequence_length: int, convention: Convention) -> float:
    """Keys that a query attends to, averaged over the sequence: half of them under a mask.

    The half leaves out half of the diagonal; a sliding window counts it whole.
    """
    return (0.5 if convention.causal_attention else 1.0) * sequence_length


def scores(model: Model, layers: int, sequence_length: int, convention: Convention) -> float:
    """Multiply-adds of a token's attention in so many layers: query with key, then with value."""
    return layers * 2 * keys_seen(sequence_length, convention) * query_width(model, convention)


def feed_forward(model: Model, layers: int, convention: Convention) -> Weights:
    """The MLPs of so many layers: experts where the model has them, after the dense ones."""
    dense = model.num_dense_layers if model.num_experts else layers
    assumed = 0 if model.gated_mlp or model.family not in convention.gated_families else dense
    return (
        *mlp(model, Weight(model.hidden_size, model.ffn_hidden_size, dense, dense), convention),
        Weight(model.hidden_size, model.ffn_hidden_size, 0, assumed, adapted=False),
        *(experts(model, layers - dense, convention) if model.num_experts else ()),
    )


def mlp(model: Model, up: Weight, convention: Convention) -> Weights:
    """MLPs with the first matrix `up`: it comes twice where there is a gate."""
    gated = model.gated_mlp and (model.activation == "silu" or not convention.silu_gates_only)
    matrices = replace(up, held=2 * up.held, used=2 * up.used) if gated else up
    return (matrices, replace(up, inputs=up.outputs, outputs=up.inputs))


def experts(model: Model, layers: int, convention: Convention) -> Weights:
    """The top-k of the experts, the shared one, the router, and the way to a latent space.

    Source: Megatron-LM, num_floating_point_operations; for the latent space AutoModel,
    flops_utils.py, _nemotronh_moe_layer_flops.
    """
    hidden, width = model.hidden_size, model.moe_ffn_hidden_size or 0
    number, latent = model.num_experts or 0, model.moe_latent_size or 0
    shared = model.moe_shared_expert_ffn_hidden_size or 0
    if model.family in convention.one_shared_expert_families:
        shared = min(shared, width)
    routed = Weight(latent or hidden, width, layers * number, layers * (model.moe_top_k or 0))
    routing = layers if model.family in convention.router_families else 0
    to_and_from = 2 * layers if latent else 0
    return (
        *mlp(model, routed, convention),
        *mlp(model, Weight(hidden, shared, layers, layers), convention),
        Weight(hidden, number, layers, routing, adapted=False),
        Weight(hidden, latent, to_and_from, to_and_from),
    )


def vocabulary(model: Model, convention: Convention) -> Weights:
    """The embedding, which is a look-up and costs nothing, and the projection to the vocabulary.

    Each depth of multi-token prediction projects once more, and joins the hidden state with an
    embedding: 2h·h and three norms (Megatron-LM, num_floating_point_operations).
    """
    hidden, words, depth = model.hidden_size, model.vocab_size or 0, model.mtp_depth
    joined = 0 if model.family in convention.unjoined_families else depth
    norms = 3 * joined if convention.norms else 0
    return (
        Weight(words, hidden, 0 if model.tied_embeddings else 1, 0, adapted=False),
        Weight(hidden, words, 1, 1 + depth if convention.logits else 0, adapted=False),
        Weight(2 * hidden, hidden, depth, joined, adapted=False),
        Weight(hidden, 1, norms, norms, adapted=False),
    )


def dense(model: Model, sequence_length: int, convention: Convention) -> Cost:
    """L·(h(Q + 2K) + Q·h + k·h·f) + h·V through weights, and L·2c·s·Q in attention.

    Source: Megatron-LM, megatron/training/training.py, num_floating_point_operations.
    """
    layers = model.num_layers + model.mtp_depth
    weights = (
        *attention(model, layers, convention),
        *feed_forward(model, layers, convention),
        *vocabulary(model, convention),
    )
    return Cost(weights, scores(model, layers, sequence_length, convention))


def mixture_of_experts(model: Model, sequence_length: int, convention: Convention) -> Cost | None:
    """As the dense GPT, with top-k expert MLPs and the shared one; the router is not counted.

    Source: Megatron-LM, megatron/training/training.py, num_floating_point_operations.
    """
    if model.num_experts is None:
        return None
    return dense(model, sequence_length, convention)


def latent_attention(model: Model, sequence_length: int, convention: Convention) -> Cost | None:
    """Queries, keys and values through their latent spaces; then as any mixture of experts.

    Source: Megatron-LM, megatron/training/training.py, num_floating_point_operations, which also
    counts the norms of the latent spaces; AutoModel's deepseekv3_flops does not.
    """
    latent, hidden, heads = model.latent_attention, model.hidden_size, model.num_attention_heads
    if latent is None:
        return None
    layers, rank = model.num_layers + model.mtp_depth, latent.q_lora_rank
    query_head = latent.qk_nope_head_dim + latent.qk_rope_head_dim
    queries = heads * query_head
    shapes = (
        *([(hidden, rank), (rank, queries)] if rank else [(hidden, queries)]),
        (hidden, latent.kv_lora_rank + latent.qk_rope_head_dim),
        (latent.kv_lora_rank, heads * (latent.qk_nope_head_dim + latent.v_head_dim)),
        (heads * latent.v_head_dim, hidden),
    )
    norms = [width for width in (rank, latent.kv_lora_rank) if width and convention.norms]
    weights = (
        *(Weight(*shape, layers, layers) for shape in shapes),
        *(Weight(width, 1, layers, layers, adapted=False) for width in norms),
        *feed_forward(model, layers, convention),
        *vocabulary(model, convention),
    )
    width = heads * (query_head + latent.v_head_dim)
    return Cost(weights, layers * keys_seen(sequence_length, convention) * width)


def sliding_window(model: Model, sequence_length: int, convention: Convention) -> Cost | None:
    """As the GPT, with each layer's attention over the keys that its mask leaves, exactly.

    Source: AutoModel, flops_utils.py, gpt_oss_flops_calculator; Megatron-LM ignores the window.
    None with multi-token prediction: whether its layers see a window, the catalogue does not say.
    """
    window, layers = model.sliding_window, model.num_layers
    if window is None or model.mtp_depth:
        return None
    weights = (
        *attention(model, layers, convention),
        *feed_forward(model, layers, convention),
        *vocabulary(model, convention),
    )
    if not convention.sliding_window:
        return Cost(weights, scores(model, layers, sequence_length, convention))

    def keys_left(size: int) -> float:
        # A causal mask takes size - 1 keys from the first query, size - 2 from the second, and
        # none from the size-th on.
        masked = size * (size - 1) / (2 * sequence_length) if convention.causal_attention else 0
        return size - masked

    seen = (layers - window.num_layers) * keys_left(sequence_length)
    seen += window.num_layers * keys_left(min(window.size, sequence_length))
    return Cost(weights, 2 * seen * query_width(model, convention))
