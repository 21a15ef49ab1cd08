# SPDX-License-Identifier: Apache-2.0
"""Writes a twin's tensors and keys as a GGUF file: matrices in half floats, everything else in float32."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Union

import gguf
import numpy as np
import torch

from tools.tiny_models.vocabulary import END, PRE, Vocabulary

Value = Union[int, float, str, bool, list[int], list[bool]]

KEEP_F32 = ("conv1d", "ssm_a", "rope_freqs")
"""Tensors that llama.cpp wants in float32 though they are matrices, or that lose too much in half floats."""


def write_gguf(
    path: Path,
    architecture: str,
    *,
    keys: Mapping[str, Value],
    tensors: Mapping[str, torch.Tensor],
    vocabulary: Vocabulary,
    about: Mapping[str, str],
) -> None:
    """``keys`` without the ``<architecture>.`` before them; the same input gives the same bytes."""
    writer = gguf.GGUFWriter(str(path), architecture)
    for name, text in about.items():
        writer.add_string(f"general.{name}", text)
    for suffix, value in keys.items():
        _add(writer, f"{architecture}.{suffix}", value)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(PRE)
    writer.add_token_list(list(vocabulary.tokens))
    writer.add_token_types([3 if token == END else 1 for token in vocabulary.tokens])
    writer.add_token_merges(list(vocabulary.merges))
    writer.add_bos_token_id(vocabulary.end_id)
    writer.add_eos_token_id(vocabulary.end_id)
    writer.add_add_bos_token(False)
    for name, tensor in tensors.items():
        values = tensor.detach().float().numpy()
        half = values.ndim == 2 and not any(part in name for part in KEEP_F32)
        writer.add_tensor(name, np.ascontiguousarray(values.astype(np.float16 if half else np.float32)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add(writer: gguf.GGUFWriter, key: str, value: Value) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)
