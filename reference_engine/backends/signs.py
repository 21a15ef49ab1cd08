# SPDX-License-Identifier: Apache-2.0
"""The +-1 vectors of the Hadamard pipelines: an input of the emulation, never derived from a library's random numbers.

The forks seed std::mt19937 by a pointer (a new vector in every run) or by std::hash of the tensor's name (another one
with every C++ library), so no vector of theirs can be recomputed; a dump of them can be given as a file.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from reference_engine.errors import EngineError

Signs = NDArray[np.int8]


class SignsError(EngineError):
    """There is no usable sign vector for a tensor; the message names file and tensor."""


class SignProvider(Protocol):
    def __call__(self, name: str, k_op: int) -> Signs:
        """int8 [k_op], each +1 or -1. SignsError where there is none for that tensor."""


@dataclass(frozen=True)
class HashedSigns:
    """Bit i (lowest bit of a byte first) of sha256(name, zero byte, block number as 4 bytes little-endian), one block
    per 256 elements; a set bit is -1. The same on every machine."""

    def __call__(self, name: str, k_op: int) -> Signs:
        blocks = -(-k_op // 256)
        key = name.encode() + b"\0"
        digest = b"".join(hashlib.sha256(key + i.to_bytes(4, "little")).digest() for i in range(blocks))
        bits = np.unpackbits(np.frombuffer(digest, np.uint8), bitorder="little")[:k_op]
        return (1 - 2 * bits.astype(np.int8)).astype(np.int8)


@dataclass(frozen=True)
class SignsFile:
    """Vectors from an ``.npz`` file: one array of +-1 per tensor name."""

    path: Path

    def __call__(self, name: str, k_op: int) -> Signs:
        try:
            with np.load(self.path, allow_pickle=False) as file:
                found = np.asarray(file[name])
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise SignsError(f"{self.path} gives no sign vector for {name}: {error}") from error
        if found.shape != (k_op,) or not np.array_equal(np.abs(found.astype(np.int64)), np.ones(k_op, np.int64)):
            raise SignsError(f"{self.path}: the sign vector of {name} is not {k_op} values of +1 or -1")
        return found.astype(np.int8)
