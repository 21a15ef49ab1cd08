# SPDX-License-Identifier: Apache-2.0
"""The forecast of a small model: worked out by hand beside it, and unknown wherever an input is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.forecast_cases.header import Dimensions, write_header
from reference_engine.gguf_file import GgufFile, open_gguf
from reports.forecast.document import Asked, CannotForecast, case_of, forecast
from reports.forecast.page import render, tps
from reports.forecast.passes import ATTENTION, HOST, Host
from reports.forecast.pipelines import forecast_pipelines
from reports.forecast.quantity import exact
from reports.llama_bench import BenchRow
from tests.forecast import made_reports as made
from tests.forecast.conftest import SMALL
from tests.gguf import crafted_gguf as craft

W8A8 = Asked(forecast_pipelines("w8a8"))
LAYER = ((1024, 1024), (1024, 256), (1024, 256), (1024, 1024), (1024, 4096), (1024, 4096), (4096, 1024))


def largest_share(n: int, cores: int) -> int:
    """Columns of the core with the most, in units of 32, as the forks cut N."""
    units = n // 32
    return 32 * (-(-units // cores))


def npu_by_hand(rows: int, head_rows: int, cores: int) -> float:
    def run(m: int, k: int, n: int) -> float:
        stream = made.STREAM * cores / made.STREAMS[cores]
        macs = m * made.MAC * cores / made.SCALING[cores] if m > 1 else 0.0
        return made.FIXED + k * largest_share(n, cores) * (stream + macs)

    layers = SMALL.layers * sum(run(rows, k, n) for k, n in LAYER)
    return layers + run(head_rows, 1024, 32000)


def around_by_hand(rows: int, head_rows: int, cores: int) -> float:
    """Quantise, collect and sync: two reads and a byte for A; sums and floats of C; each buffer synced by core."""
    seconds = 0.0
    for m, (k, n), count in [*((rows, shape, SMALL.layers) for shape in LAYER), (head_rows, (1024, 32000), 1)]:
        seconds += count * (m * k * 9 + m * n * 8) / made.COPY
        seconds += count * (made.SYNC_START + made.SYNC_BYTE * m * k)
        shares = [largest_share(n, cores)] * cores
        shares[-1] = n - sum(shares[:-1])
        seconds += count * sum(made.SYNC_START + made.SYNC_BYTE * 4 * m * share for share in shares)
    return seconds


def rates(document: Mapping[str, Any], **wanted: Any) -> Mapping[str, Any]:
    found = [row for row in document["rates"] if all(row[key] == value for key, value in wanted.items())]
    assert len(found) == 1
    return dict(found[0])


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_decode_is_the_sum_of_runs_and_of_what_the_cpu_does_around_them(small: GgufFile, cores: int) -> None:
    row = rates(forecast(made.report(), small, W8A8), cores=cores, cpus="4-7")
    seconds = npu_by_hand(1, 1, cores) + around_by_hand(1, 1, cores)
    assert row["decode_tps"]["value"] == pytest.approx(1 / seconds, rel=0.01)
    assert row["decode_tps"]["omitted"] == [HOST]
    assert row["decode_tps"]["state"] == "bound"


def test_a_prompt_is_the_sum_of_its_parts_too(small: GgufFile) -> None:
    row = rates(forecast(made.report(), small, W8A8), cores=3, cpus="4-7")
    seconds = npu_by_hand(512, 1, 3) + around_by_hand(512, 1, 3)
    assert row["prefill_tps"]["value"] == pytest.approx(512 / seconds, rel=0.01)
    assert row["prefill_tps"]["omitted"] == [HOST, ATTENTION]


def test_a_runtime_that_keeps_the_pass_on_the_npu_is_an_estimate(small: GgufFile) -> None:
    row = rates(forecast(made.report(), small, Asked(forecast_pipelines("rkllm-w8a8"))), cores=3)
    assert row["decode_tps"]["value"] == pytest.approx(1 / npu_by_hand(1, 1, 3), rel=0.01)
    assert row["decode_tps"]["state"] == "estimate"


def test_slower_cpus_give_a_slower_prompt_and_pinning_is_ranked(small: GgufFile) -> None:
    document: Any = forecast(made.report(), small, W8A8)
    fast, slow = (rates(document, cores=3, cpus=cpus)["prefill_tps"]["value"] for cpus in ("4-7", "0-3"))
    assert fast > 1.05 * slow


@pytest.mark.parametrize(
    ("name", "parameters", "missing"),
    [
        ("npu_stream", {"contexts": 3}, "npu_stream, contexts 3"),
        ("run_cost", {"part": "fixed"}, "run_cost fixed"),
    ],
)
def test_without_a_measurement_the_rate_is_unknown_by_its_name(
    small: GgufFile, name: str, parameters: dict[str, Any], missing: str
) -> None:
    document: Any = forecast(made.report(made.without(name, **parameters)), small, W8A8)
    row = rates(document, cores=3, cpus="4-7")
    assert row["decode_tps"]["value"] is None
    assert missing in row["decode_tps"]["missing"]
    assert missing in render(document).replace("\n  ", " ")
    assert tps(row["decode_tps"]) == "unknown"


def test_an_empty_report_gives_no_figure_at_all(small: GgufFile) -> None:
    document: Any = forecast(made.report([]), small, Asked())
    assert document["rates"]
    for row in document["rates"]:
        assert row["decode_tps"]["value"] is None
        assert row["prefill_tps"]["value"] is None
    assert "unknown" in render(document)


def test_a_part_that_only_adds_time_leaves_a_bound(small: GgufFile) -> None:
    document: Any = forecast(made.report(made.without("run_cost", part="sync")), small, W8A8)
    row = rates(document, cores=3, cpus="4-7")
    assert row["decode_tps"]["state"] == "bound"
    assert "run_cost sync to_device" in row["decode_tps"]["omitted"]


def test_a_wider_spread_of_samples_widens_the_interval(small: GgufFile) -> None:
    rows = made.rows()
    narrow = rates(forecast(made.report(rows), small, W8A8), cores=3, cpus="4-7")["decode_tps"]
    for each in rows:
        if each["name"] == "npu_stream":
            each["samples"] = [0.8 * each["median"], each["median"], 1.2 * each["median"]]
    wide = rates(forecast(made.report(rows), small, W8A8), cores=3, cpus="4-7")["decode_tps"]
    assert narrow["high"] - narrow["low"] < 0.01 * narrow["value"]
    assert wide["low"] < 0.9 * wide["value"] and wide["high"] > 1.08 * wide["value"]


def test_a_simulated_report_marks_the_forecast(small: GgufFile) -> None:
    report = {**made.report(), "simulated": True, "simulation": {"persona": "rk3588"}}
    document: Any = forecast(report, small, W8A8)
    assert document["simulated"] is True
    assert render(document).count("SIMULATED") == 2
    assert "SIMULATED" not in render(forecast(made.report(), small, W8A8))


def test_depth_without_a_measured_attention_is_a_bound_that_falls(small: GgufFile) -> None:
    depths: Any = forecast(made.report(), small, W8A8)["depths"]
    told = [row["decode_tps"] for row in depths]
    values = [each["value"] for each in told]
    assert values == sorted(values, reverse=True)
    seconds = [1 / value for value in values]
    read = SMALL.layers * 2 * SMALL.kv_heads * SMALL.head_dim * 2 * 4096 / made.READ
    assert seconds[1] - seconds[0] == pytest.approx(read, rel=0.02)
    assert ATTENTION in told[1]["omitted"]


def bench_row(small: GgufFile, **fields: Any) -> BenchRow:
    elements = sum(tensor.n_elements for tensor in small.tensors.values())
    base: dict[str, Any] = {
        "model": "small.gguf", "model_size": 0, "n_params": elements, "backends": "RKNPU", "n_threads": 4,
        "cpu_mask": "0xf0", "n_ubatch": 512, "type_k": "f16", "type_v": "f16", "flash_attn": False, "n_prompt": 0,
        "n_gen": 0, "n_depth": 0, "avg_ts": 1.0, "samples_ts": (),
    }  # fmt: skip
    return BenchRow(**{**base, **fields})


def test_a_llama_bench_file_at_two_depths_brings_attention_that_gives_its_own_rates_back(small: GgufFile) -> None:
    shallow, deep = 0.010, 0.014
    rows = (
        bench_row(small, n_gen=128, avg_ts=1 / shallow, samples_ts=(1 / shallow,)),
        bench_row(small, n_gen=128, n_depth=4096, avg_ts=1 / deep, samples_ts=(1 / deep,)),
    )
    document: Any = forecast(made.report(), small, Asked(forecast_pipelines("w8a8"), bench=rows))
    told = [row["decode_tps"] for row in document["depths"]]
    seconds = [1 / each["value"] for each in told]
    assert seconds[1] - seconds[0] == pytest.approx(deep - shallow, rel=0.02)
    assert seconds[0] == pytest.approx(shallow, rel=0.03)
    assert told[1]["omitted"] == []


def test_the_hosts_cost_and_slower_batches_are_found_again(small: GgufFile) -> None:
    """A made back end: 100 us a call, batches 1.4 times slower, attention of 5e-11 s a multiply-add."""
    case = case_of(made.report(), small, W8A8)
    pipeline = forecast_pipelines("w8a8")[0]
    truth = Host("4-7", exact(1e-4), exact(5e-11), exact(5e-11), None, exact(1.4))
    made_case = case_of(made.report(), small, Asked(host=truth))
    model = made_case.timed(pipeline, 3, "4-7")
    rows = []
    for n in (512, 2048):
        seconds = sum(model.run_pass(512, 512 * i, head_rows=1).seconds.value or 0.0 for i in range(n // 512))
        rows.append(bench_row(small, n_prompt=n, avg_ts=n / seconds))
    for depth in (0, 4096):
        rows.append(
            bench_row(small, n_gen=2, n_depth=depth, avg_ts=1 / (model.run_pass(1, depth + 1).seconds.value or 1))
        )
    case.asked = Asked(bench=tuple(rows))
    found = case.timed(pipeline, 3, "4-7").host
    for quantity, value in (
        (found.per_call, 1e-4), (found.attention_decode, 5e-11), (found.attention_prefill, 5e-11),
    ):  # fmt: skip
        assert quantity is not None
        assert quantity.value == pytest.approx(value, rel=0.05)
    # The host's own cost in a prompt counts as the batches' here: 4 layers of small matmuls.
    assert 1.35 < (found.batch_factor.value or 0) < 1.6


def test_rows_of_another_model_bring_nothing_of_this_one(small: GgufFile) -> None:
    rows = (bench_row(small, n_gen=128, n_params=5), bench_row(small, n_gen=128, n_depth=4096, n_params=5, avg_ts=0.5))
    document: Any = forecast(made.report(), small, Asked(forecast_pipelines("w8a8"), bench=rows))
    assert document["calibrated_on"] == []
    assert rates(document, cores=3, cpus="4-7")["decode_tps"]["state"] == "bound"


def test_speculation_pays_from_the_break_even_acceptance(small: GgufFile) -> None:
    document: Any = forecast(made.report(), small, W8A8)
    rows = document["speculation"]["rows"]
    assert [row["length"] for row in rows] == [2, 4, 8]
    for row in rows:
        assert 0 < row["break_even"] < 0.3
        values = list(row["rates"].values())
        assert values == sorted(values)


def test_the_crossover_is_told_only_where_both_sides_were_measured(small: GgufFile) -> None:
    document: Any = forecast(made.report(), small, W8A8)
    cross = document["crossover"]
    # CPU: 34/32 bytes a weight at 20 GB/s; NPU: a byte at 24 GB/s and 40 us.
    per_weight = 34 / 32 / made.READ - made.STREAM / made.STREAMS[3]
    assert cross["decode_weights"] == pytest.approx(made.FIXED / per_weight, rel=0.01)
    assert cross["prefill_rows"] is None
    assert "llama-bench of the CPU build, a prompt" in cross["missing"]
    cpu = bench_row(small, backends="CPU", n_prompt=512, avg_ts=100.0)
    document = forecast(made.report(), small, Asked(forecast_pipelines("w8a8"), bench=(cpu,)))
    assert document["crossover"]["prefill_rows"] in (1, 2, 4, 8, 16)


def test_a_mixture_of_experts_gets_no_rates(tmp_path: Path) -> None:
    path = tmp_path / "moe.gguf"
    keys = [
        craft.key_text("general.architecture", "qwen3moe"),
        craft.key_u32("qwen3moe.expert_count", 64),
        craft.key_u32("qwen3moe.block_count", 1),
    ]
    tensors = [craft.tensor("blk.0.attn_q.weight", (64, 64), craft.GGML_Q8_0, 0)]
    path.write_bytes(craft.gguf(keys, tensors))
    with open_gguf(path, header_only=True) as model:
        document: Any = forecast(made.report(), model, Asked())
    assert document["rates"] == []
    assert "mixture of experts" in str(document["refused"])
    assert "No rates: a mixture of experts" in render(document)


def test_an_unknown_architecture_is_forecast_from_its_weights_with_keys_and_values_unknown(tmp_path: Path) -> None:
    path = tmp_path / "new.gguf"
    keys = [craft.key_text("general.architecture", "brandnew"), craft.key_u32("brandnew.block_count", 1)]
    tensors = [craft.tensor("blk.0.attn_q.weight", (1024, 1024), craft.GGML_Q8_0, 0)]
    path.write_bytes(craft.gguf(keys, tensors))
    with open_gguf(path, header_only=True) as model:
        document: Any = forecast(made.report(), model, W8A8)
    assert document["kv_bytes"]["f16"]["8192"] is None
    assert document["fits"]["w8a8"]["fits"] is None
    row = rates(document, cores=3, cpus="4-7")
    assert row["decode_tps"]["value"] is not None
    assert "attention of this architecture" in row["prefill_tps"]["omitted"]


def test_a_model_beyond_memory_domains_or_descriptors_does_not_fit(tmp_path: Path, small: GgufFile) -> None:
    small_memory: Any = forecast(made.report(memory__total_bytes=64 << 20), small, W8A8)
    assert small_memory["fits"]["w8a8"]["fits"] is False
    few: Any = forecast(made.report(limits__nofile_soft=64, limits__nofile_hard=65536), small, W8A8)
    assert few["fits"]["w8a8"]["fits"] is False
    assert "ulimit -n" in render(few)
    huge = Dimensions(layers=80, embd=8192, ff=28672, heads=64, kv_heads=8, head_dim=128, vocab=128256, tied=False)
    path = write_header(tmp_path / "70b.gguf", "70b", huge)
    with open_gguf(path, header_only=True) as model:
        document: Any = forecast(made.report(), model, W8A8)
    fit = document["fits"]["w8a8"]
    assert fit["fits"] is False
    assert fit["left"] > 0
    assert "no room for" in render(document)


def test_what_a_board_does_not_tell_is_not_known_to_fit(small: GgufFile) -> None:
    document: Any = forecast(made.report(iommu__windows=None), small, W8A8)
    assert document["fits"]["w8a8"]["fits"] is None
    assert "iommu.windows" in render(document)


def test_a_report_without_a_soc_asks_for_one(small: GgufFile) -> None:
    with pytest.raises(CannotForecast, match="--soc"):
        forecast(made.report(soc__name=None), small, W8A8)
    with pytest.raises(CannotForecast, match="--soc"):
        forecast(made.report(soc__name="RK9999"), small, W8A8)
    assert forecast(made.report(soc__name=None), small, Asked(soc="rk3576"))["soc"] == "rk3576"


def test_keys_and_values_grow_with_the_context_by_the_type(small: GgufFile) -> None:
    table: Any = forecast(made.report(), small, W8A8)["kv_bytes"]
    row = 2 * SMALL.kv_heads * SMALL.head_dim * SMALL.layers
    assert table["f16"]["8192"] == row * 2 * 8192
    assert table["q8_0"]["8192"] == row * 8192 * 34 // 32
    assert table["q4_0"]["2048"] == row * 2048 * 18 // 32


def test_the_document_is_plain_json(small: GgufFile) -> None:
    text = json.dumps(forecast(made.report(), small, Asked()), allow_nan=False)
    assert json.loads(text)["format"] == "rknpu-kit forecast"


def test_weights_that_stay_on_the_cpu_leave_a_prompt_unknown_until_a_cpu_build_tells_their_rate(tmp_path: Path) -> None:
    """Q4_1 has no pipeline in that fork: all its weights stay on the CPU."""
    path = tmp_path / "q4_1.gguf"
    keys = [craft.key_text("general.architecture", "brandnew")]
    path.write_bytes(craft.gguf(keys, [craft.tensor("blk.0.attn_q.weight", (1024, 1024), 3, 0)]))
    pipeline = forecast_pipelines("rk-llama-marfrit")
    cpu = BenchRow("m", 0, 1000, "CPU", 4, "", 512, "f16", "f16", False, 512, 0, 0, 100.0, ())
    with open_gguf(path, header_only=True) as model:
        bare: Any = forecast(made.report(), model, Asked(pipeline))
        told: Any = forecast(made.report(), model, Asked(pipeline, bench=(cpu,)))
    row = rates(bare, cores=3, cpus="4-7")
    assert row["prefill_tps"]["value"] is None
    assert any("CPU build" in name for name in row["prefill_tps"]["missing"])
    assert 1 / row["decode_tps"]["value"] == pytest.approx(1024 * 1024 * 20 / 32 / made.READ, rel=0.01)
    operations = 2 * 1000 * 100.0
    seconds = 512 * 2 * 1024 * 1024 / operations
    assert rates(told, cores=3, cpus="4-7")["prefill_tps"]["value"] == pytest.approx(512 / seconds, rel=0.01)


def test_a_k_beyond_the_limit_is_two_runs_two_fetches_and_a_sum(tmp_path: Path) -> None:
    """K = 10240 of ffn_down goes as 8192 and 2048; sums of the second segment are added to the first's floats."""
    shape = Dimensions(layers=1, embd=1024, ff=10240, heads=16, kv_heads=4, head_dim=64, vocab=1024, tied=False)
    with open_gguf(write_header(tmp_path / "split.gguf", "split", shape), header_only=True) as model:
        row = rates(forecast(made.report(), model, W8A8), cores=1, cpus="4-7")
    layer = ((1024, 1024), (1024, 256), (1024, 256), (1024, 1024), (1024, 10240), (1024, 10240))
    runs, collect, sync = 0.0, 0.0, 0.0
    plain = [*((512, shape) for shape in layer), (1, (1024, 1024))]
    for m, (k, n) in plain:
        runs += made.FIXED + k * n * (made.STREAM + (m * made.MAC if m > 1 else 0))
        collect += m * n * 8 / made.COPY
        sync += 2 * made.SYNC_START + made.SYNC_BYTE * m * (k + 4 * n)
    for k in (8192, 2048):
        runs += made.FIXED + k * 1024 * (made.STREAM + 512 * made.MAC)
        sync += 2 * made.SYNC_START + made.SYNC_BYTE * 512 * (k + 4 * 1024)
    collect += 512 * 1024 * (8 + 12) / made.COPY
    parts = row["prefill_parts_s"]
    assert parts["NPU"] == pytest.approx(runs, rel=0.01)
    assert parts["collect"] == pytest.approx(collect, rel=1e-6)
    assert parts["sync"] == pytest.approx(sync, rel=0.01)  # beyond the largest measured size in proportion
