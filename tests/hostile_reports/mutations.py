# SPDX-License-Identifier: Apache-2.0
"""Seeded damage to a report: wrong types, hostile texts, numbers out of range, deep nesting, damaged bytes.

``mutated(base, seed)`` gives the bytes of one hostile report; the same seed gives the same bytes.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

Path = tuple[Any, ...]

TEXTS = (
    "<script>alert(1)</script>",
    "'\"><img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "\x1b[31m\x1b]0;title\x07\x9b2J",
    "=cmd|'/c calc'!A0",
    "@SUM(1+1)*cmd",
    "-2+3",
    "\t=1+1",
    "| a | b |\n|---|---|\n# heading",
    "`code` **bold** [link](http://example.invalid) ![x](http://example.invalid/x.png)",
    "line\nok 99 forged # SKIP\nnot ok 100 forged",
    'x"} 1\nforged_metric{a="b',
    "]]></system-out><failure/>",
    "<!ENTITY x SYSTEM 'file:///etc/passwd'>",
    "\u202ereversed\u202c\u2066\ufeff",
    "\x00\x01\x02\x7f",
    "{0.__class__} %s %n {{7*7}} {% raw %}",
    "A" * 5000,
    "\U0001f600" * 40,
    "../../../../etc/passwd",
    "",
    " ",
    "&lt;b&gt;&#x3c;",
)
NUMBERS = (0, -1, 1, -0.0, 1e308, -1e308, 5e-324, 10**30, -(10**30), 2**63, 0.1, 1e-9, 3.5)
OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    {"": ""},
    {"value": {"value": None}},
    [1, "a", None, {}],
)
RAW = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "-1e999",
    "9" * 5000,
    '"\\ud800"',
    '"\\ud83d\\u0000"',
    "[" * 60 + "]" * 60,
)
"""JSON texts that json.dumps would not write."""


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    """Every place in ``value``, the whole first."""
    yield at
    if isinstance(value, dict):
        for key in value:
            yield from paths(value[key], (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from paths(item, (*at, index))


def replaced(base: Any, at: Path, value: Any) -> Any:
    """A copy of ``base`` with ``value`` at ``at``."""
    if not at:
        return value
    made = copy.deepcopy(base)
    holder = made
    for step in at[:-1]:
        holder = holder[step]
    holder[at[-1]] = value
    return made


def mutated(base: str, seed: int) -> bytes:
    """One hostile report, from a good one as JSON."""
    choose = random.Random(seed)
    made = json.loads(base)
    raw: list[str] = []
    for _ in range(choose.choice((1, 1, 1, 2, 5))):
        made = _damage(made, choose, raw)
    text = json.dumps(made)
    for index, words in enumerate(raw):
        text = text.replace(json.dumps(f"\x00raw{index}\x00"), words)
    data = text.encode("utf-8", "surrogatepass")
    return _bytes_damaged(data, choose) if choose.random() < 0.08 else data


def _damage(made: Any, choose: random.Random, raw: list[str]) -> Any:
    at = _somewhere(made, choose)
    if not at:
        return made
    holder = made
    for step in at[:-1]:
        holder = holder[step]
    kind = choose.random()
    old = holder[at[-1]]
    if kind < 0.45:  # a value of the same kind, so that it gets past the check of shapes
        holder[at[-1]] = _like(old, choose)
    elif kind < 0.6:
        holder[at[-1]] = choose.choice((*TEXTS, *NUMBERS, *OTHERS))
    elif kind < 0.7:
        raw.append(choose.choice(RAW))
        holder[at[-1]] = f"\x00raw{len(raw) - 1}\x00"
    elif kind < 0.8 and isinstance(holder, dict):
        holder[choose.choice(TEXTS)] = old
    elif kind < 0.88:
        del holder[at[-1]]
    elif kind < 0.94 and isinstance(holder, list):
        holder.extend(copy.deepcopy([old] * choose.choice((1, 3, 200))))
    else:
        holder[at[-1]] = _nested(old, choose.choice((3, 30, 47, 100)))
    return made


def _somewhere(value: Any, choose: random.Random) -> Path:
    """A place below ``value``, most often a leaf, as likely in one of the long sections as not."""
    at: Path = ()
    while isinstance(value, (dict, list)) and value:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        step = choose.choice(keys)
        if not at and choose.random() < 0.6:
            step = next(
                (key for key in ("measurements", "facts", "findings") if key in keys and choose.random() < 0.5), step
            )
        at, value = (*at, step), value[step]
        if choose.random() < 0.12:
            break
    return at


def _like(old: Any, choose: random.Random) -> Any:
    if isinstance(old, bool):
        return not old
    if isinstance(old, str):
        return choose.choice(TEXTS)
    if isinstance(old, (int, float)):
        return choose.choice(NUMBERS)
    if isinstance(old, list):
        return [choose.choice((*TEXTS, *NUMBERS, *OTHERS)) for _ in range(choose.choice((0, 1, 4)))]
    if isinstance(old, dict):
        return {choose.choice(TEXTS): choose.choice((*TEXTS, *NUMBERS, *OTHERS)) for _ in range(3)}
    return choose.choice((*TEXTS, *NUMBERS, *OTHERS))


def _nested(value: Any, depth: int) -> Any:
    for level in range(depth):
        value = [value] if level % 2 else {"deeper": value}
    return value


def _bytes_damaged(data: bytes, choose: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(choose.choice((1, 3, 10))):
        at = choose.randrange(len(made))
        kind = choose.random()
        if kind < 0.4:
            made[at] = choose.randrange(256)
        elif kind < 0.6:
            del made[at:]
            made += b" "
        elif kind < 0.8:
            made[at:at] = choose.choice((b"\xff", b"\xed\xa0\x80", b"\x00", b'"', b"{", b"]", b"\xef\xbb\xbf"))
        else:
            end = min(len(made), at + choose.randrange(1, 200))
            made[at:at] = made[at:end]
    return bytes(made)
