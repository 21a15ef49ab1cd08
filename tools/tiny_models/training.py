# SPDX-License-Identifier: Apache-2.0
"""One training run: AdamW, warm-up and cosine, the same numbers for the same seed on one machine with one thread."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import gguf
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tools.tiny_models.batches import Batches

WARM_UP = 50
Loss = Callable[[torch.Tensor], torch.Tensor]

COPY_STEPS, COPY_RATE = 600, 3e-3
"""A second stage over rows that repeat themselves. Without it a model of this size does not learn to copy in the time;
with it, it does within a few hundred steps, all at once."""


def copy_batches(text: Sequence[int], seed: int) -> Batches:
    return Batches(text, rows=16, length=128, seed=seed, copy_share=0.9, shortest=12)


def read_weights(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Put the weights of a file, half floats, into ``tensors``: the second stage begins with what the first wrote."""
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    with torch.no_grad():
        for name, tensor in tensors.items():
            values = torch.from_numpy(np.array(stored[name].data, dtype=np.float32))
            tensor.copy_(values.reshape(tensor.shape))


def next_token_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def train(
    parameters: list[nn.Parameter],
    loss_of: Loss,
    batches: Batches,
    *,
    steps: int,
    rate: float,
    say: Callable[[str], None] = print,
) -> None:
    """``loss_of`` takes tokens [rows, length + 1]."""
    optimizer = torch.optim.AdamW(parameters, lr=rate, betas=(0.9, 0.95), weight_decay=0.05)
    begun, mean = time.monotonic(), 0.0
    for step in range(steps):
        factor = min(1.0, (step + 1) / WARM_UP) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / steps)))
        for group in optimizer.param_groups:
            group["lr"] = rate * factor
        loss = loss_of(torch.from_numpy(batches.next()))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        mean = loss.item() if step == 0 else 0.98 * mean + 0.02 * loss.item()
        if (step + 1) % 50 == 0:
            say(f"step {step + 1}/{steps} loss {mean:.3f} ({time.monotonic() - begun:.0f} s)")
