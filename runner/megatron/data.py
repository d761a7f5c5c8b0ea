"""Draws the training samples: a learnable sequence for every global sample id.

The n-th sample of a step is the same whatever the layout, so that every layout sees the same
global batch and must give the same loss. Nothing is read from disk: this measures training.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from runner.megatron.config import WorkerConfig


@dataclass(frozen=True)
class MicroBatch:
    """What one forward pass of one rank sees; each is [micro batch size, tokens on this rank]."""

    tokens: Tensor
    labels: Tensor
    position_ids: Tensor

    @property
    def inputs(self) -> tuple[Tensor, Tensor, None]:
        """Of the model. No mask: every attention used here is causal by itself."""
        return self.tokens, self.position_ids, None

    @property
    def num_tokens(self) -> int:
        """On this rank."""
        return self.tokens.numel()


@dataclass(frozen=True)
class Shard:
    """Shard `index` of `count` equal ones: a rank's place in one parallel dimension."""

    index: int
    count: int


class MockData:
    """The micro-batches of one data- and context-parallel rank, step by step.

    A sample starts from a token drawn by its id, and the next token is always 3·t + 7 modulo the
    vocabulary. So token k is a[k]·t + b[k], with a and b computed once: a step costs one product.
    """

    def __init__(self, config: WorkerConfig, data: Shard, context: Shard, device: torch.device):
        self._config, self._data, self._context, self._device = config, data, context, device
        multipliers, offsets, vocab = [1], [0], config.model.vocab_size
        for _ in range(config.sequence_length):
            multipliers.append(3 * multipliers[-1] % vocab)
            offsets.append((3 * offsets[-1] + 7) % vocab)
        self._multipliers, self._offsets = torch.tensor(multipliers), torch.tensor(offsets)

    def step(self, index: int) -> list[MicroBatch]:
        """The micro-batches of step `index` (from 0), on the device, ready to be used."""
        size, mbs = self._config.global_batch_size, self._config.micro_batch_size
        vocab, length = self._config.model.vocab_size, self._config.sequence_length
        ids = index * size + torch.arange(size)
        # Micro-batch m of rank r holds the samples from (m·DP + r)·MBS on, as Megatron-LM deals.
        mine = ids.view(-1, self._data.count, mbs)[:, self._data.index]
        # glibc's generator; the seed moves where the samples start.
        start = (1103515245 * mine.reshape(-1, 1) + self._config.seed) % 2**31 % vocab
        samples = (self._multipliers * start + self._offsets) % vocab
        tokens, labels, positions = (
            context_part(one, self._context).contiguous().to(self._device)
            for one in (samples[:, :-1], samples[:, 1:], torch.arange(length).expand(mbs, -1))
        )
        starts = range(0, len(samples), mbs)
        return [MicroBatch(tokens[i : i + mbs], labels[i : i + mbs], positions) for i in starts]


def context_part(tokens: Tensor, context: Shard) -> Tensor:
    """A context-parallel rank's tokens: chunks r and 2·CP-1-r of 2·CP, early and late together.

    Causal attention works least on the first chunk and most on the last; such pairs are equal
    work. The order is Megatron-Core's own (utils.get_batch_on_this_cp_rank); attention.py and the
    rotary positions of the library rely on it.
    """
    chunks = tokens.chunk(2 * context.count, dim=1)
    return torch.cat([chunks[context.index], chunks[2 * context.count - 1 - context.index]], dim=1)
