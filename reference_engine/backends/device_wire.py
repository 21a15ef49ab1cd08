# SPDX-License-Identifier: Apache-2.0
"""What the device back end and its child say to each other: small JSON records, and one shared block for the numbers.

Requests are ``{"op": "load" | "run" | "end", ...}``, answers ``{"ok": ...}`` or ``{"error": ...}``. The block begins
with a page that holds the child's last step as text; it is what is known of a child that died.
"""

from __future__ import annotations

import json
import mmap
import os
import socket
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP_BYTES = 4096
"""Size of the first page of the block, which holds the child's last step; the numbers begin behind it."""

ALIGN = 64
_RECORD_BYTES = 1 << 18

MATMUL_TYPES = {"int8": 2, "int4": 10, "fp16": 1}
"""``rknn_matmul_type`` by activation: INT8 to INT32, INT4 to INT16, FLOAT16 to FLOAT32."""

A_DTYPES = {"int8": "int8", "int4": "int8", "fp16": "float16"}
"""Elements as they cross the block; int4 values come one in a byte."""

C_DTYPES = {"int8": "int32", "int4": "int16", "fp16": "float32"}


def send(channel: socket.socket, record: dict[str, Any]) -> None:
    channel.send(json.dumps(record).encode())


def receive(channel: socket.socket) -> dict[str, Any] | None:
    """The next record; None where the other side is gone."""
    data = channel.recv(_RECORD_BYTES)
    if not data:
        return None
    found: dict[str, Any] = json.loads(data)
    return found


class Block:
    """Memory that both sides see, of a size that the parent makes larger when it needs more."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._mapped = mmap.mmap(fd, os.fstat(fd).st_size)

    @classmethod
    def create(cls) -> Block:
        """A new block of one page."""
        fd = os.memfd_create("rknpu-kit-device")
        os.ftruncate(fd, STEP_BYTES)
        return cls(fd)

    def close(self) -> None:
        """Closes the file; views keep their memory. Doing so twice is no error."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)
            self._mapped = mmap.mmap(-1, STEP_BYTES)  # a mapping of the file holds a descriptor of its own

    @property
    def size(self) -> int:
        return len(self._mapped)

    def at_least(self, size: int) -> None:
        """Grow the file (the parent's side). Views of the old mapping stay what they were."""
        if size > self.size:
            os.ftruncate(self.fd, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
            self.follow()

    def follow(self) -> None:
        """Map the file anew where it has grown."""
        if os.fstat(self.fd).st_size != self.size:
            self._mapped = mmap.mmap(self.fd, os.fstat(self.fd).st_size)

    def view(self, at: int, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
        """An array in the block, not copied."""
        count = int(np.prod(shape))
        return np.frombuffer(self._mapped, dtype, count, at).reshape(shape)

    def note(self, step: str) -> None:
        """The child writes what it is about to do."""
        text = step.encode("utf-8", "replace")[: STEP_BYTES - 1]
        self._mapped[: len(text) + 1] = text + b"\0"

    def step(self) -> str:
        """The last :meth:`note`."""
        return bytes(self._mapped[:STEP_BYTES]).split(b"\0", 1)[0].decode("utf-8", "replace")


def aligned(at: int) -> int:
    return -(-at // ALIGN) * ALIGN
