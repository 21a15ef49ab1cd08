# SPDX-License-Identifier: Apache-2.0
"""Weights as llama-quantize dequantises them, bit for bit: what makes the F32 files of the peers this very model."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from reference_engine.backends import dequantize_rows
from reference_engine.gguf_file import open_gguf
from reference_engine.kernels.library import load_library
from tests.goldens.golden_file import read_golden
from tests.real_model import need_model

pytestmark = pytest.mark.model

GOLDENS = {name: read_golden(f"{name}.json") for name in ("smollm2", "gemma3")}
CASES = [(name, tensor) for name, golden in GOLDENS.items() for tensor in golden["weights"]]


def test_the_goldens_hold_every_quantised_type_of_both_files() -> None:
    types = {name: {weight["type"] for weight in golden["weights"].values()} for name, golden in GOLDENS.items()}
    assert types == {"smollm2": {"Q4_1", "Q8_0"}, "gemma3": {"Q4_K", "Q5_0", "Q6_K", "Q8_0"}}


@pytest.mark.parametrize("with_kernels", [True, False], ids=["C", "numpy"])
@pytest.mark.parametrize(("name", "tensor"), CASES)
def test_rows_have_the_bits_of_the_converted_file(name: str, tensor: str, with_kernels: bool) -> None:
    path = need_model(name)
    kernels = load_library() if with_kernels else None
    if with_kernels and kernels is None:
        pytest.skip("the kernels are not built")
    golden: dict[str, Any] = GOLDENS[name]["weights"][tensor]
    with open_gguf(path) as file:
        rows = dequantize_rows(file.tensors[tensor], range(golden["rows"]), kernels)
    assert hashlib.sha256(rows.tobytes()).hexdigest() == golden["sha256"]
