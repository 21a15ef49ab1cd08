# SPDX-License-Identifier: Apache-2.0
"""The commands forecast and levers: pages, JSON, exit codes, a stranger's files, and a header of real size in time."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from bench.forecast_cases.header import Dimensions, write_header
from reports.__main__ import main
from tests.forecast import made_reports as made
from tests.forecast.conftest import SMALL
from tests.forecast.test_llama_bench_file import RECORD
from tests.gguf import crafted_gguf as craft

STRINGS = 776_000


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(whole()))
    return path


def whole(**more: Any) -> dict[str, Any]:
    """A report with every section that readers ask for."""
    facts = made.report()["facts"]
    for fact in facts.values():
        fact.update({"provenance": "measured", "reason": None, "needs_root": False})
    return {
        **made.report(),
        "$schema": "x", "simulation": None, "redacted": True, "facts": facts,
        "tool": {"name": "rknpu-kit", "version": "0.1.0", "git_commit": None},
        "run": {
            "level": "medium", "seed": 1, "library": None, "started_at": "2026-01-01T00:00:00Z",
            "ended_at": "2026-01-01T00:01:00Z", "duration_s": 60.0, "complete": True, "exit_code": 0,
        },
        **more,
    }  # fmt: skip


def test_the_page_tells_fit_rates_crossover_and_levers(
    report: Path, small_header: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["forecast", str(small_header), "--report", str(report)]) == 0
    page = capsys.readouterr().out
    for words in ("Does it fit?", "Tokens per second", "Decode behind", "CPU or NPU", "Speculation", "Levers", "w8a8"):
        assert words in page
    assert page.isascii()
    assert max(map(len, page.splitlines())) <= 110


def test_json_holds_the_same_and_levers_with_their_measurements(
    report: Path, small_header: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["forecast", str(small_header), "--report", str(report), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "rknpu-kit forecast"
    assert all(row["decided_by"] for row in document["levers"])
    assert main(["levers", "--report", str(report), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "rknpu-kit levers"


def test_a_draft_model_is_a_row_of_its_own(
    report: Path, small_header: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = write_header(tmp_path / "draft.gguf", "draft", Dimensions(1, 1024, 1024, 16, 4, 64, 32000, True))
    assert main(["forecast", str(small_header), "--report", str(report), "--draft", str(tiny), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["speculation"]["rows"]
    by = {(row["drafter"], row["length"]): row for row in rows}
    assert by["draft", 4]["break_even"] > by["n-gram", 4]["break_even"]


def test_levers_take_llama_bench_files_and_a_model(
    report: Path, small_header: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = tmp_path / "bench.jsonl"
    rows = [{**RECORD, "type_v": "f16", "flash_attn": flash, "avg_ts": rate} for flash, rate in ((0, 3.0), (1, 2.0))]
    bench.write_text("\n".join(json.dumps({**row, "samples_ts": [row["avg_ts"]]}) for row in rows))
    arguments = ["levers", "--report", str(report), "--model", str(small_header), "--llama-bench", str(bench)]
    assert main(arguments) == 0
    page = capsys.readouterr().out
    assert "cache f16/f16, flash attention, depth 8192: 0.667x of tg128 @ d8192" in page
    assert "activation reuse" in page


@pytest.mark.parametrize(
    "arguments",
    [
        ["--pipeline", "w1a1"],
        ["--soc", "rk9999"],
        ["--context", "0"],
        ["--context", "many"],
        ["--kv", "q2"],
        ["--llama-bench", "absent.json"],
    ],
)
def test_a_request_that_cannot_be_answered_is_one_sentence_and_exit_2(
    report: Path, small_header: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["forecast", str(small_header), "--report", str(report), *arguments])
    except SystemExit as stop:
        assert stop.code == 2
    else:
        assert code == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_a_model_that_cannot_be_read_is_one_sentence_and_exit_3(
    report: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(40))
    for path in (broken, tmp_path / "absent.gguf"):
        assert main(["forecast", str(path), "--report", str(report)]) == 3
        assert capsys.readouterr().err.startswith("rknpu-report: NPU-F")
    assert main(["levers", "--report", str(report), "--model", str(broken)]) == 3


def test_no_report_is_exit_2(small_header: Path, tmp_path: Path) -> None:
    empty = tmp_path / "x.json"
    empty.write_text("{}")
    assert main(["forecast", str(small_header), "--report", str(empty)]) == 2
    assert main(["levers", "--report", str(empty)]) == 2


def test_names_of_a_hostile_model_and_report_are_shown_inert(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "hostile.gguf"
    keys = [craft.key_text("general.architecture", "a\x1b[2J"), craft.key_text("general.name", "\x1b]0;owned\x07\n<b>")]
    model.write_bytes(craft.gguf(keys, [craft.tensor("blk.0.attn_q.weight", (64, 64), craft.GGML_Q8_0, 0)]))
    rows = made.rows()
    for each in rows:
        each["validity"] = {"valid": False, "reasons": ["\x1b[31mload"]}
        if each["name"].startswith("cpu_"):
            each["parameters"]["cpus"] = "\x1b[5m4-7"
    path = tmp_path / "report.json"
    path.write_text(json.dumps(whole(measurements=rows)))
    assert main(["forecast", str(model), "--report", str(path)]) == 0
    assert main(["levers", "--report", str(path)]) == 0
    page = capsys.readouterr().out
    assert "\x1b" not in page and "\x07" not in page
    assert page.isascii()


def test_a_header_of_776000_strings_is_forecast_within_half_a_second_of_cpu(
    report: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_header(tmp_path / "large.gguf", "large", SMALL, [b"token %d" % i for i in range(STRINGS)])
    taken = []
    for _ in range(3):
        start = time.process_time()
        assert main(["forecast", str(path), "--report", str(report)]) == 0
        taken.append(time.process_time() - start)
    assert "large" in capsys.readouterr().out
    assert min(taken) < 0.5
