# SPDX-License-Identifier: Apache-2.0
"""Did the NPU work? From speeds alone: prefill says it, decode cannot.

Prefill multiplies matrices by matrices and is bound by arithmetic; there the NPU of an RK3588 was about three times its
CPU (a campaign with ornith-1.0-9b Q8_0: pp512 38 t/s on three cores, 18 on one). Decode reads every weight once for
each token and is bound by memory, which NPU and CPU share: the NPU was ahead by 7 % there, less than a governor or a
pinned thread changes. After an upgrade of 448 commits pp512 went from 33.07 to 31.11 t/s with the NPU at work on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

FASTER = 1.5
"""A prefill that is this many times the CPU's, beyond its spread, is not the CPU's."""

SAME = 1.15
"""Prefill within this factor of the CPU's, spread included, is the CPU's."""

FALLEN = 0.7
"""Prefill below this share of what the NPU gave, beyond its spread, while decode holds: the NPU is gone."""

DECODE_HOLDS = 0.8
"""Decode above this share has lost no more than a governor or another version costs."""


class Ruling(Enum):
    """What the speeds show."""

    USED = "NPU used"
    NOT_USED = "NPU not used"
    CANNOT_TELL = "cannot be told"


@dataclass(frozen=True)
class Speeds:
    """Samples of one test in tokens per second, without and with what is tried (or before and after)."""

    label: str
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Of the medians, after by before."""
        return median(self.after) / median(self.before)

    @property
    def low(self) -> float:
        """The slowest after by the fastest before."""
        return min(self.after) / max(self.before)

    @property
    def high(self) -> float:
        """The fastest after by the slowest before."""
        return max(self.after) / min(self.before)

    def sentence(self) -> str:
        """``prefill pp512 31.1 against 33.1 t/s, 0.94 times (0.93 to 0.95)``."""
        spread = f" ({self.low:.2f} to {self.high:.2f})" if len(self.before) + len(self.after) > 2 else ""
        rates = f"{median(self.after):.4g} against {median(self.before):.4g} t/s"
        return f"{self.label} {rates}, {self.ratio:.2f} times{spread}"


@dataclass(frozen=True)
class Judgement:
    """The ruling and its reason, one sentence."""

    ruling: Ruling
    why: str


def against_cpu(prefill: Sequence[Speeds], decode: Sequence[Speeds]) -> Judgement:
    """``before`` of each is known to be the CPU alone. The longest prefill decides: small ones hide the NPU's gain."""
    if not prefill:
        return _no_prefill(decode)
    first = prefill[0]
    said = first.sentence() + _beside(decode)
    if first.low >= FASTER:
        return Judgement(Ruling.USED, f"{said}: no CPU setting makes prefill so much faster")
    if first.high <= SAME and first.low >= 1 / SAME:
        return Judgement(Ruling.NOT_USED, f"{said}: prefill is the CPU's")
    if first.high < 1:
        return Judgement(
            Ruling.CANNOT_TELL,
            f"{said}: prefill is slower than the CPU's, which a bad route over the NPU and a loaded machine both give",
        )
    return Judgement(
        Ruling.CANNOT_TELL,
        f"{said}: more than {SAME:g} and less than {FASTER:g} times can be clocks, threads or another version; "
        "measure again with more repetitions (-r 10) and the same governor",
    )


def against_npu(prefill: Sequence[Speeds], decode: Sequence[Speeds]) -> Judgement:
    """``before`` names an NPU too: an upgrade. Whether it worked before is not known, only what became of it."""
    if not prefill:
        return _no_prefill(decode)
    first = prefill[0]
    said = first.sentence() + _beside(decode)
    holds = not decode or decode[0].ratio >= DECODE_HOLDS
    if first.high <= FALLEN and decode and holds:
        return Judgement(
            Ruling.NOT_USED, f"{said}: prefill fell and decode held, which is what the loss of the NPU looks like"
        )
    if first.high <= FALLEN:
        return Judgement(
            Ruling.CANNOT_TELL,
            f"{said}: prefill fell" + (", and decode with it: a clock or a load does that too" if decode else ""),
        )
    if first.low >= FASTER:
        return Judgement(Ruling.USED, f"{said}: prefill rose by more than any CPU setting gives")
    return Judgement(
        Ruling.CANNOT_TELL,
        f"{said}: nothing was lost, so the NPU works now if it worked before; whether it did, a file measured on the "
        "CPU alone says (llama-bench -dev none, given as --cpu)",
    )


def _no_prefill(decode: Sequence[Speeds]) -> Judgement:
    beside = f"{decode[0].sentence()}: " if decode else ""
    return Judgement(
        Ruling.CANNOT_TELL,
        f"{beside}no prefill test stands in both; decode alone cannot show the NPU, it is bound by memory that NPU and "
        "CPU share; measure with llama-bench -p 512 -n 64",
    )


def _beside(decode: Sequence[Speeds]) -> str:
    return f"; {decode[0].sentence()}" if decode else ""
