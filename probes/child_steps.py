# SPDX-License-Identifier: Apache-2.0
"""Breadcrumbs from inside a call in a child: the last one tells where a crash or a hang happened."""

from __future__ import annotations

import json
import os

_channel: list[int] = []


def bind_channel(channel_fd: int) -> None:
    """Names the descriptor that leads to the parent. Called once, by the child's own start-up code."""
    _channel[:] = [channel_fd]


def step(text: str) -> None:
    """Tells the parent what is about to happen. Outside a child this does nothing."""
    for channel_fd in _channel:
        os.write(channel_fd, json.dumps({"step": text}).encode() + b"\n")
