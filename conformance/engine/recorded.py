# SPDX-License-Identifier: Apache-2.0
"""Matmuls of a model as they happened: its own inputs, what the engine made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reference_engine.backends.interface import MatmulRecord
from reference_engine.gguf_tensor import GgufTensor
from reference_engine.model import Model


@dataclass(frozen=True)
class Seen:
    """One call and the tensor of the file that it was made with."""

    record: MatmulRecord
    tensor: GgufTensor

    @property
    def where(self) -> str:
        rows, (K, N) = self.record.x.shape[0], self.tensor.dims[:2]
        return f"{self.record.name} [M={rows} K={K} N={N}]"


def record_matmuls(model: Model, passes: Sequence[Sequence[int]]) -> list[Seen]:
    """Every matmul with integer or fp16 products of forward passes, one after the other behind the same cache."""
    seen: list[MatmulRecord] = []

    def keep(record: MatmulRecord) -> None:
        # Inputs and results are scratch arrays that the next call overwrites.
        seen.append(replace(record, x=record.x.copy(), y=record.y.copy()))

    before, model.backend.observer = model.backend.observer, keep
    cache = model.new_cache()
    try:
        for tokens in passes:
            model.forward(tokens, cache)
    finally:
        model.backend.observer = before
    return [Seen(record, model.file.tensors[record.name]) for record in seen if record.segments]
