# SPDX-License-Identifier: Apache-2.0
"""What a check gets to work with, and the words in which it ends."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from c_probes.librknnrt import Librknnrt, Matmul, MatmulType, RknnError
from conformance.oracles_compare import CANARY
from conformance.profile import Expectation, Profile

LEVELS = ("quick", "medium", "long")


class Wrong(AssertionError):
    """The runtime gave a wrong answer; the message says which."""


class NotServed(Exception):
    """The runtime does not offer what the check is about, and is not expected to. No failure."""


class CannotOpen(Exception):
    """What is to be judged cannot be opened: no verdict on it. The message says why and what to do."""


@dataclass(kw_only=True)
class BaseBench:
    """What every check gets, whatever is judged: level, seed, and its own random numbers.

    ``unexpected`` collects what worked although the profile says that it does not; ``known`` the refusals it names.
    """

    level: str
    seed: int
    check: str
    unexpected: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng([self.seed, zlib.crc32(self.check.encode())])

    def pick(self, quick: Any, medium: Any, long: Any = None) -> Any:
        """The value for this run's level."""
        return {"quick": quick, "medium": medium, "long": medium if long is None else long}[self.level]

    def remarks(self) -> list[str]:
        """Where what was judged contradicted itself: one of these turns a pass into a failure."""
        return []

    def close(self) -> None:
        """Gives back what was opened; the process ends right after."""


@dataclass(kw_only=True)
class Bench(BaseBench):
    """The opened library and the profile of this SoC and runtime."""

    library: Librknnrt
    profile: Profile | None

    def remarks(self) -> list[str]:
        """Return code, pointer and log are three signals of one call; success after a logged error is none.

        Source: rknn-llm issue 156.
        """
        return list(self.library.remarks)

    def matmul(self, M: int, K: int, N: int, type: int, **options: Any) -> Matmul:
        """A context whose C holds the canary."""
        made = self.library.matmul(M, K, N, type, **options)
        made.C.view(np.uint8)[...] = CANARY
        return made

    def offers(self, type: int) -> bool:
        """Whether the runtime takes a matmul type, by trying. Raises :class:`Wrong` where the profile expects it."""
        expected = self.expected("type", type)
        try:
            self.library.matmul(2, 64, 64, type).close()
        except RknnError as error:
            if expected is not None and expected.expect == "accepted":
                raise Wrong(
                    f"matmul type {type} is refused, but {self.where} takes it ({expected.source}): {error}"
                ) from error
            return False
        if expected is not None and expected.expect == "refused":
            self.note_unexpected(f"matmul type {type} is accepted", expected)
        return True

    def needs(self, *types: int) -> list[int]:
        """Those of the types that the runtime takes; :class:`NotServed` when it takes none."""
        taken = [int(type) for type in types if self.offers(int(type))]
        if not taken:
            raise NotServed(f"{self.where} takes none of the matmul types {', '.join(map(str, types))}")
        return taken

    def takes_k(self, K: int) -> bool:
        """False where int8 products of this K are refused as the profile says; a refusal it does not know is wrong.

        Without a profile nothing is expected, and a refusal is told and no more.
        """
        expected = None if self.profile is None else self.profile.k_refusal(K)
        try:
            self.library.matmul(3, K, 32, MatmulType.INT8_MM_INT8_TO_INT32).close()
        except RknnError:
            if expected is None and self.profile is not None:
                raise
            self.known.append(f"K={K} is refused ({expected.source if expected else 'no profile to compare with'})")
            return False
        if expected is not None:
            self.note_unexpected(f"K={K} is accepted", expected)
        return True

    def expected(self, what: str, value: int) -> Expectation | None:
        """The profile's word on one thing, None where it has none."""
        return None if self.profile is None else self.profile.find(what, value)

    def note_unexpected(self, what: str, expected: Expectation) -> None:
        """Keeps an unexpected pass: the profile's source says something else than this runtime does."""
        text = f"{what}, although it is known as refused ({expected.source})"
        if text not in self.unexpected:
            self.unexpected.append(text)

    @property
    def where(self) -> str:
        """The SoC and runtime in words."""
        return "this runtime" if self.profile is None else f"{self.profile.soc} with runtime {self.profile.runtime}"


@dataclass(frozen=True)
class Check:
    """One check: its name, what it does, and how long it may take at level quick, in seconds."""

    name: str
    function: Callable[[Any], str]
    deadline_s: float = 60.0

    @property
    def purpose(self) -> str:
        """First paragraph of the docstring on one line."""
        return " ".join((self.function.__doc__ or "").strip().split("\n\n")[0].split())


def right(sentence: str | None, what: str) -> None:
    """Raises :class:`Wrong` for a difference, named by what was computed."""
    if sentence is not None:
        raise Wrong(f"{what}: {sentence}")
