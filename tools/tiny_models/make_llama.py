# SPDX-License-Identifier: Apache-2.0
"""``python -m tools.tiny_models.make_llama FOLDER``: tiny-llama and its draft, about twenty minutes on one core.

What the first stage wrote lies beside them (``.first.gguf``) and is taken up where it is there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

from tools.tiny_models.batches import Batches
from tools.tiny_models.corpus import standard_library
from tools.tiny_models.export import Value, write_gguf
from tools.tiny_models.llama_twin import LlamaShape, LlamaTwin
from tools.tiny_models.training import (
    COPY_RATE,
    COPY_STEPS,
    copy_batches,
    next_token_loss,
    read_weights,
    train,
)
from tools.tiny_models.vocabulary import END, SIZE, Vocabulary, train_vocabulary

SHAPES = {
    "tiny-llama": (LlamaShape(SIZE, 128, 4, 4, 2, 384), 1, 1500, 4e-3),
    "tiny-llama-draft": (LlamaShape(SIZE, 64, 2, 2, 1, 192), 2, 2000, 6e-3),
}


def text_of(vocabulary: Vocabulary, texts: tuple[str, ...]) -> list[int]:
    tokens: list[int] = []
    for text in texts:
        tokens += [*vocabulary.encode(text), vocabulary.end_id]
    return tokens


def keys_of(shape: LlamaShape) -> dict[str, Value]:
    return {
        "block_count": shape.n_layer,
        "context_length": shape.n_ctx,
        "embedding_length": shape.n_embd,
        "feed_forward_length": shape.n_ff,
        "attention.head_count": shape.n_head,
        "attention.head_count_kv": shape.n_head_kv,
        "attention.layer_norm_rms_epsilon": shape.eps,
        "rope.freq_base": shape.rope_base,
        "rope.dimension_count": shape.head_dim,
        "vocab_size": shape.n_vocab,
    }


def main() -> None:
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    corpus = standard_library()
    vocabulary = train_vocabulary(corpus.train)
    text = text_of(vocabulary, corpus.train)
    print(f"{len(text)} tokens to train on, end token {vocabulary.tokens.index(END)}", flush=True)
    for name, (shape, seed, steps, rate) in SHAPES.items():
        twin = LlamaTwin(shape, seed)
        print(name, sum(p.numel() for p in twin.parameters()), "weights", flush=True)

        def loss_of(tokens: torch.Tensor, twin: LlamaTwin = twin) -> torch.Tensor:
            return next_token_loss(twin(tokens[:, :-1]), tokens[:, 1:])

        about = {"name": name, "license": "Apache-2.0", "description": f"trained on Python sources {corpus.sha256}"}
        tensors = {tensor: twin.tensor(tensor) for tensor in twin.names}
        weights = list(twin.parameters())

        def write(path: Path, shape: LlamaShape = shape, tensors: Any = tensors, about: Any = about) -> None:
            write_gguf(path, "llama", keys=keys_of(shape), tensors=tensors, vocabulary=vocabulary, about=about)

        first = folder / f"{name}.first.gguf"
        if not first.exists():
            train(weights, loss_of, Batches(text, rows=12, length=256, seed=seed), steps=steps, rate=rate, say=say)
            write(first)
        read_weights(first, tensors)
        train(weights, loss_of, copy_batches(text, seed + 100), steps=COPY_STEPS, rate=COPY_RATE, say=say)
        write(folder / f"{name}.gguf")


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
