# SPDX-License-Identifier: Apache-2.0
"""What goes to the NPU: held against the campaign's log, against arithmetic done by hand, and against properties."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.__main__ import main
from reference_engine.backends.presets import PRESETS
from reference_engine.gguf_file import open_gguf
from reference_engine.gguf_hparams import load_hparams
from reference_engine.npu_plan import DOMAIN_BYTES, NpuPlan, PlanPipeline, plan
from reference_engine.npu_segments import bucket_rows, k_segments, n_segments, next_pow2
from reference_engine.npu_soc import npu_soc
from tests.device.headers import BF16, Q4_0, Q6_K, Q8_0, Wanted, gemma4_12b, header
from tests.gguf import crafted_gguf as craft
from tests.gguf import tiny_models

ROOT = Path(__file__).resolve().parents[2]
SOFTCAP = craft.key_f32("gemma4.final_logit_softcapping", 30.0)


@pytest.fixture
def campaign(tmp_path: Path) -> NpuPlan:
    return planned(tmp_path, header("gemma4", dict(gemma4_12b()), SOFTCAP), Wanted(weight_scale="segment"))


def planned(folder: Path, raw: bytes, pipeline: PlanPipeline | str, soc: str = "rk3588", **more: int) -> NpuPlan:
    path = folder / "model.gguf"
    path.write_bytes(raw)
    with open_gguf(path, header_only=True) as model:
        return plan(model, None, pipeline, soc, **more)


def test_graph_splits_are_those_of_the_campaigns_log(campaign: NpuPlan) -> None:
    """gemma-4-12b in rk-llama.cpp: ``graph splits = 563``; 10771 matmuls in 9200 calls."""
    assert campaign.graph_splits == 563
    assert len(campaign.routed) / campaign.runs == pytest.approx(10771 / 9200, abs=0.002)


def test_reuse_within_a_call_is_what_the_campaign_measured(campaign: NpuPlan) -> None:
    """12.3 % and 12.5 % of look-ups hit there (66 of 535, 1538 of 12341); each K segment is looked up by itself."""
    assert campaign.reuse.within_call == pytest.approx(0.125, abs=0.004)
    assert campaign.reuse.by_input > campaign.reuse.within_call


def test_the_down_projection_is_cut_at_the_k_limit(campaign: NpuPlan) -> None:
    down = next(tensor for tensor in campaign.tensors if tensor.name == "blk.0.ffn_down.weight")
    assert down.k_segments == ((0, 8192), (8192, 7168))
    assert down.n_segments == ((0, 0, 1280), (1, 1280, 1280), (2, 2560, 1280))
    assert down.weight_bytes == 15360 * 3840


def test_domains_are_filled_first_fit_below_their_ceiling(campaign: NpuPlan) -> None:
    assert sum(campaign.domains) == campaign.weight_bytes == sum(tensor.weight_bytes for tensor in campaign.routed)
    assert all(0 < size <= DOMAIN_BYTES for size in campaign.domains)
    assert len(campaign.domains) == 6  # 11.8e9 weights of one byte
    for tensor in campaign.routed:
        assert tensor.domain is not None


def test_a_weight_that_no_domain_holds_stays_on_the_cpu(tmp_path: Path) -> None:
    raw = header("x", {"blk.0.ffn_up.weight": ((64, 64), Q8_0), "blk.0.ffn_down.weight": ((64, 128), Q8_0)})
    found = planned(tmp_path, raw, Wanted(), domain_bytes=5000, domains=1)
    assert [tensor.routed for tensor in found.tensors] == [True, False]
    assert "IOMMU" in str(found.tensors[1].reason)
    assert found.weight_bytes == 4096


@pytest.mark.parametrize(
    ("dims", "kind", "reason"),
    [
        ((64, 48), Q8_0, "N 48 is no multiple of 32"),
        ((48, 64), 1, "K 48 is no multiple of 32"),
        ((64, 64, 4), Q8_0, "3 dimensions"),
        ((64, 64), BF16, "type BF16 has no pipeline in rk-llama-marfrit"),
        ((64, 64), Q8_0, None),
        ((64, 64), Q4_0, None),
    ],
)
def test_every_refusal_says_why(tmp_path: Path, dims: tuple[int, ...], kind: int, reason: str | None) -> None:
    found = planned(tmp_path, header("x", {"blk.3.ffn_up.weight": (dims, kind)}), PRESETS["rk-llama-marfrit"])
    (tensor,) = found.tensors
    assert (tensor.reason is None) == (reason is None)
    assert reason is None or reason in str(tensor.reason)


def test_a_type_with_two_pipelines_hands_them_out_in_turn(tmp_path: Path) -> None:
    """Q6_K in marfrit's fork: W8A8, then W4A4 (its default maps); buffers follow."""
    raw = header("x", {f"blk.{i}.ffn_up.weight": ((512, 64), Q6_K) for i in range(3)})
    found = planned(tmp_path, raw, "rk-llama-marfrit")
    assert [tensor.pipeline.activation for tensor in found.tensors] == ["int8", "int4", "int8"]
    assert [tensor.weight_bytes for tensor in found.tensors] == [512 * 64, 512 * 64 // 2, 512 * 64]
    assert found.a_bytes(1) == 512 + 512 // 2


def test_bf16_goes_to_the_npu_where_the_route_is_all(tmp_path: Path) -> None:
    found = planned(tmp_path, header("x", {"blk.3.ffn_up.weight": ((64, 64), BF16)}), Wanted(route="all"))
    assert found.tensors[0].routed


def test_a_soc_without_the_type_takes_nothing_and_says_so(tmp_path: Path) -> None:
    raw = header("x", {"blk.0.ffn_up.weight": ((64, 64), Q8_0)})
    found = planned(tmp_path, raw, Wanted(activation="int4"), "rk3568")
    assert found.tensors[0].reason == "rk3568 has no int4 matmul"
    assert (found.weight_bytes, found.domains, found.graph_splits, found.a_bytes(4), found.c_bytes(4)) == (
        0,
        (),
        1,
        0,
        0,
    )


def test_the_soc_limits_cores_and_k(tmp_path: Path) -> None:
    raw = header("x", {"blk.0.ffn_down.weight": ((8192, 256), Q8_0)})
    (tensor,) = planned(tmp_path, raw, Wanted(), "rk3576").tensors
    assert tensor.k_segments == ((0, 4096), (4096, 4096))
    assert tensor.n_segments == ((0, 0, 128), (1, 128, 128))


def test_a_padded_transform_makes_k_a_power_of_two(tmp_path: Path) -> None:
    raw = header("x", {"blk.0.ffn_down.weight": ((576, 64), Q8_0)})
    (tensor,) = planned(tmp_path, raw, Wanted(activation="int4", hadamard="padded")).tensors
    assert (tensor.K_op, tensor.weight_bytes) == (1024, 1024 * 64 // 2)
    assert planned(tmp_path, raw, Wanted(hadamard="padded")).reuse.reason is not None


def test_buffers_by_hand(tmp_path: Path) -> None:
    """Two weights of one K share one A; C differs by N segment and core."""
    raw = header("x", {"blk.0.ffn_gate.weight": ((64, 96), Q8_0), "blk.0.ffn_up.weight": ((64, 64), Q8_0)})
    found = planned(tmp_path, raw, Wanted(cores=2))
    assert [tensor.n_segments for tensor in found.tensors] == [((0, 0, 64), (1, 64, 32)), ((0, 0, 32), (1, 32, 32))]
    assert found.a_bytes(5) == 8 * 64
    assert found.c_bytes(5) == 8 * 4 * (64 + 32 + 32)  # core 0: 64 and 32; core 1: 32 for both
    assert found.contexts([1, 5]) == 8
    assert found.descriptors([1]) == 2 + 4 + 1 + 3
    rank_one = planned(tmp_path, raw, Wanted(cores=2, weight_scale="rank-one"))
    assert rank_one.a_bytes(1) == 64 * 3  # one for each first column that occurs: 0, 64, 32
    assert rank_one.reuse.reason is not None


def test_the_head_is_computed_for_the_last_row_only(tmp_path: Path) -> None:
    raw = header("x", {"output.weight": ((64, 6400), Q8_0), "blk.0.ffn_up.weight": ((64, 96), Q8_0)})
    found = planned(tmp_path, raw, Wanted(cores=1))
    assert found.c_bytes(512) == 512 * 4 * 96 + 4 * 6400
    assert found.c_bytes(512, head_rows=512) == 512 * 4 * (96 + 6400)
    assert found.contexts([1, 512]) == 3
    assert found.contexts([1, 512], head_rows=512) == 4


def test_a_bias_between_gate_and_up_parts_them(tmp_path: Path) -> None:
    weights = {f"blk.0.ffn_{name}.weight": ((64, 64), Q8_0) for name in ("gate", "up")}
    assert planned(tmp_path, header("x", weights), Wanted()).graph_splits == 3
    biased = planned(tmp_path, header("x", {**weights, "blk.0.ffn_gate.bias": ((64,), 0)}), Wanted())
    assert biased.graph_splits == 5


@pytest.mark.parametrize("architecture", sorted(tiny_models.HEAD))
def test_every_matrix_of_every_architecture_is_planned(tmp_path: Path, architecture: str) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(tiny_models.model(architecture, craft.GGML_Q8_0))
    with open_gguf(path) as model:
        found = plan(model, load_hparams(model), Wanted())
    names = {tensor.name for tensor in found.tensors}
    matrices = {n for n, dims in tiny_models.tensors_of(architecture).items() if len(dims) == 2}
    looked_up = {n for n in matrices if n.endswith(("per_layer_token_embd.weight", "ssm_conv1d.weight"))}
    assert names == matrices - looked_up
    # The head is token_embd, 8 rows: too few for the NPU.
    assert "token_embd.weight" in [t.name for t in found.tensors if not t.routed]


@given(st.integers(1, 40000), st.integers(0, 9000), st.sampled_from([16, 32]))
@settings(max_examples=200, deadline=None)
def test_k_segments_tile_k(K: int, limit: int, align: int) -> None:
    found = k_segments(K, limit, align)
    assert [i for start, end in found for i in (start, end)][1:-1:2] == [start for start, _ in found][1:]
    assert (found[0][0], found[-1][1]) == (0, K)
    if limit >= align:
        assert all(end - start <= limit for start, end in found)
        assert all((end - start) % align == 0 for start, end in found[:-1])


@given(st.integers(1, 500), st.integers(1, 5), st.sampled_from([8, 32, 64]))
@settings(max_examples=200, deadline=None)
def test_n_segments_tile_n_and_differ_by_one_unit_at_most(units: int, cores: int, align: int) -> None:
    found = n_segments(units * align, cores, align)
    sizes = [(end - start) // align for start, end in found]
    assert sum(sizes) == units
    assert len(sizes) == min(cores, units)
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)
    assert [start for start, _ in found] == [align * sum(sizes[:i]) for i in range(len(found))]


def test_published_n_segments() -> None:
    assert [end - start for start, end in n_segments(4096, 3, 32)] == [1376, 1376, 1344]


@given(st.integers(1, 5000), st.sampled_from(["none", "pow2", "pow2-128", "tile-256"]))
@settings(max_examples=200, deadline=None)
def test_buckets_cover_all_rows(M: int, mode: str) -> None:
    runs = bucket_rows(M, mode)
    assert sum(runs) >= M
    assert len(set(runs)) == 1
    most = {"none": M, "pow2": 2 * M - 1, "pow2-128": max(M + 127, 128), "tile-256": M + 255}[mode]
    assert sum(runs) <= most
    assert next_pow2(M) >= M > next_pow2(M) // 2


def test_wrong_arguments_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"rk9999.*rk3588"):
        npu_soc("rk9999")
    assert [npu_soc(name).name for name in ("RK3588S", "rk3588s2", "RK3576J", "rk3562")] == [
        "rk3588",
        "rk3588",
        "rk3576",
        "rk3562",
    ]


def test_m_bucketing_changes_buffers_only(tmp_path: Path) -> None:
    raw = header("x", {"blk.0.ffn_up.weight": ((64, 96), Q8_0)})
    plain, padded = (planned(tmp_path, raw, replace(Wanted(), m_bucket=mode)) for mode in ("none", "pow2"))
    assert [t.n_segments for t in plain.tensors] == [t.n_segments for t in padded.tensors]
    assert (plain.a_bytes(5), padded.a_bytes(5)) == (5 * 64, 8 * 64)


def test_planning_does_without_numpy(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(header("x", {"blk.0.ffn_up.weight": ((64, 96), Q8_0)}))
    program = (
        "import sys; sys.modules['numpy'] = None\n"
        "from pathlib import Path\n"
        "from reference_engine.gguf_file import open_gguf\n"
        "from reference_engine.npu_plan import plan\n"
        "from tests.device.headers import Wanted\n"
        "with open_gguf(Path(sys.argv[1]), header_only=True) as model:\n"
        "    print(plan(model, None, Wanted()).weight_bytes)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, path], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{64 * 96}\n", "")


def test_inspect_tells_what_goes_to_the_npu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(tiny_models.model("llama", craft.GGML_Q8_0))
    assert main(["inspect", str(path), "--json", "--pipeline", "w8a8-segment,cores=2", "--soc", "rk3576"]) == 0
    section = json.loads(capsys.readouterr().out)["npu"]
    (entry,) = section["pipelines"]
    assert (section["soc"], entry["cores"], entry["k_limit"], entry["routed"]) == ("rk3576", 2, 4096, 14)
    assert entry["not_routed"] == [{"reason": "N 8 is no multiple of 32", "count": 1, "first": ["token_embd.weight"]}]
    assert entry["weight_bytes"] == 2 * (64 * (64 + 32 + 32 + 64) + 3 * 64 * 96)
    assert entry["graph_splits"] == 2 * 2 * 6 + 1
    assert main(["inspect", str(path)]) == 0
    page = capsys.readouterr().out
    assert "On the NPU of rk3588" in page
    assert "N 8 is no multiple of 32: token_embd.weight" in page


def test_inspect_refuses_a_pipeline_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(tiny_models.model("llama", craft.GGML_Q8_0))
    assert main(["inspect", str(path), "--pipeline", "w9a9"]) == 2
    assert "no preset 'w9a9'" in capsys.readouterr().err


def test_inspect_without_numpy_tells_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(tiny_models.model("llama", craft.GGML_Q8_0))
    program = (
        "import sys; sys.modules['numpy'] = None\n"
        "from reference_engine.__main__ import main\n"
        "sys.exit(main(['inspect', sys.argv[1]]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, path], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Nothing wrong found" in done.stdout
    assert "the table of pipelines cannot be read" in done.stdout
