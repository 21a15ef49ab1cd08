# SPDX-License-Identifier: Apache-2.0
"""Two back ends held against each other integer by integer, matmul by matmul: the judgement that noise cannot blur."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from reference_engine.backends import MatmulRecord


@dataclass(frozen=True)
class Digest:
    """Hashes of one call: of its quantised activation with scales, of its sums."""

    name: str
    rows: int
    activation: str
    sums: str


@dataclass
class MatmulLog:
    """An observer that keeps a digest of each call whose products are integers or halves."""

    calls: list[Digest] = field(default_factory=list)

    def __call__(self, record: MatmulRecord) -> None:
        if not record.segments:
            return
        a, c = hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)
        for segment in record.segments:
            a.update(segment.q.tobytes())
            a.update(segment.scale.tobytes())
            c.update(segment.sums.tobytes())
        self.calls.append(Digest(record.name, record.x.shape[0], a.hexdigest(), c.hexdigest()))


@dataclass(frozen=True)
class Agreement:
    """``compared`` matmuls; ``products_differ`` had the same activation and another product, first of them ``first``.

    ``activations_differ`` had another activation already, from a difference before them; ``first_activation`` names the
    first. ``reason`` is why nothing could be compared, else None.
    """

    compared: int
    products_differ: int = 0
    first: str | None = None
    activations_differ: int = 0
    first_activation: str | None = None
    reason: str | None = None

    @property
    def equal(self) -> bool:
        return self.compared > 0 and not self.products_differ and not self.activations_differ


def agreement(reference: MatmulLog, other: MatmulLog) -> Agreement:
    """Hold the calls of both in their order against each other."""
    ours, theirs = reference.calls, other.calls
    if not ours or not theirs:
        return Agreement(0, reason="one of both makes no integer products")
    if [(call.name, call.rows) for call in ours] != [(call.name, call.rows) for call in theirs]:
        return Agreement(0, reason="the two do not send the same matmuls to the NPU")
    pairs = list(zip(ours, theirs, strict=True))
    products = [a.name for a, b in pairs if a.activation == b.activation and a.sums != b.sums]
    activations = [a.name for a, b in pairs if a.activation != b.activation]
    return Agreement(
        len(pairs),
        len(products),
        products[0] if products else None,
        len(activations),
        activations[0] if activations else None,
    )
