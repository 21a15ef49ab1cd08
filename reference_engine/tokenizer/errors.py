# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a text or a chat, as against the model file (that is a GgufError)."""

from __future__ import annotations


class TokenizerError(ValueError):
    """A text, a token id or a chat that cannot be handled; one sentence says what and what to do."""
