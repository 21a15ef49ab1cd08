# SPDX-License-Identifier: Apache-2.0
"""The probes against the mock runtime: every type and layout, its faults, and the rates of its timing model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.c_probes.probe_runs import Probes

QUICK = ("--json", "--seconds", "0.01")


def test_every_accepted_type_of_the_mock_is_right_in_every_layout(probes: Probes, mock_library: Path) -> None:
    arguments = ("--type", "1,2,3,4,9,10", "--layout", "both", "--ac-layout", "both", "--shape", "33x128x192")
    run = probes.run("mm_peak", *QUICK, *arguments, library=mock_library)
    verdicts = {
        (row["parameters"]["type"], row["parameters"]["B_layout"], row["parameters"]["AC_layout"]): row["verdict"]
        for row in run.rows
    }
    assert len(verdicts) == 24
    # int4 with B in norm layout is refused at set_io_mem by runtime 2.3.2 on RK3588 (community report).
    assert {key for key, verdict in verdicts.items() if verdict != "passed"} <= {
        (10, "norm", "norm"),
        (10, "norm", "native"),
    }


def test_our_packing_of_native_B_equals_the_mocks_converter(probes: Probes, mock_library: Path) -> None:
    run = probes.run(
        "mm_peak", *QUICK, "--type", "1,2,10", "--shape", "4x512x256", "--shape", "1x10240x64", library=mock_library
    )
    for row in run.rows:
        assert row["verdict"] == "passed", row
        assert "equal to" in row["evidence"]["B_packing"]
        assert "disagreement" not in row["evidence"]


def test_the_mock_says_in_its_version_that_it_is_one(probes: Probes, mock_library: Path) -> None:
    run = probes.run("mm_dtypes", "--json", "--types", "2", library=mock_library)
    assert "mock" in run.of("header")[0]["library_version"]


def test_quick_runs_of_all_three_probes_find_nothing_wrong(probes: Probes, mock_library: Path) -> None:
    for program, more in (("mm_peak", ["--quick"]), ("mm_concurrent", ["--quick"]), ("mm_dtypes", [])):
        extra = ["--seconds", "0.02"] if more else []
        run = probes.run(program, "--json", *more, *extra, library=mock_library)
        bad = [row for row in run.rows if row["verdict"] not in ("passed", "unsupported")]
        assert run.code == 0 and not bad, (program, bad, run.err)


@pytest.mark.parametrize("version", ["1.5.2", "1.6.0", "2.0.0-beta0", "2.1.0"])
def test_older_runtimes_cost_capabilities_not_the_run(probes: Probes, mock_library: Path, version: str) -> None:
    library = mock_library.parent / version / "librknnrt.so"
    run = probes.run("mm_peak", *QUICK, "--shape", "4x128x64", "--quant", "both", library=library)
    per_layer, per_channel = run.rows
    assert per_layer["verdict"] == "passed", per_layer
    if version.startswith("1."):
        assert per_channel["verdict"] == "unsupported"
        assert "no per-channel quantisation" in per_channel["reason"]


def test_the_published_rates_come_back_from_the_campaign_timing(probes: Probes, mock_library: Path) -> None:
    """Loose, and by the best sample: the machine that runs the tests is shared, and load only ever slows a run down.

    The exact figures are measured by hand on a quiet machine.
    """
    env = {"RKNN_MOCK_TIMING": "campaign"}
    shapes = ("--shape", "1536x2048x1536", "--shape", "32x10240x512")
    run = probes.run("mm_peak", "--json", "--seconds", "0.3", *shapes, library=mock_library, env=env)
    square, cliff = (max(row["samples"]) for row in run.rows)
    assert 0.45 < square < 0.72
    assert square / cliff > 7  # 14 by the model; the fixed cost per run blurs a small shape
    run = probes.run(
        "mm_concurrent", "--json", "--seconds", "0.3", "--shape", "1536x2048x1536", library=mock_library, env=env
    )
    assert [row["verdict"] for row in run.rows] == ["passed"] * 3
    one, three = max(run.rows[0]["samples"]), max(run.rows[2]["samples"])
    assert 1.3 < three / one < 3.1  # 2.65 by the model
