# SPDX-License-Identifier: Apache-2.0
"""Models that the suite ``engine`` runs: those of the kit, or the one named by the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reference_engine import sampling
from reference_engine.tiny import DRAFTERS, NAMES, PROMPTS, tiny_model

EMBEDDED = tuple(name for name in NAMES if name not in DRAFTERS.values())
N_CTX = 1024


@dataclass(frozen=True)
class Target:
    """One model. ``drafter`` is the file of its draft or MTP model, None where there is none."""

    name: str
    path: Path
    drafter: Path | None = None

    @property
    def embedded(self) -> bool:
        """Whether it is one of the kit's own, which are small and know no other text than code."""
        return self.name in EMBEDDED and self.path == tiny_model(self.name)

    @property
    def prompts(self) -> dict[str, str]:
        """Texts by name: one to go on with, one that repeats itself."""
        return PROMPTS


def embedded_target(name: str) -> Target:
    """One of ``EMBEDDED``."""
    drafter = DRAFTERS.get(name)
    return Target(name, tiny_model(name), None if drafter is None else tiny_model(drafter))


def targets_for(path: Path | None) -> tuple[Target, ...]:
    """The model at ``path``, or those of the kit."""
    if path is not None:
        return (Target(path.stem, path),)
    return tuple(embedded_target(name) for name in EMBEDDED)


def long_text() -> str:
    """A text for statistics: the source of a module of this kit. Nothing is compared with a value kept elsewhere."""
    return Path(sampling.__file__).read_text("utf-8")


def distinct_prompts(count: int, length: int, n_vocab: int, seeds: Sequence[int]) -> list[list[int]]:
    """``count`` prompts of ``length`` random tokens, each from the start on another one."""
    random = np.random.default_rng(list(seeds))
    firsts = random.permutation(n_vocab)[:count]
    return [[int(first), *(int(t) for t in random.integers(0, n_vocab, length - 1))] for first in firsts]
