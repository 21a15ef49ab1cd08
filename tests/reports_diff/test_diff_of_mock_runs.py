# SPDX-License-Identifier: Apache-2.0
"""Real runs of a C probe on the mock, other seeds: ``diff`` says no change; one rate 10 % lower, and it says which.

A run counts when the samples of each of its rows agree: all but the lowest within 1 %. That is stricter than what the
product asks of spread and looser than what it asks of load: a run that waits most of its time can be good on a busy
machine too. Where none is, nothing can be shown, and the tests say so by a skip.
"""

from __future__ import annotations

import itertools
import subprocess

import pytest

from bench.steady_runs import TIMING, TOP, TYPES, Rows, quiet_runs, slower
from reports.diff.rows import compare_rows

RUNS = 5
PATIENCE_S = 25.0
BUSY = "other processes kept this machine busy: samples of hardly a run agree"


@pytest.fixture(scope="module")
def quiet() -> list[Rows]:
    subprocess.run(["make", "-s", "-C", str(TOP), "build"], check=True, timeout=600)
    runs = list(itertools.islice(quiet_runs(TIMING, 1, PATIENCE_S), RUNS))
    if len(runs) < 2:
        pytest.skip(BUSY)
    return runs


def test_runs_with_other_seeds_say_no_change(quiet: list[Rows]) -> None:
    for before, after in itertools.permutations(quiet, 2):
        changes = compare_rows(before, after)
        assert len(changes) == 2
        for change in changes:
            assert change.word in ("same", "unclear")
            assert change.ratio is not None
            assert change.ratio.value == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("which", TYPES)
def test_one_rate_10_percent_lower_is_found_and_no_other(quiet: list[Rows], which: str) -> None:
    after = next(quiet_runs(slower(which), 1000, PATIENCE_S), None)
    if after is None:
        pytest.skip(BUSY)
    changes = compare_rows(quiet[0], after)
    words = {change.parameters["type_name"]: change.word for change in changes}
    assert words.pop(TYPES[which]) == "slower"
    assert set(words.values()) <= {"same", "unclear"}
    (found,) = [change.ratio for change in changes if change.changed]
    assert found is not None
    assert 0.87 < found.value < 0.93
