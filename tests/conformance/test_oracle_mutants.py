# SPDX-License-Identifier: Apache-2.0
"""The table of mutants is of the oracles as they are, tells a reason for each survivor, and enough were killed."""

from __future__ import annotations

import json
import re

from tools.oracle_mutants import LEAST, REASONS, TABLE, Survivor, changed, digest, render

TEXT = TABLE.read_text("utf-8")
COUNTS = re.search(r"(\d+) mutants, (\d+) killed \(([0-9.]+)%\), (\d+) survived", TEXT)

DIFF = """--- conformance/oracles.py
+++ conformance/oracles.py
@@ -1,4 +1,4 @@
 def wrapped(values: Array, bits: int) -> Array:
-    half = 1 << (bits - 1)
+    half = 1 << (bits + 1)
     return half
"""


def test_the_table_is_of_the_oracles_as_they_are() -> None:
    assert digest() in TEXT, "the oracles have changed: python -m tools.oracle_mutants"


def test_enough_mutants_were_killed_and_each_survivor_has_a_reason() -> None:
    assert COUNTS is not None
    total, killed, _, survived = (float(group) for group in COUNTS.groups())
    assert killed >= LEAST * total
    assert killed + survived == total
    rows = [line for line in TEXT.splitlines() if line.startswith("| `")]
    assert len(rows) == survived
    assert "NO REASON" not in TEXT
    told = {row.split(" | ")[-1].removesuffix(" |") for row in rows}
    assert set(json.loads(REASONS.read_text("utf-8")).values()) == told


def test_a_survivor_is_read_from_its_diff_and_one_without_a_reason_shows() -> None:
    survivor = changed("conformance.oracles.x_wrapped__mutmut_3", DIFF)
    assert survivor == Survivor("wrapped", "half = 1 << (bits - 1)", "half = 1 << (bits + 1)")
    page = render({"killed": 9, "survived": 1}, [survivor], {})
    assert "10 mutants, 9 killed (90.0%), 1 survived" in page
    assert "NO REASON YET" in page
    assert "| no matter |" in render({"killed": 9, "survived": 1}, [survivor], {survivor.key: "no matter"})
