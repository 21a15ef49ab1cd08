# SPDX-License-Identifier: Apache-2.0
"""Waits for a pipe, whatever the number of its descriptor: select() fails from 1024 on."""

from __future__ import annotations

import selectors
from typing import IO


def readable(source: int | IO[str], timeout_s: float) -> bool:
    """Whether there is something to read, or the end, within the time."""
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        return bool(selector.select(timeout_s))
