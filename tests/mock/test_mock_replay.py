# SPDX-License-Identifier: Apache-2.0
"""A saved capability report becomes a mock that behaves like that board; the command line says what is wrong."""

from __future__ import annotations

import ctypes as c
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c_probes import mock
from c_probes.mock import replay
from c_probes.mock.__main__ import main
from reports.contract import Checked, Measurement, Validity, Verdict
from tests.mock.mock_client import BUILD, Matmul, load


def row(name: str, parameters: dict[str, Any], median: float | None, **changes: Any) -> dict[str, Any]:
    """One measurement as the contract writes it."""
    measurement = Measurement(
        name=name,
        parameters=parameters,
        unit="tops",
        median=median,
        mad=0.0,
        samples=(),
        checked=Checked.EXACT,
        verdict=changes.get("verdict", Verdict.PASSED),
        validity=changes.get("validity", Validity(True)),
        method="test",
        reason=None if median is not None else "none",
    )
    return measurement.as_json()


def gemm(median: float | None, code: int = 2, M: int = 512, **changes: Any) -> dict[str, Any]:
    parameters = {"type": code, "M": M, "K": 1024, "N": 1024, "B_layout": "native", "AC_layout": "norm", "core_mask": 1}
    return row("gemm_rate", parameters, median, **changes)


def report(*measurements: dict[str, Any], soc: str = "RK3576") -> dict[str, Any]:
    return {
        "format": "rknpu-kit capability report",
        "facts": {"soc.name": {"value": soc, "source": "device tree", "provenance": "read"}},
        "measurements": list(measurements),
    }


def cost(us: float, **parameters: Any) -> dict[str, Any]:
    return {**row("run_cost", parameters, us), "unit": "us"}


def stream(contexts: int, gbps: float) -> dict[str, Any]:
    """What a probe would read: ``gbps`` while streaming, and 40 us beside it in each run."""
    size = 4096 * 4096
    seen = contexts * size / (contexts * size / gbps / 1e9 + 40e-6) / 1e9
    return {**row("npu_stream", {"type": 2, "K": 4096, "N": 4096, "contexts": contexts}, seen), "unit": "gbps"}


def limit(dimension: str, size: int, code: int = 2, at_least: bool = False) -> dict[str, Any]:
    found = row("shape_limit", {"type": code, "dimension": dimension, "limit": "accepted"}, size)
    return {**found, "unit": "elements", "evidence": {"at_least": at_least}}


BOARD = report(
    row("dtype_support", {"type": 1}, None),
    row("dtype_support", {"type": 2}, None),
    row("dtype_support", {"type": 7}, None, verdict=Verdict.FAILED),
    row("dtype_support", {"type": 5}, None, verdict=Verdict.UNSUPPORTED),
    row("dtype_support", {"type": 13}, None, verdict=Verdict.UNSUPPORTED),
    gemm(0.25),
    gemm(0.9, M=128, verdict=Verdict.FAILED),
    gemm(0.9, M=64, validity=Validity(False, ("throttled",))),
    gemm(None, M=32),
    cost(40, part="fixed"),
    cost(5, part="bind", B_layout="native", bytes=4194304),
    cost(200, part="bind", B_layout="norm", bytes=4194304),
    cost(2 + 2048 / 8e3, part="sync", direction="to_device", bytes=2048),
    cost(2 + 4194304 / 8e3, part="sync", direction="to_device", bytes=4194304),
    stream(1, 10),
    stream(2, 16),
    limit("K", 10240),
    limit("N", 8192),
    limit("K", 65536, code=1, at_least=True),
    row("core_scaling", {"contexts": 1}, 0.25),
    row("core_scaling", {"contexts": 2}, 0.4),
)


def personas() -> list[mock.Persona]:
    return mock.personas(BUILD / "mock" / "librknnrt.so")


def test_a_report_becomes_persona_types_speeds_and_scaling() -> None:
    text = replay.configuration(BOARD, personas())
    error = c.create_string_buffer(1024)
    assert load().rknn_mock_check(text.encode(), error, 1024) == 0, error.value
    lines = text.splitlines()
    assert "persona = rk3576" in lines
    assert "limits.types = 1,2,7" in lines
    assert "# type 7 on the board: failed" in lines
    assert [line for line in lines if line.startswith("timing.gemm")] == ["timing.gemm = 2,512,1024,1024,norm,0.25"]
    assert "timing.share2 = 0.8" in lines
    assert [line for line in lines if line.startswith("limits.k_max")] == ["limits.k_max_i8 = 10240"]
    assert "limits.n_max = 8192" in lines
    costs = dict(line.split(" = ") for line in lines if line.startswith("timing.") and "gemm" not in line)
    assert costs["timing.fixed_us"] == "40"
    assert (costs["timing.bind_native_us"], costs["timing.bind_norm_us"]) == ("5", "200")
    assert costs["timing.bind_norm_bytes"] == "4194304"
    assert (float(costs["timing.sync_us"]), float(costs["timing.sync_gbps"])) == pytest.approx((2, 8), rel=1e-4)
    assert float(costs["timing.bw_core_gbps"]) == pytest.approx(10, rel=1e-3)
    assert float(costs["timing.bw_shared_gbps"]) == pytest.approx(16, rel=1e-3)
    assert "timing = on" in lines


def test_the_mock_replays_the_boards_types_and_speed(tmp_path: Path) -> None:
    source, config = tmp_path / "report.json", tmp_path / "board.conf"
    source.write_text(json.dumps(BOARD))
    assert main(["replay", str(source), "-o", str(config)]) == 0
    library = load(config=str(config), arithmetic="skip")
    assert [Matmul(library, code, 1, 64, 64).code for code in (1, 2, 4, 5, 7)] == [0, 0, -5, -5, 0]
    with Matmul(library, 2, 512, 1024, 1024) as matmul:
        matmul.bind()
        times = []
        for _ in range(3):
            start = time.monotonic()
            matmul.run()
            times.append(time.monotonic() - start)
    assert min(times) >= 2 * 512 * 1024 * 1024 / 0.25e12
    assert min(times) < 2


def fastest(library: c.CDLL, M: int, K: int) -> float:
    """Seconds of the fastest of some runs of an int8 product, native A and C."""
    with Matmul(library, 2, M, K, 1024, ac_layout=1) as matmul:
        matmul.bind()
        times = []
        for _ in range(5):
            start = time.monotonic()
            matmul.run()
            times.append(time.monotonic() - start)
    return min(times)


def test_shapes_that_were_not_measured_follow_the_timing_set_from_the_nearest(tmp_path: Path) -> None:
    """M = 1 streams at 11.1 GB/s and takes 132 us; M = 512 is arithmetic: 1.6 ms by the set, not 512 times that."""
    config = tmp_path / "board.conf"
    config.write_text("persona = rk3588\ntiming = on\ntiming.gemm = 2,1,1024,1024,native,0.0159\n")
    library = load(config=str(config), arithmetic="skip")
    assert fastest(library, 1, 1024) >= 130e-6
    assert 1.5e-3 <= fastest(library, 512, 1024) < 30e-3
    assert fastest(library, 512, 8224) >= 14 * 8 * 1.5e-3  # above the largest fast K


def test_a_measured_shape_keeps_its_time_and_the_board_its_pace(tmp_path: Path) -> None:
    """A board ten times slower than the set at one shape is ten times slower at its neighbours."""
    config = tmp_path / "board.conf"
    config.write_text("persona = rk3588\ntiming = on\ntiming.gemm = 2,512,1024,1024,native,0.069\n")
    library = load(config=str(config), arithmetic="skip")
    assert 15.5e-3 <= fastest(library, 512, 1024) < 1
    assert 31e-3 <= fastest(library, 512, 2048) < 1


def test_measured_shapes_switch_timing_on_and_the_environment_switches_it_off(tmp_path: Path) -> None:
    config = tmp_path / "board.conf"
    config.write_text("timing.gemm = 2,512,1024,1024,native,0.0011\n")
    assert fastest(load(config=str(config), arithmetic="skip"), 512, 1024) >= 0.9
    assert fastest(load(config=str(config), arithmetic="skip", timing="off"), 512, 1024) < 0.9


def test_speeds_under_bad_conditions_count_only_when_asked_for(tmp_path: Path, capsys: Any) -> None:
    source, config = tmp_path / "report.json", tmp_path / "board.conf"
    source.write_text(json.dumps(BOARD))
    assert main(["replay", str(source), "-o", str(config)]) == 0
    assert capsys.readouterr().err.startswith("measured speeds left out: 1;")
    assert "# 1 gemm_rate rows left out: right, but measured under bad conditions" in config.read_text().splitlines()
    assert main(["replay", str(source), "-o", str(config), "--invalid-too", "--force"]) == 0
    assert capsys.readouterr().err == ""
    assert "left out" not in config.read_text()
    points = [line for line in config.read_text().splitlines() if line.startswith("timing.gemm")]
    assert points == ["timing.gemm = 2,512,1024,1024,norm,0.25", "timing.gemm = 2,64,1024,1024,norm,0.9"]


def test_a_simulated_report_replays_its_persona() -> None:
    simulated = {**BOARD, "simulation": {"persona": "RK3588, runtime 2.3.2", "note": "x"}}
    assert "persona = rk3588" in replay.configuration(simulated, personas()).splitlines()


def test_a_report_without_the_chips_name_needs_the_persona_said(tmp_path: Path, capsys: Any) -> None:
    source, config = tmp_path / "report.json", tmp_path / "board.conf"
    source.write_text(json.dumps(report(gemm(0.5), soc="MT8195")))
    assert main(["replay", str(source), "-o", str(config)]) == 2
    assert "--persona" in capsys.readouterr().err
    assert main(["replay", str(source), "-o", str(config), "--persona", "rk9"]) == 2
    assert "rk3588" in capsys.readouterr().err
    assert main(["replay", str(source), "-o", str(config), "--persona", "rk3588"]) == 0
    assert "persona = rk3588" in config.read_text()


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{", "not JSON"),
        ("[]", "not a capability report"),
        ("{}", "not a capability report"),
        ('{"measurements": []}', "--persona"),
        (json.dumps(report()), "neither dtype_support nor usable gemm_rate"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_file_that_is_no_report_gets_one_sentence(tmp_path: Path, capsys: Any, text: str, part: str) -> None:
    source = tmp_path / "report.json"
    source.write_text(text)
    assert main(["replay", str(source), "-o", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert part in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path, capsys: Any) -> None:
    source, config = tmp_path / "report.json", tmp_path / "board.conf"
    source.write_text(json.dumps(BOARD))
    config.write_text("mine\n")
    assert main(["replay", str(source), "-o", str(config)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert config.read_text() == "mine\n"
    assert main(["replay", str(source), "-o", str(config), "--force"]) == 0
    assert main(["replay", str(tmp_path / "absent.json"), "-o", str(config), "--force"]) == 2
    assert main(["replay", str(source), "-o", str(tmp_path / "no" / "where")]) == 2


@pytest.fixture(scope="module")
def checker() -> c.CDLL:
    return load()


NAMES = ("gemm_rate", "dtype_support", "run_cost", "npu_stream", "shape_limit", "core_scaling")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "M", "K", "N", "AC_layout", "name", "verdict", "median", "parameters", "part", "bytes", "unit"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(measurements=st.lists(VALUES, max_size=5), facts=VALUES)
@settings(max_examples=150, deadline=None)
def test_any_json_gives_a_valid_configuration_or_a_refusal(
    checker: c.CDLL, measurements: list[Any], facts: Any
) -> None:
    known = [mock.Persona("rk3588", "", 3, (1, 2), "rk3588", "x"), mock.Persona("any", "", 3, (1, 2), "rk3588", "x")]
    for entry in measurements:
        if isinstance(entry, dict):
            entry["name"] = NAMES[len(entry) % len(NAMES)]
    try:
        text = replay.configuration({"measurements": measurements, "facts": facts}, known, "rk3588")
    except replay.BadReport as error:
        assert str(error)
    else:
        complaint = c.create_string_buffer(1024)
        assert checker.rknn_mock_check(text.encode(), complaint, 1024) == 0, complaint.value


def test_the_command_lists_and_finds(capsys: Any) -> None:
    for option, word in (("--list-faults", "stale-a"), ("--list-personas", "rv1126b"), ("--list-timing", "campaign")):
        assert main([option]) == 0
        assert word in capsys.readouterr().out
    assert main(["--where"]) == 0
    assert Path(capsys.readouterr().out.strip()).is_file()
    assert main(["--where", "--runtime", "1.5.2"]) == 0
    assert Path(capsys.readouterr().out.strip()).parent.name == "1.5.2"
    assert main([]) == 2


def test_a_library_that_is_not_built_is_said_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "c_probes.mock", "--where"],
        env={**os.environ, "RKNPU_BUILD": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(mock.__file__).resolve().parents[2],
    )
    assert done.returncode == 3
    assert "make mock" in done.stderr


def test_the_readme_lists_every_switch_fault_and_set() -> None:
    text = (Path(mock.__file__).parent / "README.md").read_text()
    library = BUILD / "mock" / "librknnrt.so"
    for fault in mock.faults(library):
        cell = f"`{fault.parameters}`" if fault.parameters else ""
        assert f"| `{fault.name}` | {cell} | {fault.imitates} |" in text
    assert all(f"`{persona.name}`" in text for persona in mock.personas(library))
    sources = " ".join(path.read_text() for path in (Path(mock.__file__).parent / "src").glob("settings*.c"))
    switches = set(re.findall(r"RKNN_MOCK_[A-Z0-9]+", sources))
    assert len(switches) >= 8
    assert [switch for switch in sorted(switches) if f"`{switch}`" not in text] == []
