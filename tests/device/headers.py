# SPDX-License-Identifier: Apache-2.0
"""Headers of models as large as real ones, without their data, and pipelines as the plan needs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.gguf import crafted_gguf as craft

Q8_0, Q6_K, Q4_0, BF16 = 8, 14, 2, 30
_BLOCKS = {0: (1, 4), 1: (1, 2), 2: (32, 18), 8: (32, 34), 14: (256, 210), 30: (1, 2)}


@dataclass(frozen=True)
class Wanted:
    """A pipeline by its fields alone."""

    name: str = "test"
    activation: str = "int8"
    weight_scale: str = "channel"
    hadamard: str = "none"
    k_limit: int = 8192
    cores: int = 3
    m_bucket: str = "pow2"
    route: str = "all"


def header(architecture: str, tensors: Mapping[str, tuple[tuple[int, ...], int]], *more: bytes) -> bytes:
    """A file that ends after its tensor table. ``tensors``: name to (dims, type)."""
    rows, at = [], 0
    for name, (dims, kind) in tensors.items():
        elements = 1
        for dim in dims:
            elements *= dim
        per, size = _BLOCKS[kind]
        rows.append(craft.tensor(name, dims, kind, at))
        at += -(-(elements // per * size) // 32) * 32
    keys = [craft.key_text("general.architecture", architecture), *more]
    return craft.gguf(keys, rows)


def gemma4_12b() -> Iterator[tuple[str, tuple[tuple[int, ...], int]]]:
    """Weights of gemma-4-12b as public descriptions have them: 48 layers, every sixth global and without v."""
    yield "token_embd.weight", ((3840, 262144), Q6_K)
    yield "output_norm.weight", ((3840,), 0)
    for layer in range(48):
        b = f"blk.{layer}."
        last = layer % 6 == 5
        head, kv = (512, 1) if last else (256, 8)
        yield b + "attn_norm.weight", ((3840,), 0)
        yield b + "attn_q.weight", ((3840, 16 * head), Q8_0)
        yield b + "attn_k.weight", ((3840, kv * head), Q8_0)
        if not last:
            yield b + "attn_v.weight", ((3840, kv * head), Q8_0)
        yield b + "attn_output.weight", ((16 * head, 3840), Q8_0)
        yield b + "ffn_gate.weight", ((3840, 15360), Q8_0)
        yield b + "ffn_up.weight", ((3840, 15360), Q8_0)
        yield b + "ffn_down.weight", ((15360, 3840), Q8_0)
