# SPDX-License-Identifier: Apache-2.0
"""F32 weights are known from a header named by --model, else from the service's own word."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from conformance.bench import CannotOpen
from conformance.server.bench import open_server
from tests.gguf.crafted_gguf import gguf, key_text, tensor
from tests.server.asked import failed, outcome
from tests.server.fake_server import serving

F32, F16 = 0, 1
REQUEST = {"check": "greedy_is_repeatable", "level": "quick", "seed": 1, "deadline_s": 30.0}


def written(path: Path, kind: int, n_bytes: int) -> Path:
    keys = [key_text("general.architecture", "llama")]
    path.write_bytes(gguf(keys, [tensor("output.weight", (32, 2), kind, 0)], struct.pack("<64f", *range(64))[:n_bytes]))
    return path


def test_the_header_is_believed_before_the_service(tmp_path: Path) -> None:
    exact = written(tmp_path / "f32.gguf", F32, 256)
    half = written(tmp_path / "f16.gguf", F16, 128)
    with serving(ftype="Q4_1") as server:
        assert open_server({**REQUEST, "server": server.url, "model": str(exact)}).f32 is True
        assert open_server({**REQUEST, "server": server.url, "model": str(half)}).f32 is False
        assert open_server({**REQUEST, "server": server.url, "model": None}).f32 is False
    with serving(ftype="all F32") as server:
        assert open_server({**REQUEST, "server": server.url, "model": str(half)}).f32 is False
        assert open_server({**REQUEST, "server": server.url, "model": None}).f32 is True
    with serving(status={"/props": 404}) as server:
        assert open_server({**REQUEST, "server": server.url, "model": None}).f32 is None


def test_a_header_of_f32_demands_more_of_a_service_that_does_not_tell(tmp_path: Path) -> None:
    model = str(written(tmp_path / "f32.gguf", F32, 256))
    with serving(draft=(9, 5), gap=0.9, flip_at=6) as on, serving(gap=0.9) as off:
        reason = failed(outcome("speculation_changes_nothing", on.url, off.url, model=model))
    assert "on F32 weights" in reason


def test_a_file_that_is_no_model_could_not_be_judged_by(tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF\x03")
    with serving() as server, pytest.raises(CannotOpen, match="no readable GGUF"):
        open_server({**REQUEST, "server": server.url, "model": str(bad)})


@pytest.mark.parametrize(("said", "known"), [("f32", True), ("f16", False), (None, None)])
def test_the_type_of_the_cache_is_what_the_caller_says(said: str | None, known: bool | None) -> None:
    with serving() as server:
        assert open_server({**REQUEST, "server": server.url, "server_kv": said}).kv_f32 is known
