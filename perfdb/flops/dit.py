"""FLOPs of a video diffusion transformer: WAN 2.1. A token is a patch of the latent video."""

from perfdb.catalog.entries import Model
from perfdb.flops.base import Convention, Cost, Weight


def video_diffusion(model: Model, sequence_length: int, convention: Convention) -> Cost | None:
    """What a latent token costs: of the text's cost, each token of a sample bears its share.

    Attention has no mask, so that every convention counts it in full. The embedding of the time
    step, one vector a sample, is not counted.
    Source: Megatron-Bridge, wan_provider.py, and Wan-Video/Wan2.1, wan/modules/model.py.
    """
    video = model.video_diffusion
    if video is None:
        return None
    hidden, layers = model.hidden_size, model.num_layers
    text_share = video.text_length / sequence_length
    width = model.num_attention_heads * model.head_dim
    weights = (
        # Blocks: self-attention, cross-attention with the text's keys and values, a plain MLP.
        Weight(hidden, width, 4 * layers, 4 * layers),
        Weight(width, hidden, 2 * layers, 2 * layers),
        Weight(hidden, width, 2 * layers, 2 * layers * text_share),
        Weight(hidden, model.ffn_hidden_size, 2 * layers, 2 * layers),
        # The patch embedding and the head; the text's two projections; the time step's three.
        Weight(video.patch_elements, hidden, 2, 2),
        Weight(video.text_width, hidden, 1, text_share),
        Weight(hidden, hidden, 1, text_share),
        Weight(video.frequency_width, hidden, 1, 0),
        Weight(hidden, hidden, 7, 0),
    )
    attended = sequence_length + video.text_length
    return Cost(weights, attention=0, mixing=layers * 2 * attended * width)
