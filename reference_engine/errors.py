# SPDX-License-Identifier: Apache-2.0
"""What can go wrong while a model is run; the message of each is one sentence for the person at the terminal."""

from __future__ import annotations

EXIT_INTERRUPTED = 130
"""What a shell gives a program that Ctrl-C ended."""


class EngineError(Exception):
    """A model cannot be run, or not on."""


class UsageError(EngineError):
    """A request that contradicts itself or the model."""


class ContextFull(EngineError):
    """A token would stand behind the last position of the context; nothing is shifted or dropped to make room."""


class NotFinite(EngineError):
    """NaN or Inf in a weight or in an activation; the message names layer and tensor or operation."""
