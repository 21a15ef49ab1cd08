# SPDX-License-Identifier: Apache-2.0
"""Files of llama-bench: json and jsonl read alike; anything else is refused in one sentence."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.llama_bench import MAX_BYTES, BenchRow, NotABench, read_llama_bench

RECORD: dict[str, Any] = {
    "build_commit": "abc", "backends": "RKNPU", "model_filename": "/home/someone/ornith-9b.gguf", "model_type": "x",
    "model_size": 9_500_000_000, "model_n_params": 8_950_000_000, "n_threads": 4, "cpu_mask": "0xf0", "n_ubatch": 512,
    "type_k": "f16", "type_v": "q8_0", "flash_attn": True, "n_prompt": 0, "n_gen": 128, "n_depth": 8192,
    "avg_ns": 46545454545, "avg_ts": 2.75, "stddev_ts": 0.0, "samples_ts": [2.75, 2.74, 2.76],
}  # fmt: skip


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "bench.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_json_and_json_lines_give_the_same_rows(tmp_path: Path) -> None:
    records = [RECORD, {**RECORD, "n_depth": 0, "avg_ts": 3.34, "samples_ts": None}]
    whole = read_llama_bench(written(tmp_path, json.dumps(records, indent=2)))
    lines = read_llama_bench(written(tmp_path, "\n".join(map(json.dumps, records)) + "\n"))
    assert whole == lines
    assert whole[0] == BenchRow(
        "ornith-9b.gguf", 9_500_000_000, 8_950_000_000, "RKNPU", 4, "0xf0", 512, "f16", "q8_0", True, 0, 128, 8192,
        2.75, (2.75, 2.74, 2.76),
    )  # fmt: skip
    assert whole[0].is_decode and whole[0].on_npu and not whole[0].cpu_only
    assert whole[1].samples_ts == ()


@pytest.mark.parametrize(("written_as", "meant"), [(0, False), (1, True), (False, False), (-1, None), ("auto", None)])
def test_flash_attention_is_read_in_every_way_it_was_written(tmp_path: Path, written_as: Any, meant: Any) -> None:
    rows = read_llama_bench(written(tmp_path, json.dumps([{**RECORD, "flash_attn": written_as}])))
    assert rows[0].flash_attn is meant


@pytest.mark.parametrize("backends", ["CPU", "BLAS,CPU", "", "RKNPU", "CUDA"])
def test_a_build_counts_as_cpu_only_if_nothing_else_ran(tmp_path: Path, backends: str) -> None:
    row = read_llama_bench(written(tmp_path, json.dumps([{**RECORD, "backends": backends}])))[0]
    assert row.cpu_only is (backends in ("CPU", "BLAS,CPU", ""))
    assert row.on_npu is (backends == "RKNPU")


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "null", "{}", "[1]", "[[]]", "not json", '{"a": 1}\n{', "\x00\x01", "| model | size |",
        json.dumps([{**RECORD, "avg_ts": "fast"}]),
        json.dumps([{**RECORD, "avg_ts": 0}]),
        json.dumps([{**RECORD, "avg_ts": -1.0}]),
        json.dumps([{**RECORD, "avg_ts": 1e300}]),
        '[{"avg_ts": NaN}]',
        json.dumps([{**RECORD, "n_gen": 1.5}]),
        json.dumps([{**RECORD, "n_gen": True}]),
        json.dumps([{**RECORD, "n_depth": 1 << 60}]),
        json.dumps([{**RECORD, "samples_ts": [1, "x"]}]),
        json.dumps([{**RECORD, "samples_ts": [1.0] * 5000}]),
        json.dumps([{**RECORD, "flash_attn": "maybe"}]),
        json.dumps([{**RECORD, "backends": 7}]),
        "[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_llama_bench_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(NotABench) as caught:
        read_llama_bench(path)
    assert str(path) in str(caught.value)


def test_files_that_cannot_be_read_or_are_too_large_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotABench, match="cannot read"):
        read_llama_bench(tmp_path / "absent.json")
    with pytest.raises(NotABench, match="cannot read"):
        read_llama_bench(tmp_path)
    with pytest.raises(NotABench, match="larger than"):
        read_llama_bench(written(tmp_path, b" " * (MAX_BYTES + 1)))
    with pytest.raises(NotABench, match="no text"):
        read_llama_bench(written(tmp_path, b"\xff\xfe\x00"))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_mutated_files_are_read_or_refused_and_never_anything_else(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    rng = random.Random(seed)
    data = bytearray(json.dumps([RECORD, RECORD]).encode())
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(data))
        data[at : at + rng.randint(0, 3)] = bytes(rng.choices(b'{}[]",:0-9eE.\x00\x1bNaN\xff', k=rng.randint(0, 4)))
    path = tmp_path_factory.getbasetemp() / "mutated.json"
    path.write_bytes(data)
    try:
        rows = read_llama_bench(path)
    except NotABench as error:
        assert len(str(error)) < 1000
    else:
        for row in rows:
            assert 0 < row.avg_ts < 1e9
            assert row.label.isascii() and row.label.isprintable()
            assert row.model.isascii() and row.model.isprintable()


def test_names_of_a_stranger_are_shown_inert(tmp_path: Path) -> None:
    hostile = {**RECORD, "model_filename": "a\x1b[31m\n.gguf", "backends": "\x1b]0;x\x07RKNPU"}
    row = read_llama_bench(written(tmp_path, json.dumps([hostile])))[0]
    assert "\x1b" not in row.model + row.label + row.backends
