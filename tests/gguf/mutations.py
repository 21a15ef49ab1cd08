# SPDX-License-Identifier: Apache-2.0
"""Seeded damage to valid files: bits, fields, cuts, doubled and moved pieces. Standard library random alone."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from tests.gguf import crafted_gguf as craft
from tests.gguf import tiny_models

INTERESTING = (
    *(0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 31, 32, 33, 63, 64, 255, 256, 65535, 65536),
    *(2**20, 2**24 + 1, 2**30, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 1),
)

Mutation = Callable[[random.Random, bytearray], None]


def flip_bit(rng: random.Random, raw: bytearray) -> None:
    at = rng.randrange(len(raw))
    raw[at] ^= 1 << rng.randrange(8)


def set_byte(rng: random.Random, raw: bytearray) -> None:
    raw[rng.randrange(len(raw))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def set_u64(rng: random.Random, raw: bytearray) -> None:
    at = rng.randrange(max(1, len(raw) - 8))
    raw[at : at + 8] = struct.pack("<Q", rng.choice(INTERESTING))


def set_u32(rng: random.Random, raw: bytearray) -> None:
    at = rng.randrange(max(1, len(raw) - 4))
    raw[at : at + 4] = struct.pack("<I", rng.choice(INTERESTING) & 0xFFFFFFFF)


def near_field(rng: random.Random, raw: bytearray) -> None:
    """Change a length a little: find a run of zeros, as small integers have, and step the byte before it."""
    at = raw.find(b"\0\0\0", rng.randrange(len(raw)))
    if at > 0:
        raw[at - 1] = (raw[at - 1] + rng.choice((-1, 1, -8, 8))) & 0xFF


def cut(rng: random.Random, raw: bytearray) -> None:
    del raw[rng.randrange(len(raw)) :]


def remove_piece(rng: random.Random, raw: bytearray) -> None:
    at = rng.randrange(len(raw))
    del raw[at : at + rng.randrange(1, 40)]


def double_piece(rng: random.Random, raw: bytearray) -> None:
    at, length = rng.randrange(len(raw)), rng.randrange(1, 80)
    raw[at:at] = raw[at : at + length]


def overwrite_piece(rng: random.Random, raw: bytearray) -> None:
    source, target, length = rng.randrange(len(raw)), rng.randrange(len(raw)), rng.randrange(1, 40)
    raw[target : target + length] = raw[source : source + length]


MUTATIONS: tuple[Mutation, ...] = (
    flip_bit,
    set_byte,
    set_u64,
    set_u32,
    near_field,
    cut,
    remove_piece,
    double_piece,
    overwrite_piece,
)


def seed_files() -> list[bytes]:
    """Valid files that between them hold every value type, nested arrays, splits' keys and quantised tensors."""
    values = [
        *(craft.key(f"scalar.{kind}", kind, craft.scalar(kind, 1)) for kind in craft.FORMATS),
        *(craft.key_array(f"array.{kind}", kind, [1, 0, 1]) for kind in craft.FORMATS),
        craft.key_array("array.strings", craft.STRING, ["", "a", "bcd"] * 50),
        craft.key(
            "array.arrays",
            craft.ARRAY,
            craft.array(
                craft.ARRAY,
                craft.array(craft.STRING, craft.string("x"), 1) + craft.array(craft.U16, b"\1\0\2\0", 2),
                2,
            ),
        ),
        craft.key_u32("general.alignment", 64),
    ]
    rows = [craft.tensor("q", [64, 2], craft.GGML_Q8_0), craft.tensor("f", [3, 5, 7], craft.GGML_F16, 192)]
    return [
        craft.gguf(values, rows, bytes(192 + 210), alignment=64),
        craft.gguf([craft.key("split.count", craft.U16, b"\1\0"), craft.key("split.no", craft.U16, b"\0\0")]),
        *(tiny_models.model(architecture, craft.GGML_Q8_0) for architecture in tiny_models.HEAD),
    ]


def mutate(rng: random.Random, files: list[bytes]) -> bytes:
    """One damaged file. Most damage goes to the header, which is what is parsed."""
    raw = bytearray(rng.choice(files))
    data = bytearray()
    if rng.random() < 0.8:
        header_end = min(len(raw), rng.choice((64, 512, 2048, 8192)))
        raw, data = raw[:header_end], raw[header_end:]
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if raw:
            rng.choice(MUTATIONS)(rng, raw)
    return bytes(raw + data)
