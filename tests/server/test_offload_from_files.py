# SPDX-License-Identifier: Apache-2.0
"""``python -m conformance offload``: what two files of llama-bench show about the NPU, and what they cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.__main__ import main
from conformance.offload_rule import FASTER, SAME, Ruling, Speeds, against_cpu, against_npu

BASE: dict[str, Any] = {
    "backends": "RKNPU", "model_filename": "ornith-9b.gguf", "model_size": 9_500_000_000,
    "model_n_params": 8_950_000_000, "n_threads": 4, "type_k": "f16", "type_v": "f16",
    "n_prompt": 0, "n_gen": 0, "n_depth": 0,
}  # fmt: skip


def rows(backends: str, pp: float | None, tg: float | None, **more: Any) -> list[dict[str, Any]]:
    """A file's rows: pp512 and tg64, three samples each within 1 %."""
    found = []
    for name, rate in (("n_prompt", pp), ("n_gen", tg)):
        if rate is not None:
            samples = [0.995 * rate, rate, 1.005 * rate]
            size = {"n_prompt": 512} if name == "n_prompt" else {"n_gen": 64}
            found.append({**BASE, "backends": backends, **size, "avg_ts": rate, "samples_ts": samples, **more})
    return found


@pytest.fixture
def offload(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(old: Any, new: Any, cpu: Any = None, *options: str) -> tuple[int, str, str]:
        arguments = ["offload"]
        for name, content in (("old", old), ("new", new)):
            (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
            arguments.append(str(tmp_path / name))
        if cpu is not None:
            (tmp_path / "cpu").write_text(json.dumps(cpu))
            arguments += ["--cpu", str(tmp_path / "cpu")]
        code = main([*arguments, *options])
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def test_three_times_the_cpu_in_prefill_is_the_npu(offload: Any) -> None:
    code, said, _ = offload(rows("CPU", 12.0, 2.2), rows("RKNPU", 38.1, 2.35))
    assert code == 0
    assert said.startswith("NPU used: prefill pp512 38.1 against 12 t/s, 3.18 times")


def test_the_cpus_prefill_is_not_the_npu_whatever_the_build_names(offload: Any) -> None:
    code, said, _ = offload(rows("CPU", 12.0, 2.2), rows("RKNPU", 12.1, 2.2))
    assert code == 1
    assert said.startswith("NPU not used")


def test_decode_alone_never_shows_the_npu(offload: Any) -> None:
    for tg in (0.5, 2.2, 2.35, 9.0):
        code, said, _ = offload(rows("CPU", None, 2.2), rows("RKNPU", None, tg))
        assert code == 3
        assert "decode alone cannot show the NPU" in said


def test_a_decode_that_rose_does_not_make_up_for_a_prefill_that_did_not(offload: Any) -> None:
    code, said, _ = offload(rows("CPU", 12.0, 2.2), rows("RKNPU", 12.0, 4.4))
    assert code == 1
    assert "decode tg64" in said


def test_a_build_without_a_back_end_offloads_nothing(offload: Any) -> None:
    code, said, _ = offload(rows("RKNPU", 38.0, 2.3), rows("CPU", 38.0, 2.3))
    assert code == 1
    assert "no back end besides the CPU" in said


def test_device_none_is_the_cpu_though_the_build_names_the_npu(offload: Any) -> None:
    code, said, _ = offload(rows("RKNPU", 12.0, 2.2, devices="none"), rows("RKNPU", 38.0, 2.3))
    assert code == 0, said
    code, said, _ = offload(rows("CPU", 12.0, 2.2), rows("RKNPU", 12.0, 2.2, devices="none"))
    assert code == 1


def test_an_upgrade_that_keeps_prefill_lost_nothing_but_proves_nothing_alone(offload: Any) -> None:
    code, said, _ = offload(rows("RKNPU", 33.07, 2.3), rows("RKNPU", 31.11, 2.3))
    assert code == 3
    assert "nothing was lost" in said
    assert "--cpu" in said


def test_the_cpus_own_file_decides_an_upgrade(offload: Any) -> None:
    code, said, _ = offload(rows("RKNPU", 33.07, 2.3), rows("RKNPU", 31.11, 2.3), rows("CPU", 11.0, 2.2))
    assert code == 0
    code, said, _ = offload(rows("RKNPU", 11.2, 2.3), rows("RKNPU", 11.1, 2.3), rows("CPU", 11.0, 2.2))
    assert code == 1
    assert "prefill is the CPU's" in said


def test_an_upgrade_that_lost_prefill_and_kept_decode_lost_the_npu(offload: Any) -> None:
    code, said, _ = offload(rows("RKNPU", 33.07, 2.3), rows("RKNPU", 12.0, 2.2))
    assert code == 1
    assert "loss of the NPU" in said


def test_a_fall_of_both_can_be_a_clock(offload: Any) -> None:
    code, said, _ = offload(rows("RKNPU", 33.07, 2.3), rows("RKNPU", 12.0, 0.9))
    assert code == 3
    assert "a clock or a load" in said


def test_a_slower_prefill_than_the_cpus_is_not_decided(offload: Any) -> None:
    code, said, _ = offload(rows("CPU", 38.0, 2.3), rows("RKNPU", 5.7, 4.0))
    assert code == 3
    assert "slower than the CPU's" in said


def test_a_gain_within_reach_of_clocks_is_not_decided(offload: Any) -> None:
    code, said, _ = offload(rows("CPU", 12.0, 2.2), rows("RKNPU", 15.0, 2.3))
    assert code == 3
    assert "measure again" in said


def test_files_without_a_common_test_say_what_each_has(offload: Any) -> None:
    other = rows("RKNPU", 38.0, 2.3, model_size=5, model_filename="other.gguf")
    code, said, _ = offload(rows("CPU", 12.0, 2.2), other)
    assert code == 3
    assert "pp512 of ornith-9b.gguf" in said
    assert "pp512 of other.gguf" in said


def test_a_prompt_of_a_few_tokens_is_no_prefill(offload: Any) -> None:
    code, said, _ = offload(
        [{**BASE, "backends": "CPU", "n_prompt": 8, "avg_ts": 10.0}],
        [{**BASE, "backends": "RKNPU", "n_prompt": 8, "avg_ts": 40.0}],
    )
    assert code == 3
    assert "-p 512" in said


def test_other_threads_are_said(offload: Any) -> None:
    _, said, _ = offload(rows("CPU", 12.0, 2.2, n_threads=8), rows("RKNPU", 38.1, 2.35))
    assert "threads differ: 8 against 4" in said


def test_json_carries_the_same(offload: Any) -> None:
    code, said, _ = offload(rows("CPU", 12.0, 2.2), rows("RKNPU", 38.1, 2.35), None, "--json")
    told = json.loads(said)
    assert code == 0
    assert told["verdict"] == "NPU used"
    assert "3.18 times" in told["reason"]


@pytest.mark.parametrize(
    "text", ["", "not json", "[]", "{}", "[{}]", '[{"avg_ts": "x"}]', '{"format": "rknpu-kit"}', "\x1b[31m"]
)
def test_a_file_that_is_none_is_one_sentence_and_code_2(offload: Any, text: str) -> None:
    code, out, said = offload(text, rows("RKNPU", 38.1, 2.35))
    assert code == 2
    assert out == ""
    assert len(said.splitlines()) == 1
    assert "\x1b" not in said


def test_a_missing_file_is_one_sentence_and_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["offload", str(tmp_path / "a"), str(tmp_path / "b")]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_a_cpu_file_that_names_an_npu_is_refused(offload: Any) -> None:
    npu = rows("RKNPU", 31.0, 2.3)
    code, _, said = offload(npu, npu, npu)
    assert code == 2
    assert "not of the CPU alone" in said


RATES = st.lists(st.floats(0.01, 1e6), min_size=1, max_size=5).map(tuple)


@given(before=RATES, after=RATES, decode=st.none() | st.tuples(RATES, RATES))
@settings(max_examples=150, deadline=None)
def test_the_ruling_follows_the_samples_and_not_their_order(before: Any, after: Any, decode: Any) -> None:
    tests = [] if decode is None else [Speeds("decode tg64", *decode)]
    told = against_cpu([Speeds("prefill pp512", before, after)], tests)
    turned = against_cpu([Speeds("prefill pp512", before[::-1], after[::-1])], tests)
    assert told.ruling is turned.ruling
    if told.ruling is Ruling.USED:
        assert all(new >= FASTER * old * (1 - 1e-9) for new in after for old in before)
    if told.ruling is Ruling.NOT_USED:
        assert all(old / SAME * (1 - 1e-9) <= new <= SAME * old * (1 + 1e-9) for new in after for old in before)


@given(before=RATES, after=RATES)
@settings(max_examples=100, deadline=None)
def test_without_decode_a_fall_is_never_laid_to_the_npu(before: Any, after: Any) -> None:
    assert against_npu([Speeds("prefill pp512", before, after)], []).ruling is not Ruling.NOT_USED
