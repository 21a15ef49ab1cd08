# SPDX-License-Identifier: Apache-2.0
"""Ten thousand damaged files: each is parsed or refused, in bounded time and memory, and never anything else."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from reference_engine.gguf_file import open_gguf
from reference_engine.gguf_hparams import check_hparams
from tests.gguf.mutations import MUTATIONS, mutate, seed_files

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("seed", "cases"), [(1, 5000), (2, 5000)])
def test_damaged_files_are_parsed_or_refused_within_bounds(seed: int, cases: int, tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.gguf.mutation_child", str(tmp_path), str(seed), str(cases)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-4000:]
    answer = json.loads(child.stdout)
    outcomes = answer["outcomes"]
    assert sum(outcomes.values()) == cases
    assert answer["slowest_s"] < 1.0
    # The damage must reach deep: all outcomes occur, and most kinds of refusal.
    assert {"sound", "parsed, keys refused", "parsed, shapes refused"} <= set(outcomes)
    assert len([code for code in outcomes if code.startswith("NPU-F")]) >= 12
    assert sum(count for code, count in outcomes.items() if code.startswith("NPU-F")) > cases / 10


def test_the_undamaged_files_are_sound(tmp_path: Path) -> None:
    for index, raw in enumerate(seed_files()):
        path = tmp_path / f"{index}.gguf"
        path.write_bytes(raw)
        with open_gguf(path) as model:
            assert not model.warnings
            if index >= 2:
                assert check_hparams(model).problems == ()


def test_damage_is_the_same_for_the_same_seed() -> None:
    files = seed_files()
    first, second = ([mutate(random.Random(7), files) for _ in range(20)] for _ in range(2))
    assert first == second


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_each_kind_of_damage_does_damage(mutation: object) -> None:
    original = seed_files()[0]
    changed = 0
    for seed in range(20):
        raw = bytearray(original)
        mutation(random.Random(seed), raw)  # type: ignore[operator]
        changed += bytes(raw) != original
    assert changed >= 10
