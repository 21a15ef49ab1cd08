# SPDX-License-Identifier: Apache-2.0
"""Pipelines, presets, cuts, routes and sign vectors."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.backends import BackendError, make_backend
from reference_engine.backends.pipeline import Pipeline, PipelineError
from reference_engine.backends.presets import PRESETS, parse_pipeline, route_tensor
from reference_engine.backends.segments import k_segments, m_bucket, n_segments
from reference_engine.backends.signs import HashedSigns, SignsError, SignsFile
from tests.linear.crafted_tensor import float_tensor, random_tensor


def test_known_cuts() -> None:
    assert n_segments(4096, 3, 32) == ((0, 1376), (1376, 2752), (2752, 4096))
    assert k_segments(15360, 8192, 32) == ((0, 8192), (8192, 15360))
    assert k_segments(10240, 8192, 32) == ((0, 8192), (8192, 10240))
    assert k_segments(8192, 8192, 32) == ((0, 8192),)
    assert k_segments(15360, 0, 32) == ((0, 15360),)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 5000), st.integers(1, 8), st.sampled_from([1, 8, 16, 32, 64]))
def test_columns_are_covered_once_in_order_and_dealt_evenly(n: int, cores: int, align: int) -> None:
    parts = n_segments(n, cores, align)
    assert [start for start, _ in parts] == [0, *(end for _, end in parts[:-1])]
    assert parts[-1][1] == n
    assert len(parts) <= cores
    assert all(start % align == 0 and end > start for start, end in parts)
    units = [-(-(end - start) // align) for start, end in parts]
    assert max(units) - min(units) <= 1
    assert units == sorted(units, reverse=True)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 40000), st.integers(0, 9000), st.sampled_from([1, 16, 32]))
def test_k_is_covered_once_in_aligned_steps_below_the_limit(k: int, limit: int, align: int) -> None:
    parts = k_segments(k, limit, align)
    assert parts[0][0] == 0
    assert parts[-1][1] == k
    assert all(a[1] == b[0] for a, b in itertools.pairwise(parts))
    if limit >= align:
        assert all(end - start <= limit for start, end in parts)
        assert all((end - start) % align == 0 for start, end in parts[:-1])


def test_rows_of_a_context() -> None:
    assert [m_bucket(m, "pow2") for m in (1, 2, 3, 129)] == [1, 2, 4, 256]
    assert [m_bucket(m, "pow2-128") for m in (1, 3, 128, 129, 300)] == [1, 4, 128, 256, 384]
    assert [m_bucket(m, "tile-256") for m in (1, 2, 257)] == [1, 256, 512]
    assert m_bucket(77, "none") == 77


def test_every_preset_has_its_name_and_parses_to_itself() -> None:
    for name, preset in PRESETS.items():
        assert parse_pipeline(name) == preset
        assert preset.name == name


def test_settings_are_read() -> None:
    p = parse_pipeline("w8a8-segment, cores=1, fma=off,clamp=off,k_limit=4096,a_clip=0.95")
    assert (p.cores, p.fma, p.clamp, p.k_limit, p.a_clip, p.weight_scale) == (1, False, False, 4096, 0.95, "segment")
    assert p.name.startswith("w8a8-segment,cores=1")
    assert parse_pipeline("w8a8-per-channel,activation=int4").n_align == 64


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("w9", "no preset 'w9'; there are w8a8-per-channel"),
        ("w4a4,cores", "'cores' is not key=value"),
        ("w4a4,core=1", "no parameter 'core'; there are a_clip"),
        ("w4a4,cores=0", "cores is 0; it may be 1 to 8"),
        ("w4a4,cores=x", "cores is 'x'; it has to be a number"),
        ("w4a4,fma=maybe", "fma is 'maybe'; it has to be on or off"),
        ("w4a4,hadamard=full", "hadamard is 'full'; it may be none, padded, block"),
        ("w4a4,a_clip=nan", "a_clip is nan; it may be 0.01 to 2"),
        ("w16a16,weight_scale=rank-one", "no meaning for fp16"),
    ],
)
def test_a_wrong_text_is_refused_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(PipelineError, match=said.replace("'", ".")):
        parse_pipeline(text)
    with pytest.raises(BackendError, match="npu:" + text.split(",", maxsplit=1)[0]):
        make_backend("npu:" + text, kernels=None)


@pytest.mark.parametrize("text", ["", "flat", "float:x", "npu"[:2]])
def test_no_back_end_of_that_name(text: str) -> None:
    with pytest.raises(BackendError, match="write float, npu:PRESET or device:PRESET"):
        make_backend(text, kernels=None)


def test_routes_by_type_follow_the_order_of_first_sight_and_the_alignment() -> None:
    p = PRESETS["rk-llama-marfrit"]
    names = [getattr(route_tensor(p, "Q6_K", (256, 64), i), "name", None) for i in range(3)]
    assert names == ["w8a8-segment", "w4a4-hadamard-segment", "w8a8-segment"]
    assert route_tensor(p, "Q4_1", (256, 64), 0) is None
    assert route_tensor(p, "Q8_0", (250, 64), 0) is None
    assert route_tensor(p, "Q8_0", (256, 40), 0) is None
    carried = route_tensor(parse_pipeline("rk-llama-marfrit,cores=1,fma=off"), "Q8_0", (256, 64), 0)
    assert carried is not None
    assert (carried.cores, carried.fma, carried.weight_scale) == (1, False, "segment")


def test_a_weight_that_is_not_routed_runs_in_float() -> None:
    backend = make_backend("npu:rk-llama-invisiofficial", kernels=None)
    rng = np.random.default_rng(0)
    tensors = [random_tensor(rng, kind, 256, 64, name=kind) for kind in ("Q4_1", "Q6_K", "Q8_0")]
    assert [backend.linear(tensor).where for tensor in tensors] == ["float", "npu", "npu"]
    assert list(backend.counters) == ["Q6_K", "Q8_0"]


def test_hashed_signs_are_what_their_docstring_says() -> None:
    signs = HashedSigns()("blk.0.ffn_down.weight", 300)
    for i in (0, 7, 8, 255, 256, 299):
        digest = hashlib.sha256(b"blk.0.ffn_down.weight\0" + (i // 256).to_bytes(4, "little")).digest()
        assert signs[i] == (-1 if digest[i % 256 // 8] >> i % 8 & 1 else 1)
    assert np.array_equal(HashedSigns()("blk.0.ffn_down.weight", 100), signs[:100])


def test_signs_from_a_file_are_used_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "signs.npz"
    w, x = np.random.default_rng(0).standard_normal((2, 4, 32)).astype(np.float32)
    tensor = float_tensor(w, "a")
    np.savez(path, a=HashedSigns()("a", 32), b=np.zeros(32), c=np.ones(31))
    same = make_backend(f"npu:w8a8-hadamard,signs={path}", kernels=None).linear(tensor)(x)
    assert np.array_equal(same, make_backend("npu:w8a8-hadamard", kernels=None).linear(tensor)(x))
    np.savez(path, a=np.ones(32), b=np.zeros(32), c=np.ones(31))
    assert not np.array_equal(same, make_backend(f"npu:w8a8-hadamard,signs={path}", kernels=None).linear(tensor)(x))
    for name, said in (("b", "not 32 values of"), ("c", "not 32 values of"), ("d", "gives no sign vector for d")):
        with pytest.raises(SignsError, match=said):
            SignsFile(path)(name, 32)
    (tmp_path / "text").write_text("no archive")
    for missing in ("none.npz", "text"):
        with pytest.raises(SignsError, match="gives no sign vector"):
            SignsFile(tmp_path / missing)("a", 32)


def test_core_count_changes_numbers_where_the_facts_say_so() -> None:
    """One scale per core slice: the active cores change the result. One per channel: they do not."""
    rng = np.random.default_rng(3)
    tensor, x = float_tensor(rng.standard_t(3, (192, 64)).astype(np.float32)), rng.standard_normal((4, 64)).astype("f4")

    def run(preset: str, cores: int) -> bytes:
        y: bytes = make_backend(f"npu:{preset},cores={cores}", kernels=None).linear(tensor)(x).tobytes()
        return y

    for preset in ("w8a8-segment", "w8a8-rank-one", "w4a4-hadamard-segment"):
        assert run(preset, 1) != run(preset, 3)
    for preset in ("w8a8-per-channel", "w8a8-hadamard", "w4a4", "w16a16", "w8a8-per-tensor"):
        assert run(preset, 1) == run(preset, 3)


def test_fma_changes_about_a_third_of_the_outputs_of_two_segments_and_none_of_one() -> None:
    rng = np.random.default_rng(4)
    tensor = float_tensor(rng.standard_normal((256, 256)).astype(np.float32))
    x = rng.standard_normal((64, 256)).astype(np.float32)

    def run(text: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return make_backend(f"npu:w8a8-per-channel,{text}", kernels=None).linear(tensor)(x)

    share = np.mean(run("k_limit=128") != run("k_limit=128,fma=off"))
    assert 0.2 < share < 0.45
    assert np.array_equal(run("k_limit=0"), run("k_limit=0,fma=off"))


def test_wrapping_and_saturating_int16_differ_only_where_a_sum_leaves_it() -> None:
    w, x = np.ones((1, 700), np.float32), np.ones((1, 700), np.float32)

    def run(k: int, overflow: str) -> float:
        backend = make_backend(f"npu:w4a4,int16_overflow={overflow}", kernels=None)
        return float(backend.linear(float_tensor(w[:, :k]))(np.ascontiguousarray(x[:, :k]))[0, 0])

    # 49 * 668 = 32732 fits; 49 * 669 = 32781 does not
    assert run(668, "wrap") == run(668, "saturate")
    assert run(669, "wrap") < 0 < run(669, "saturate")


def test_pipelines_refuse_what_they_cannot_be() -> None:
    with pytest.raises(PipelineError, match="activation is 'int2'"):
        Pipeline("x", activation="int2")
