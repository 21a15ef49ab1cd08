# SPDX-License-Identifier: Apache-2.0
"""Shape limits are placed exactly, whatever the mock's model says."""

from __future__ import annotations

import pytest

from tests.measure.conftest import RunProbe

ALIGNMENTS = {2: (32, 32), 1: (32, 16), 10: (32, 64)}
"""K and N by type on RK3588: RKNN user guide 2.3.0 table 3-7 and the header's comments."""


@pytest.mark.parametrize("code", sorted(ALIGNMENTS))
def test_alignments_are_found_by_trying(probe: RunProbe, code: int) -> None:
    run = probe("mm_limits", "--quick", "--most", "1024", "--type", str(code))
    found = {row["parameters"]["dimension"]: row["median"] for row in run.rows("shape_alignment")}
    assert (found["K"], found["N"]) == ALIGNMENTS[code]
    assert found["M"] == 1
    assert all(row["checked"] == "exact" for row in run.rows("shape_alignment"))


@pytest.mark.parametrize("cliff", [2048, 3072, 7200])
def test_a_cliff_in_k_is_placed_on_the_element(probe: RunProbe, cliff: int) -> None:
    timing = f"campaign,k_cliff_i8={cliff},k_cliff_factor=14"
    run = probe("mm_limits", "--most", "4096" if cliff < 4000 else "8192", "--type", "2", timing=timing)
    row = run.row("shape_limit", dimension="K", limit="fast")
    assert row["median"] == cliff
    assert row["evidence"]["ends_by"] == "slow"
    assert row["evidence"]["ends_at"] == cliff + 32
    assert run.row("shape_limit", dimension="K", limit="right")["evidence"]["at_least"] is True


def test_a_limit_that_nothing_ends_is_a_lower_bound(probe: RunProbe) -> None:
    run = probe("mm_limits", "--most", "2048", "--type", "2", timing="campaign")
    for row in run.rows("shape_limit"):
        assert row["median"] == 2048
        assert row["evidence"]["at_least"] is True


def test_a_type_that_is_refused_is_one_row(probe: RunProbe) -> None:
    run = probe("mm_limits", "--type", "5")
    (row,) = run.rows()
    assert row["verdict"] == "unsupported"
    assert row["median"] is None


def test_the_table_stands_without_python(probe: RunProbe) -> None:
    run = probe("mm_limits", "--most", "1024", "--type", "2", table=True)
    assert run.code == 0
    lines = [line for line in run.out.splitlines() if line.startswith("i8*i8>i32")]
    assert [line.split()[1] for line in lines] == ["K", "N", "M"]
