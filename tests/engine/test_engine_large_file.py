# SPDX-License-Identifier: Apache-2.0
"""A file of 12 billion parameters: some of its layers are run in bounded memory, where the whole would not fit."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.gguf import crafted_gguf as craft

ROOT = Path(__file__).parents[2]
LAYERS, EMBD, FF, HEADS, KV_HEADS, HEAD, VOCAB = 48, 3840, 15360, 16, 8, 256, 262_144
_DATA_LIMIT = 700 << 20

_CHILD = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_DATA, ({limit}, {limit}))
from reference_engine.backends import make_backend
from reference_engine.model import Model
backend = make_backend({backend!r}, threads=2)
with Model.load({path!r}, backend, n_ctx=64, layers=range({layers}), head={head}, threads=2) as model:
    trace = []
    def watch(name, layer, array):
        if name == "l_out":
            trace.append(float(abs(array).max()))
    out = model.forward([1, 2, 3], model.new_cache(), trace=watch)
    print(json.dumps({{
        "parameters": sum(tensor.n_elements for tensor in model.file.tensors.values()),
        "layers": list(model.layers),
        "finite": bool(abs(out.hidden).max() < 1e9),
        "l_out": trace,
        "vocabulary": out.logits.shape[1],
    }}))
"""


def sparse_model(path: Path) -> int:
    """A gemma3 of 12B in Q8_0, nearly all of it a hole (whose weights are 0); returns the bytes it claims."""
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (EMBD, VOCAB), "output_norm.weight": (EMBD,)}
    for layer in range(LAYERS):
        b = f"blk.{layer}."
        shapes |= {
            b + "attn_norm.weight": (EMBD,),
            b + "attn_q.weight": (EMBD, HEADS * HEAD),
            b + "attn_k.weight": (EMBD, KV_HEADS * HEAD),
            b + "attn_v.weight": (EMBD, KV_HEADS * HEAD),
            b + "attn_output.weight": (HEADS * HEAD, EMBD),
            b + "attn_q_norm.weight": (HEAD,),
            b + "attn_k_norm.weight": (HEAD,),
            b + "post_attention_norm.weight": (EMBD,),
            b + "ffn_norm.weight": (EMBD,),
            b + "ffn_gate.weight": (EMBD, FF),
            b + "ffn_up.weight": (EMBD, FF),
            b + "ffn_down.weight": (FF, EMBD),
            b + "post_ffw_norm.weight": (EMBD,),
        }
    rows, offsets, at = [], {}, 0
    for name, dims in shapes.items():
        kind = craft.GGML_Q8_0 if len(dims) > 1 else craft.GGML_F32
        size = dims[0] * (dims[1] if len(dims) > 1 else 1)
        rows.append(craft.tensor(name, dims, kind, at))
        offsets[name] = at
        at += -(-(size // 32 * 34 if len(dims) > 1 else size * 4) // 32) * 32
    numbers = {
        "block_count": LAYERS,
        "context_length": 131_072,
        "embedding_length": EMBD,
        "feed_forward_length": FF,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
        "attention.key_length": HEAD,
        "attention.value_length": HEAD,
        "attention.sliding_window": 1024,
        "vocab_size": VOCAB,
    }
    keys = [craft.key_text("general.architecture", "gemma3")]
    keys += [craft.key_u32(f"gemma3.{suffix}", value) for suffix, value in numbers.items()]
    keys.append(craft.key_f32("gemma3.attention.layer_norm_rms_epsilon", 1e-6))
    head = craft.gguf(keys, rows)
    with path.open("wb") as file:
        file.write(head)
        for name, dims in shapes.items():
            file.seek(len(head) + offsets[name])
            if len(dims) == 1:
                file.write(np.ones(dims[0], "<f4").tobytes())
            elif name == "token_embd.weight":  # the first rows are not 0, so that something runs through the layers
                block = struct.pack("<e32b", 0.01, *range(-16, 16))
                file.write(block * (EMBD // 32) * 4)
        file.truncate(len(head) + at)
    return len(head) + at


# The NPU's weights are kept as int8: 224 MB a layer, and a gigabyte of head.
@pytest.mark.parametrize(("backend", "layers", "head"), [("float", 4, True), ("npu:w8a8-per-channel", 2, False)])
def test_some_layers_of_12_billion_parameters_run_in_bounded_memory(
    backend: str, layers: int, head: bool, tmp_path: Path
) -> None:
    path = tmp_path / "12b.gguf"
    claimed = sparse_model(path)
    assert claimed > 12e9
    if path.stat().st_blocks * 512 > 64 << 20:
        pytest.skip("this file system keeps no holes")
    code = _CHILD.format(limit=_DATA_LIMIT, path=str(path), backend=backend, layers=layers, head=head)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["parameters"] > 11e9
    assert found["layers"] == list(range(layers))
    assert found["finite"]
    assert len(found["l_out"]) == layers
    assert min(found["l_out"]) > 0
    assert found["vocabulary"] == (VOCAB if head else 0)
