# SPDX-License-Identifier: Apache-2.0
"""The real models of the goldens, where they were fetched, and what the engine makes of a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reference_engine.backends import make_backend
from reference_engine.model import KvOptions, Model
from reference_engine.model_cache import MODELS
from tests.goldens.golden_file import F32, sample
from tests.real_model import need_model

PIECE = 128
"""Tokens whose logits are held at a time: those of a whole text can be larger than the model."""


@contextmanager
def real_model(name: str, golden: dict[str, Any], *, gelu_half_table: bool = False) -> Iterator[Model]:
    """The fetched model with the float back end and a KV cache in f32; the test is skipped where it was not fetched."""
    path = need_model(name)
    assert MODELS[name].sha256 == golden["model_sha256"]
    backend = make_backend("float", threads=2)
    kv = KvOptions("f32", "f32")
    with Model.load(path, backend, n_ctx=512, kv=kv, threads=2, gelu_half_table=gelu_half_table) as model:
        yield model


def sampled(model: Model, golden: dict[str, Any]) -> NDArray[np.float64]:
    """The golden's sample of the logits of its text."""
    logits = model.forward(golden["tokens"], model.new_cache(), rows=golden["rows"]).logits
    return sample(logits, golden | {"rows": range(len(golden["rows"]))})


@dataclass(frozen=True)
class Difference:
    """The first generated token that is another one than the peer's: by how much each preferred its own."""

    at: int
    peer_gap: float
    own_gap: float

    @property
    def is_near_tie(self) -> bool:
        return self.peer_gap < NEAR_TIE and self.own_gap < NEAR_TIE

    def __str__(self) -> str:
        kind = "a near tie" if self.is_near_tie else "no near tie"
        return f"token {self.at} differs: gap {self.peer_gap:.2g} there, {self.own_gap:.2g} here: {kind}"


NEAR_TIE = 1e-3


def first_difference(model: Model, golden: dict[str, Any]) -> Difference | None:
    """Where greedy generation leaves the peer's; None where it does not.

    The peer's tokens are fed in batches and each is held against the best token before it, which says the same as to
    generate them one by one, since the bits of a token's logits do not depend on the batch it is computed in.
    """
    prompt, ids = golden["prompt"], golden["ids"]
    fed, cache, done = [*prompt, *ids[:-1]], model.new_cache(), 0
    gaps: dict[int, float] = dict(golden["gaps_under_0.01"])
    for begin in range(0, len(fed), PIECE):
        part = fed[begin : begin + PIECE]
        rows = [row for row in range(len(part)) if begin + row >= len(prompt) - 1]
        if not rows:
            model.forward(part, cache, rows=())
            continue
        for logits in model.forward(part, cache, rows=rows).logits:
            if (difference := _difference(logits, ids[done], done, gaps)) is not None:
                return difference
            done += 1
    assert done == len(ids)
    return None


def _difference(logits: F32, expected: int, at: int, gaps: dict[int, float]) -> Difference | None:
    best = int(logits.argmax())
    if best == expected:
        return None
    return Difference(at, gaps.get(at, 0.01), float(logits[best] - logits[expected]))


def differences(model: Model, goldens: Sequence[dict[str, Any]]) -> list[Difference]:
    """The first difference of each text that has one, printed."""
    found = [(golden["text"], first_difference(model, golden)) for golden in goldens]
    for text, difference in found:
        if difference is not None:
            print(f"{text!r}: {difference}")
    return [difference for _, difference in found if difference is not None]
