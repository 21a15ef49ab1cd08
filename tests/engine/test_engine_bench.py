# SPDX-License-Identifier: Apache-2.0
"""``bench``: llama-bench's names, speeds that follow from the samples, and no repetition in which others ran."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev

import pytest

from reference_engine import benchmark, foreign_cpu
from reference_engine.__main__ import main
from reference_engine.benchmark import Workload, cpu_name, document, measure, model_type
from reference_engine.errors import UsageError
from reference_engine.foreign_cpu import CpuUse, CpuWatch, busy_seconds, own_seconds
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_OK, EXIT_USAGE
from tests.engine.conftest import Load
from tests.gguf import crafted_gguf as craft
from tests.gguf.random_models import Recipe

Write = Callable[..., Path]
RECIPE = Recipe("gemma3", kind=craft.GGML_Q8_0)

# llama-bench -o json, b11434 (tools/llama-bench, get_fields), as far as they mean something here.
LLAMA_BENCH_FIELDS = {
    "build_commit",
    "build_number",
    "cpu_info",
    "gpu_info",
    "backends",
    "model_filename",
    "model_type",
    "model_size",
    "model_n_params",
    "n_batch",
    "n_ubatch",
    "n_threads",
    "type_k",
    "type_v",
    "n_gpu_layers",
    "flash_attn",
    "n_prompt",
    "n_gen",
    "n_depth",
    "test_time",
    "avg_ns",
    "stddev_ns",
    "avg_ts",
    "stddev_ts",
    "samples_ns",
    "samples_ts",
}


def quiet(run: Callable[[], None]) -> tuple[int, CpuUse]:
    run()
    return 1_000_000, CpuUse(window_s=1.0, own_s=1.0, foreign_s=0.0)


class Disturbed:
    """A clock of a machine on which others run at these repetitions."""

    def __init__(self, *at: int) -> None:
        self.at, self.calls = at, 0

    def __call__(self, run: Callable[[], None]) -> tuple[int, CpuUse]:
        run()
        self.calls += 1
        busy = self.calls in self.at or -1 in self.at
        return self.calls, CpuUse(window_s=1.0, own_s=1.0, foreign_s=2.0 if busy else 0.0)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "_PAUSE_S", 0.0)


def test_a_row_has_the_names_of_llama_bench_and_speeds_that_follow_from_its_samples(load: Load) -> None:
    model = load(RECIPE, "npu:w8a8-per-channel", threads=2)
    result = measure(model, Workload(16, 0, 4), repetitions=3, patience_s=1, clock=Disturbed())
    row = document(model, result)
    assert set(row) >= LLAMA_BENCH_FIELDS
    assert (row["n_prompt"], row["n_gen"], row["n_depth"], row["n_threads"]) == (16, 0, 4, 2)
    assert row["samples_ns"] == [1, 2, 3]
    assert row["samples_ts"] == [16e9, 8e9, 16e9 / 3]
    assert row["avg_ns"] == 2
    assert row["avg_ts"] == pytest.approx(fmean([16e9, 8e9, 16e9 / 3]))
    assert row["stddev_ts"] == pytest.approx(stdev([16e9, 8e9, 16e9 / 3]))
    assert row["model_size"] == model.file.tensor_bytes
    assert "no figure of an NPU" in str(row["engine"])
    json.dumps(row, allow_nan=False)


def test_a_repetition_in_which_others_ran_is_discarded_and_measured_again(load: Load) -> None:
    result = measure(load(RECIPE), Workload(0, 2), repetitions=3, patience_s=100, clock=Disturbed(1, 3))
    assert result.samples_ns == (2, 4, 5)
    assert result.discarded == 2


def test_when_others_never_stop_nothing_is_measured(load: Load) -> None:
    model = load(RECIPE)
    result = measure(model, Workload(0, 2), repetitions=3, patience_s=4.5, clock=Disturbed(-1))
    assert result.samples_ns == ()
    assert result.discarded == 5
    row = document(model, result)
    assert row["avg_ts"] is None
    assert row["avg_ns"] is None


def test_decode_feeds_one_token_at_a_time_and_prefill_all_at_once(load: Load) -> None:
    model = load(RECIPE)
    seen: list[tuple[int, int]] = []
    forward = model.forward

    def watched(tokens: list[int], cache: object, **more: object) -> object:
        seen.append((len(tokens), cache.n_past))  # type: ignore[attr-defined]
        return forward(tokens, cache, **more)  # type: ignore[arg-type]

    model.forward = watched  # type: ignore[method-assign, assignment]
    measure(model, Workload(0, 3, 5), repetitions=1, patience_s=1, clock=quiet)
    assert seen == [(5, 0), *[(1, 5), (1, 6), (1, 7)] * 2]
    seen.clear()
    measure(model, Workload(6, 0), repetitions=2, patience_s=1, clock=quiet)
    assert seen == [(6, 0)] * 3


def test_a_depth_behind_a_full_ring_is_filled_again(load: Load) -> None:
    """Layers with a window cannot be cut back far: the cache is filled anew, outside the time."""
    model = load(RECIPE)
    result = measure(model, Workload(0, 3, 100), repetitions=2, patience_s=1, clock=quiet)
    assert len(result.samples_ns) == 2


def test_a_test_that_the_context_cannot_hold_is_refused(load: Load) -> None:
    with pytest.raises(UsageError, match="pp16 @ d4 needs 20 positions, not 8"):
        measure(load(RECIPE, n_ctx=8), Workload(16, 0, 4), repetitions=1, patience_s=1, clock=quiet)


@pytest.mark.parametrize(("foreign", "disturbed"), [(0.0, False), (0.03, False), (0.5, True), (None, False)])
def test_foreign_time_counts_beyond_the_error_of_the_counters(foreign: float | None, disturbed: bool) -> None:
    share = None if foreign is None else foreign * (os.cpu_count() or 1)
    assert CpuUse(1.0, 1.0, share).disturbed is disturbed


def test_foreign_time_is_what_all_did_less_the_own(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, own = iter([100.0, 107.5]), iter([20.0, 25.0])
    monkeypatch.setattr(foreign_cpu, "busy_seconds", lambda: next(busy))
    monkeypatch.setattr(foreign_cpu, "own_seconds", lambda: next(own))
    use = CpuWatch().stop()
    assert (use.own_s, use.foreign_s) == (5.0, 2.5)
    monkeypatch.undo()
    monkeypatch.setattr(foreign_cpu, "busy_seconds", lambda: None)
    assert CpuWatch().stop().foreign_s is None


def test_own_time_is_that_of_this_process_and_its_children() -> None:
    work = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\n"
    before = own_seconds()
    own = time.process_time()
    while time.process_time() - own < 0.2:
        pass
    assert 0.19 < own_seconds() - before < 10
    before = own_seconds()
    with subprocess.Popen([sys.executable, "-c", work + "input()"], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert own_seconds() - before > 0.25  # while it runs
        child.communicate(b"\n")
    assert own_seconds() - before > 0.25  # and when it has ended


@pytest.mark.parametrize("text", ["", "cpu 1 2", "cpu a b c d e f g h"])
def test_counters_that_cannot_be_read_leave_foreign_time_unknown(text: str, tmp_path: Path) -> None:
    path = tmp_path / "stat"
    path.write_text(text)
    assert busy_seconds(path) is None
    assert busy_seconds(tmp_path / "missing") is None
    path.write_text("cpu 100 100 100 7 7 50 50 100 0 0\n")
    assert busy_seconds(path) == 500 / os.sysconf("SC_CLK_TCK")


def test_the_processor_and_the_model_are_named(load: Load, tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nmodel name : A Fine CPU\n")
    assert cpu_name(info) == "A Fine CPU"
    assert cpu_name(tmp_path / "missing")
    assert model_type(load(RECIPE)).endswith("K Q8_0")
    assert model_type(load(RECIPE)).startswith("gemma3 ")


def test_bench_prints_a_table_that_says_what_it_is(
    model_file: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark.measure, "__kwdefaults__", {"progress": None, "clock": quiet})
    path = str(model_file(RECIPE))
    assert main(["bench", path, "-p", "8,4", "-n", "2", "-d", "0,3", "-r", "2"]) == EXIT_OK
    page = capsys.readouterr().out
    for test in ("pp8 ", "pp4 ", "tg2 ", "pp8 @ d3", "tg2 @ d3"):
        assert test in page
    assert "2 of 2" in page
    assert "on a CPU; no figure of an NPU" in page
    assert main(["bench", path, "-p", "8", "-n", "0", "-r", "2", "--json"]) == EXIT_OK
    (row,) = json.loads(capsys.readouterr().out)
    assert row["n_prompt"] == 8
    assert row["load_ns"] > 0


def test_bench_on_a_busy_machine_says_so_and_exits_with_3(
    model_file: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark.measure, "__kwdefaults__", {"progress": None, "clock": Disturbed(-1)})
    arguments = ["bench", str(model_file(RECIPE)), "-p", "8", "-n", "0", "--patience", "2"]
    assert main(arguments) == EXIT_COULD_NOT_RUN
    assert "not measured  0 of 5, 2 discarded: other processes used the CPU" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["-p", "0", "-n", "0"], ["-r", "0"], ["-p", "999999"]])
def test_a_bench_of_nothing_is_refused(
    arguments: list[str], model_file: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", str(model_file(RECIPE)), *arguments]) == EXIT_USAGE
    assert capsys.readouterr().err.count("\n") == 1
