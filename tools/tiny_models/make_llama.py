# SPDX-License-Identifier: Apache-2.0
"""``python -m tools.tiny_models.make_llama FOLDER``: tiny-llama and its draft, about ten minutes on one core."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from tools.tiny_models.batches import Batches
from tools.tiny_models.corpus import standard_library
from tools.tiny_models.export import Value, write_gguf
from tools.tiny_models.llama_twin import LlamaShape, LlamaTwin
from tools.tiny_models.training import next_token_loss, train
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
        batches = Batches(text, rows=12, length=256, seed=seed)
        print(name, sum(p.numel() for p in twin.parameters()), "weights", flush=True)

        def loss_of(tokens: torch.Tensor, twin: LlamaTwin = twin) -> torch.Tensor:
            return next_token_loss(twin(tokens[:, :-1]), tokens[:, 1:])

        train(list(twin.parameters()), loss_of, batches, steps=steps, rate=rate, say=lambda s: print(s, flush=True))
        about = {"name": name, "license": "Apache-2.0", "description": f"trained on Python sources {corpus.sha256}"}
        tensors = {tensor: twin.tensor(tensor) for tensor in twin.names}
        path = folder / f"{name}.gguf"
        write_gguf(path, "llama", keys=keys_of(shape), tensors=tensors, vocabulary=vocabulary, about=about)


if __name__ == "__main__":
    main()
