"""A video diffusion transformer after WAN 2.1, of Megatron-Core's attention and MLP; its samples.

Source: Wan-Video/Wan2.1, wan/modules/model.py. Rotary positions count patches along one axis, not
three, and attention and weights are not normalized: neither is among the model's FLOPs.
"""

import math
from dataclasses import dataclass

import torch
from megatron.core.enums import ModelType
from megatron.core.models.common.embeddings.rotary_pos_embedding import RotaryEmbedding
from megatron.core.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear
from megatron.core.transformer import attention
from megatron.core.transformer.enums import AttnMaskType
from megatron.core.transformer.mlp import MLP, MLPSubmodules
from megatron.core.transformer.module import MegatronModule
from megatron.core.transformer.transformer_config import TransformerConfig
from torch import Tensor, nn
from torch.nn import functional

from runner.megatron.attention import CoreAttention
from runner.megatron.config import WorkerConfig
from runner.megatron.data import Shard

MODULATIONS = 6
"""Shift, scale and gate, of the self-attention and of the MLP."""
MOST_FREQUENCY = 10_000.0


@dataclass(frozen=True)
class VideoBatch:
    """What one forward pass sees: patches with noise, how much, the prompt; and what to predict."""

    noisy: Tensor
    time: Tensor
    text: Tensor
    labels: Tensor

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor]:
        """Of the model."""
        return self.noisy, self.time, self.text

    @property
    def num_tokens(self) -> int:
        """Patches of all its samples."""
        return self.labels.shape[:2].numel()


class VideoData:
    """The micro-batches of one data-parallel rank: samples drawn by their id, as flow matching."""

    def __init__(self, config: WorkerConfig, data: Shard, _context: Shard, device: torch.device):
        self._config, self._data, self._device = config, data, device

    def step(self, index: int) -> list[VideoBatch]:
        """The micro-batches of step `index` (from 0)."""
        size, mbs = self._config.global_batch_size, self._config.micro_batch_size
        ids = (index * size + torch.arange(size)).view(-1, self._data.count, mbs)
        return [self._batch(some.tolist()) for some in ids[:, self._data.index]]

    def _batch(self, ids: list[int]) -> VideoBatch:
        parts = zip(*map(self._sample, ids), strict=True)
        noisy, time, text, labels = (torch.stack(part).to(self._device) for part in parts)
        return VideoBatch(noisy, time, text, labels)

    def _sample(self, number: int) -> tuple[Tensor, ...]:
        """A smooth video; what takes it to its noise is the label, as WAN is trained."""
        video, length = self._config.model.video_diffusion or {}, self._config.sequence_length
        drawn = torch.Generator().manual_seed(self._config.seed + number)
        noise = torch.randn(length, video["patch_elements"], generator=drawn)
        text = torch.randn(video["text_length"], video["text_width"], generator=drawn)
        time = torch.rand((), generator=drawn)
        clean = torch.sin(torch.arange(noise.numel()).view_as(noise) * text[0, 0])
        return (1 - time) * clean + time * noise, time, text, noise - clean


class DiffusionBlock(MegatronModule):  # type: ignore[misc]  # Megatron-Core has no types
    """Self-attention, cross-attention to the prompt, and an MLP, modulated by the time (adaLN)."""

    def __init__(self, config: TransformerConfig, number: int) -> None:
        super().__init__(config=config)
        parts = {"core_attention": CoreAttention, "linear_proj": RowParallelLinear}
        of_self = attention.SelfAttentionSubmodules(linear_qkv=ColumnParallelLinear, **parts)
        of_text = attention.CrossAttentionSubmodules(
            linear_q=ColumnParallelLinear, linear_kv=ColumnParallelLinear, **parts
        )
        whole = AttnMaskType.no_mask
        self.self_attention = attention.SelfAttention(config, of_self, number, whole)
        self.cross_attention = attention.CrossAttention(config, of_text, number, whole)
        of_mlp = MLPSubmodules(linear_fc1=ColumnParallelLinear, linear_fc2=RowParallelLinear)
        self.mlp = MLP(config, of_mlp, ffn_hidden_size=config.ffn_hidden_size)
        self.cross_norm = nn.LayerNorm(config.hidden_size)
        self.modulation = nn.Parameter(torch.zeros(MODULATIONS * config.hidden_size))

    def forward(self, hidden: Tensor, time: Tensor, text: Tensor, rotary: Tensor) -> Tensor:
        """[patches, batch, width], and of the time [batch, six widths]."""
        shift, scale, gate, shift_mlp, scale_mlp, gate_mlp = (time + self.modulation).chunk(6, -1)
        normed = _norm(hidden) * (1 + scale) + shift
        hidden = hidden + gate * self.self_attention(normed, None, rotary_pos_emb=rotary)[0]
        hidden = hidden + self.cross_attention(self.cross_norm(hidden), None, text)[0]
        fed: Tensor = self.mlp(_norm(hidden) * (1 + scale_mlp) + shift_mlp)[0]
        return hidden + gate_mlp * fed


def _norm(hidden: Tensor) -> Tensor:
    return functional.layer_norm(hidden, hidden.shape[-1:])


class DiffusionTransformer(MegatronModule):  # type: ignore[misc]  # as above
    """Predicts what takes patches with noise to their noise; gives the squared error of each."""

    share_embeddings_and_output_weights = False
    model_type = ModelType.encoder_or_decoder  # what Megatron-Core's schedules ask of a model

    def __init__(self, config: TransformerConfig, run: WorkerConfig) -> None:
        super().__init__(config=config)
        video, width = run.model.video_diffusion or {}, config.hidden_size
        self._frequencies = video["frequency_width"]
        self.patch = nn.Linear(video["patch_elements"], width)
        self.text_in, self.text_out = nn.Linear(video["text_width"], width), nn.Linear(width, width)
        self.time_in, self.time_out = nn.Linear(self._frequencies, width), nn.Linear(width, width)
        self.time_modulation = nn.Linear(width, MODULATIONS * width)
        self.rotary = RotaryEmbedding(
            config.kv_channels, 1.0, use_cpu_initialization=config.use_cpu_initialization
        )
        self.blocks = nn.ModuleList(DiffusionBlock(config, n + 1) for n in range(config.num_layers))
        self.modulation = nn.Parameter(torch.zeros(2 * width))
        self.head = nn.Linear(width, video["patch_elements"])

    def set_input_tensor(self, _tensor: object) -> None:
        """Megatron-Core's schedules hand over what an earlier stage gave: there is none."""

    def forward(self, noisy: Tensor, time: Tensor, text: Tensor, labels: Tensor) -> Tensor:
        """The mean squared error of each patch, [batch, patches]."""
        hidden = self.patch(noisy).transpose(0, 1).contiguous()
        prompt = self.text_out(functional.gelu(self.text_in(text), approximate="tanh"))
        prompt, rotary = prompt.transpose(0, 1).contiguous(), self.rotary(len(hidden))
        half = torch.arange(self._frequencies // 2, device=time.device) / (self._frequencies // 2)
        angle = time[:, None] * 1000 * torch.exp(-math.log(MOST_FREQUENCY) * half)
        waves = torch.cat([angle.cos(), angle.sin()], -1).to(hidden.dtype)
        moment = self.time_out(functional.silu(self.time_in(waves)))
        modulation = self.time_modulation(functional.silu(moment))
        for block in self.blocks:
            hidden = block(hidden, modulation, prompt, rotary)
        shift, scale = (moment.repeat(1, 2) + self.modulation).chunk(2, -1)
        predicted: Tensor = self.head(_norm(hidden) * (1 + scale) + shift).transpose(0, 1)
        errors: Tensor = (predicted.float() - labels.float()).square()
        return errors.mean(-1)
