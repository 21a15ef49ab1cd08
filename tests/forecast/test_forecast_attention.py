# SPDX-License-Identifier: Apache-2.0
"""Keys and values by layer: windows, layers that share, layers with a recurrent state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.forecast_cases.header import Dimensions, write_header
from reference_engine.gguf_file import GgufFile, open_gguf
from reference_engine.gguf_hparams import Hparams
from reports.forecast.document import Asked, forecast
from reports.forecast.passes import attention_products
from reports.forecast.pipelines import forecast_pipelines
from reports.forecast.work import AttentionLayer, attention_of
from tests.forecast import made_reports as made
from tests.gguf import crafted_gguf as craft


def test_layers_with_a_window_keep_the_window_and_one_batch(tmp_path: Path) -> None:
    shape = Dimensions(
        layers=12, embd=512, ff=1024, heads=8, kv_heads=2, head_dim=64, vocab=1024, tied=True, window=1024
    )
    with open_gguf(write_header(tmp_path / "windows.gguf", "windows", shape), header_only=True) as model:
        document: Any = forecast(made.report(), model, Asked(forecast_pipelines("w8a8")))
    row = 2 * 2 * 64 * 2
    assert document["kv_bytes"]["f16"]["32768"] == row * (10 * (1024 + 512) + 2 * 32768)


def gemma4(n_layer: int, shared: int) -> Hparams:
    values: dict[str, Any] = {
        "block_count": n_layer, "attention.head_count": (8,) * n_layer, "attention.head_count_kv": (2,) * n_layer,
        "attention.key_length": 512, "attention.value_length": 512, "attention.key_length_swa": 256,
        "attention.value_length_swa": 256, "attention.sliding_window": 512,
        "attention.sliding_window_pattern": tuple((i + 1) % 5 != 0 for i in range(n_layer)),
        "attention.shared_kv_layers": shared,
    }  # fmt: skip
    return Hparams("gemma4", values, 1000)


def model_with(tmp_path: Path, *names: str) -> GgufFile:
    path = tmp_path / "named.gguf"
    size = 64 * 64 // 32 * 34
    size += -size % 32
    rows = [craft.tensor(name, (64, 64), craft.GGML_Q8_0, i * size) for i, name in enumerate(names)]
    path.write_bytes(craft.gguf([craft.key_text("general.architecture", "x")], rows))
    return open_gguf(path, header_only=True)


def test_layers_that_read_another_layers_keys_have_none_of_their_own_but_attend(tmp_path: Path) -> None:
    with model_with(tmp_path, "blk.0.attn_q.weight") as model:
        layers = attention_of(model, gemma4(10, 4))
    assert layers is not None
    assert [layer.shared for layer in layers] == [False] * 6 + [True] * 4
    assert [layer.k_dim for layer in layers[:5]] == [256, 256, 256, 256, 512]
    assert [layer.window for layer in layers[:5]] == [512, 512, 512, 512, 0]


def test_layers_with_a_recurrent_state_keep_no_keys(tmp_path: Path) -> None:
    with model_with(tmp_path, "blk.0.ssm_out.weight", "blk.1.ssm_out.weight") as model:
        layers = attention_of(model, gemma4(4, 0))
    assert layers is not None
    assert len(layers) == 2


def test_a_batch_multiplies_with_all_cells_up_to_its_end_or_with_its_window() -> None:
    whole, windowed = AttentionLayer(4, 1, 64, 64), AttentionLayer(4, 1, 64, 64, 100)
    assert attention_products([whole], 10, 1000) == 10 * 4 * 128 * 1010
    assert attention_products([windowed], 10, 1000) == 10 * 4 * 128 * 110
    assert attention_products([windowed], 1, 20) == 4 * 128 * 21
