# SPDX-License-Identifier: Apache-2.0
"""SentencePiece-like tokenizing from pieces and scores alone: merge the pair with the best score until none is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from reference_engine.tokenizer.errors import TokenizerError
from reference_engine.tokenizer.pieces import ESCAPED_SPACE, byte_token


class SpmEncoder:
    """Text without special tokens to ids.

    Two neighbours merge where their concatenation is a token; the highest score goes first, of equal scores the
    leftmost. A character that is no token becomes its byte tokens, else the unknown token (llama.cpp b11434,
    llm_tokenizer_spm_session; it stops where there are no byte tokens).
    """

    def __init__(self, ids: Mapping[str, int], scores: Sequence[float], unknown: int | None) -> None:
        self._ids = ids
        self._scores = scores
        self._unknown = unknown

    def encode(self, text: str) -> list[int]:
        """Ids of ``text``, whose spaces become U+2581. TokenizerError for a character that no token can express."""
        symbols = list(text.replace(" ", ESCAPED_SPACE))
        merged = self._merge(symbols)
        out: list[int] = []
        for symbol in merged:
            token = self._ids.get(symbol)
            if token is None:
                out.extend(self._fall_back(symbol))
            else:
                out.append(token)
        return out

    def _merge(self, symbols: list[str]) -> list[str]:
        """Neighbours merged for as long as any concatenation is a token. ``symbols`` is consumed."""
        ids, scores = self._ids, self._scores
        count = len(symbols)
        after = [*range(1, count), -1]
        before = list(range(-1, count - 1))
        # (-score, left, right, length): an entry is stale once either side has grown, which its length tells
        heap: list[tuple[float, int, int, int]] = []
        for left in range(count - 1):
            pair = symbols[left] + symbols[left + 1]
            token = ids.get(pair)
            if token is not None:
                heap.append((-scores[token], left, left + 1, len(pair)))
        heapify(heap)
        while heap:
            _, left, right, length = heappop(heap)
            if not symbols[left] or not symbols[right] or len(symbols[left]) + len(symbols[right]) != length:
                continue
            symbols[left] += symbols[right]
            symbols[right] = ""
            following = after[left] = after[right]
            if following >= 0:
                before[following] = left
            preceding = before[left]
            for one, other in ((preceding, left), (left, following)):
                if one >= 0 and other >= 0:
                    pair = symbols[one] + symbols[other]
                    token = ids.get(pair)
                    if token is not None:
                        heappush(heap, (-scores[token], one, other, len(pair)))
        return [symbol for symbol in symbols if symbol]

    def _fall_back(self, symbol: str) -> list[int]:
        found = [self._ids.get(byte_token(byte)) for byte in symbol.encode()]
        if None not in found:
            return [token for token in found if token is not None]
        if self._unknown is not None:
            return [self._unknown]
        raise TokenizerError(
            f"the vocabulary has no token for the character U+{ord(symbol[0]):04X}, no byte tokens and no unknown "
            "token; leave the character out"
        )
