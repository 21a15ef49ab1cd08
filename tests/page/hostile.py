# SPDX-License-Identifier: Apache-2.0
"""Reports that were made to hurt: sound ones with parts replaced, taken out, doubled or renamed, by a seed."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.page.sample_reports import Report, board_report

MARK = "zq7hostile"
"""Stands in every hostile text, so that a test can find where it came out."""


def _deep(depth: int) -> Any:
    value: Any = MARK
    for at in range(depth):
        value = [value] if at % 2 else {"k": value}
    return value


TEXTS: tuple[str, ...] = (
    f"<script>alert('{MARK}')</script>",
    f"</style><script>{MARK}</script>",
    f"</title><img src=x onerror={MARK}>",
    f'" onmouseover="{MARK}" x="',
    f"'-->]]><svg onload={MARK}>",
    f"javascript:{MARK}",
    f"[{MARK}](javascript:alert(1))",
    f"![{MARK}](https://evil.invalid/x.png)",
    f"@{MARK} https://evil.invalid/{MARK} #12",
    f"|{MARK}|\n| --- |\n# {MARK}\n```\n",
    f"\x1b[2J\x1b]0;{MARK}\x07\x9b31m\r\b",
    f"\u202e{MARK}\u2066\u200b\ufeff\u0000",
    f"{{{{ {MARK} }}}} {{% raw %}} ${{7*7}} #{{7}}",
    f"$\\frac{{{MARK}}}{{0}}$ _{MARK}_ %s %n {{0}}",
    f"&lt;{MARK}&gt; &#60;b&#62; \ud800",
    MARK * 4000,
    "",
)
VALUES: tuple[Any, ...] = (
    *TEXTS,
    *(None, True, False, 0, -1, 1, 3.5, 10**30, -(10**39), 1e308, -1e308, 5e-324, 1e15, 2**63, -0.0),
    *([], {}, [[]], [None], [{}], {"a": None}, [MARK] * 50, {MARK: MARK}, {"min": MARK, "median": -1, "max": 1e300}),
    *(_deep(12), _deep(300)),
    *("passed", "failed", "2026-11-30T12:00:00.000Z"),
)


def mutated(seed: int, base: Report | None = None) -> Report:
    """A report with three to ten of its parts changed; the same for the same seed."""
    dice = random.Random(seed)
    report: Report = json.loads(json.dumps(board_report() if base is None else base))
    for _ in range(dice.randint(3, 10)):
        holder, key = _place(dice, report)
        if holder is None:
            break
        _change(dice, holder, key)
    if dice.random() < 0.2:
        report["measurements"] = [*_list(report.get("measurements")), *_list(report.get("measurements"))]
    return report


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _place(dice: random.Random, report: Report) -> tuple[Any, Any]:
    """A holder and a key somewhere in the report; each level is as likely to be the last as to be gone through."""
    holder: Any = report
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            return None, None
        key = dice.choice(keys)
        inner = holder[key]
        if not isinstance(inner, (dict, list)) or not inner or dice.random() < 0.3:
            return holder, key
        holder = inner


def _change(dice: random.Random, holder: Any, key: Any) -> None:
    kind = dice.random()
    if kind < 0.7:
        holder[key] = dice.choice(VALUES)
    elif kind < 0.8:
        del holder[key]
    elif isinstance(holder, dict):
        holder[dice.choice(TEXTS)] = holder[key]
    else:
        holder.append(holder[key])
