# SPDX-License-Identifier: Apache-2.0
"""The widened target of the bench gives the logits of the model it was made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.wide_ffn import widen
from reference_engine.backends import make_backend
from reference_engine.model import Model
from reference_engine.tiny import tiny_model

TOKENS = [5, 9, 20, 7, 3, 11, 2, 30, 14, 8]


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-gemma4"])
def test_zeros_between_up_and_down_change_no_logit(name: str, tmp_path: Path) -> None:
    path = tmp_path / "wide.gguf"
    widen(tiny_model(name), path, 5)
    rows, widths = [], []
    for file in (tiny_model(name), path):
        with Model.load(file, make_backend("float", threads=1), n_ctx=64) as model:
            rows.append(model.forward(TOKENS, model.new_cache(), rows="all").logits)
            widths.append(model.hparams.layers("feed_forward_length")[0])
    assert widths[1] == 5 * widths[0]
    assert rows[0].tobytes() == rows[1].tobytes()
