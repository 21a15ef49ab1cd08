# SPDX-License-Identifier: Apache-2.0
"""Bounded keepers of what a child writes: lines as they come, and the head and tail of a longer text.

A child runs foreign code, so no bound is left to its manners: a line without an end, a flood and bytes that
are no UTF-8 all end as finite text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class LineSplitter:
    """Cuts a byte stream into lines and hands each one to ``deliver`` as soon as it is whole.

    A line longer than ``line_bytes`` is delivered cut, once; after ``total_bytes`` nothing more is delivered.
    ``truncated`` tells whether either happened. Bytes that are no UTF-8 become U+FFFD.
    """

    def __init__(self, deliver: Callable[[str], None], *, line_bytes: int, total_bytes: int) -> None:
        self._deliver = deliver
        self._line_bytes = line_bytes
        self._left = total_bytes
        self._pending = bytearray()
        self._skipping = False
        self.truncated = False

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of the stream."""
        if len(data) > self._left:
            data = data[: self._left]
            self.truncated = True
        self._left -= len(data)
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._extend(piece)
            self._end_line()
        self._extend(rest)

    def close(self) -> None:
        """Delivers a last line that has no newline."""
        if self._pending:
            self._end_line()

    def _extend(self, piece: bytes) -> None:
        if self._skipping:
            return
        room = self._line_bytes - len(self._pending)
        self._pending += piece[:room]
        if len(piece) > room:
            self.truncated = self._skipping = True

    def _end_line(self) -> None:
        line = bytes(self._pending).decode("utf-8", "replace").rstrip("\r")
        self._pending.clear()
        self._skipping = False
        self._deliver(line)


class HeadTail:
    """Keeps the first ``head_bytes`` and the last ``tail_bytes`` of a stream and counts what lies
    between.
    """

    def __init__(self, *, head_bytes: int, tail_bytes: int) -> None:
        self._head = bytearray()
        self._head_bytes = head_bytes
        self._tail: deque[bytes] = deque()
        self._tail_bytes = tail_bytes
        self._tail_held = 0
        self._dropped = 0

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of the stream."""
        room = self._head_bytes - len(self._head)
        self._head += data[:room] if room > 0 else b""
        rest = data[room:] if room > 0 else data
        if not rest:
            return
        self._tail.append(rest)
        self._tail_held += len(rest)
        while self._tail and self._tail_held - len(self._tail[0]) >= self._tail_bytes:
            gone = len(self._tail.popleft())
            self._tail_held -= gone
            self._dropped += gone

    def text(self) -> str:
        """What was kept, as text, with a line in the middle that says how many bytes are missing there."""
        tail = b"".join(self._tail)
        spare = max(0, len(tail) - self._tail_bytes)
        dropped = self._dropped + spare
        middle = f"\n[... {dropped} bytes left out ...]\n".encode() if dropped else b""
        return (bytes(self._head) + middle + tail[spare:]).decode("utf-8", "replace")
