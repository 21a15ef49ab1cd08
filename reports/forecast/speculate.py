# SPDX-License-Identifier: Apache-2.0
"""What drafts would bring on a board: rates by acceptance and draft length, and the acceptance at which they pay."""

from __future__ import annotations

from dataclasses import dataclass

from reference_engine.speculation.cost import Average, Costs, break_even, tokens_per_second
from reports.contract import JsonValue, finite
from reports.forecast.passes import Model
from reports.forecast.quantity import Quantity, exact

LENGTHS = (2, 4, 8)
ACCEPTANCES = (0.3, 0.5, 0.7, 0.9)
ROUND = "what a round takes beside drafting and verifying"


@dataclass(frozen=True)
class Drafter:
    """A way to draft. ``token``: seconds for each drafted token, unknown where its size is not known."""

    name: str
    token: Quantity
    note: str


def drafters(model: Model, draft_bytes: int | None) -> list[Drafter]:
    """n-gram drafts cost no pass; a draft model or MTP head reads its weights on the CPU for each token."""
    found = [Drafter("n-gram", exact(0.0), "drafts from the text so far; no pass of any model")]
    if draft_bytes is not None:
        read = model.board.cpu_bandwidth("read", model.host.cpus)
        words = f"draft model or MTP head of {draft_bytes / 1e6:.0f} MB, read once for each drafted token"
        found.append(Drafter("draft", exact(float(draft_bytes)) / read, words))
    return found


def speculation(model: Model, draft_bytes: int | None) -> dict[str, JsonValue]:
    """For each drafter and length: break-even acceptance, and tokens per second by acceptance (upper bounds)."""
    decode = model.run_pass(1).seconds
    verify = {n: model.run_pass(n + 1).seconds for n in LENGTHS}
    missing = tuple(dict.fromkeys(name for each in (decode, *verify.values()) for name in each.missing))
    rows: list[JsonValue] = []
    notes: list[JsonValue] = []
    if draft_bytes is None:
        notes.append("a draft model or MTP head: unknown; name its file with --draft")
    for drafter in drafters(model, draft_bytes):
        notes.append(f"{drafter.name}: {drafter.note}")
        for n in LENGTHS:
            rows.append(_row(drafter, n, decode, verify[n]))
    return {
        "rows": rows,
        "notes": notes,
        "missing": list(missing),
        "omitted": list(dict.fromkeys((ROUND, *(name for each in verify.values() for name in each.omitted)))),
    }


def _row(drafter: Drafter, n: int, decode: Quantity, verify: Quantity) -> JsonValue:
    row: dict[str, JsonValue] = {"drafter": drafter.name, "length": n, "break_even": None, "rates": {}, "never": False}
    if decode.value is None or verify.value is None or drafter.token.value is None:
        return {**row, "missing": list(dict.fromkeys((*decode.missing, *verify.missing, *drafter.token.missing)))}
    seconds = verify.value
    costs = Costs(decode.value, lambda _: seconds, drafter.token.value)
    least = break_even(costs, n)
    rates: dict[str, JsonValue] = {str(a): tokens_per_second(costs, Average(a), n) for a in ACCEPTANCES}
    told = {**row, "break_even": least, "never": least is None, "rates": rates, "verify_s": seconds, "missing": []}
    return told if finite(told) == told else {**row, "missing": ["times within the range of numbers"]}
