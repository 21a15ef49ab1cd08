# SPDX-License-Identifier: Apache-2.0
"""One verdict about one lever, and how a ratio becomes one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reports.contract import JsonValue
from reports.forecast.quantity import Quantity

PAYS, COSTS, LEVEL, UNMEASURED = "pays", "costs", "no difference", "not measured"
SPEED_ONLY, CLOSED = "pays in speed alone", "closed on this board"
ORDER = (PAYS, SPEED_ONLY, LEVEL, COSTS, CLOSED, UNMEASURED)
LEAST = 0.02
"""A difference below this is none: code layout alone moves a build by more (published by unimatrix099: 10 %)."""


@dataclass(frozen=True)
class Verdict:
    """``gain``: speed of ``scope`` with the lever over speed without it; None where there is no such figure.

    ``decided_by``: the measurements behind it, or, where ``verdict`` is "not measured", those that would decide.
    ``campaign``: what the published campaign found.
    """

    lever: str
    verdict: str
    why: str
    decided_by: tuple[str, ...]
    gain: Quantity | None = None
    campaign: str = ""
    scope: str = ""

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "lever": self.lever,
            "verdict": self.verdict,
            "gain": None if self.gain is None else self.gain.as_json(),
            "scope": self.scope,
            "why": self.why,
            "decided_by": list(self.decided_by),
            "campaign": self.campaign,
        }


def unmeasured(lever: str, *needed: str, campaign: str = "") -> Verdict:
    """Nothing in the report or the files decides; ``needed`` would."""
    return Verdict(lever, UNMEASURED, "nothing that was measured here decides it", needed, None, campaign)


def judged(lever: str, gain: Quantity, why: str, campaign: str = "", *, scope: str = "") -> Verdict:
    """By the ratio ``gain``: a difference counts where its whole interval lies on one side of 1 and it is no trifle."""
    if gain.value is None or gain.low is None or gain.high is None:
        return unmeasured(lever, *gain.missing, campaign=campaign)
    word = LEVEL
    if gain.low > 1 and gain.value >= 1 + LEAST:
        word = PAYS
    elif gain.high < 1 and gain.value <= 1 - LEAST:
        word = COSTS
    return Verdict(lever, word, why, gain.sources, gain, campaign, scope)


def speed_only(verdict: Verdict) -> Verdict:
    """For a lever whose output is known to be worse: what pays does so in speed alone."""
    return replace(verdict, verdict=SPEED_ONLY) if verdict.verdict == PAYS else verdict
