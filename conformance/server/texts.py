# SPDX-License-Identifier: Apache-2.0
"""Prompts that nobody has sent before: made from a seed, each beginning with words of its own.

A prompt sent twice measures what a service kept of the first time: with n-gram tables that live across requests every
draft is then accepted (a campaign on RK3588 saw acceptance 1.0 and 3 to 4.6 times the speed, for nothing).
"""

from __future__ import annotations

import json

import numpy as np

_WORDS = (
    "harbour",
    "amber",
    "violin",
    "granite",
    "meadow",
    "copper",
    "lantern",
    "river",
    "saddle",
    "walnut",
    "ferry",
    "marble",
    "orchard",
    "candle",
    "tunnel",
    "falcon",
    "silver",
    "bridge",
    "cotton",
    "garden",
    "hammer",
    "island",
    "jacket",
    "kettle",
    "ladder",
    "mirror",
    "needle",
    "oyster",
    "pepper",
    "quarry",
    "ribbon",
    "stable",
    "temple",
    "umbrella",
    "valley",
    "window",
    "yellow",
    "anchor",
    "basket",
    "cellar",
)

KINDS = ("copy", "code", "prose")


def fresh_prompt(kind: str, random: np.random.Generator) -> str:
    """A prompt of about 100 to 250 tokens. ``copy`` and ``code`` invite n-gram drafts, ``prose`` does not."""
    names = [f"{_WORDS[i]}_{random.integers(100, 1000)}" for i in random.choice(len(_WORDS), 10, replace=False)]
    return {"copy": _copy, "code": _code, "prose": _prose}[kind](names, random)


def _copy(names: list[str], random: np.random.Generator) -> str:
    table = {name: {"port": int(random.integers(1024, 9999)), "enabled": True} for name in names[:5]}
    text = json.dumps(table, indent=1)
    return f"Configuration of {names[9]}:\n{text}\n\nThe same configuration once more, unchanged:\n{text[:40]}"


def _code(names: list[str], random: np.random.Generator) -> str:
    body = "".join(f"    total += read_{name}(device, {random.integers(2, 99)})\n" for name in names[:6])
    done = f"def sum_{names[7]}(device):\n    total = 0\n{body}    return total\n"
    return f"# {names[8]}\n{done}\n\ndef sum_{names[6]}(device):\n"


def _prose(names: list[str], random: np.random.Generator) -> str:
    nouns = [name.split("_", maxsplit=1)[0] for name in names]
    return (
        f"Entry {random.integers(100, 10**6)}. The {nouns[0]} stood beside the {nouns[1]} when the {nouns[2]} maker "
        f"came home. Nobody in the village remembered who had carried the {nouns[3]} up to the {nouns[4]}, and the "
        f"children asked about it every evening. She put down her {nouns[5]} and began to tell them"
    )
