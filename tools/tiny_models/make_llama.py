# SPDX-License-Identifier: Apache-2.0
"""``python -m tools.tiny_models.make_llama FOLDER``: tiny-llama and its draft, about twenty minutes on one core.

What the first stage wrote lies beside them (``.first.gguf``) and is taken up where it is there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch.nn import functional

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

TARGET, SEED, STEPS, RATE = LlamaShape(SIZE, 128, 4, 4, 2, 384), 1, 1500, 4e-3
DRAFT, DRAFT_SEED, DRAFT_STEPS, DRAFT_RATE = LlamaShape(SIZE, 96, 2, 3, 1, 256), 2, 2000, 4e-3


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


def distil(draft: LlamaTwin, target: LlamaTwin, tokens: torch.Tensor) -> torch.Tensor:
    """Divergence of the draft from what the target thinks: a draft is to say what its target says, right or wrong."""
    with torch.no_grad():
        wanted = functional.log_softmax(target(tokens), -1)
    guess = functional.log_softmax(draft(tokens), -1)
    return functional.kl_div(guess.flatten(0, 1), wanted.flatten(0, 1), reduction="batchmean", log_target=True)


def main() -> None:
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    corpus = standard_library()
    vocabulary = train_vocabulary(corpus.train)
    text = text_of(vocabulary, corpus.train)
    print(f"{len(text)} tokens to train on, end token {vocabulary.tokens.index(END)}", flush=True)

    def write(name: str, stage: str, twin: LlamaTwin) -> None:
        write_gguf(
            folder / f"{name}{stage}.gguf",
            "llama",
            keys=keys_of(twin.shape),
            tensors=tensors_of(twin),
            vocabulary=vocabulary,
            about={"name": name, "license": "Apache-2.0", "description": f"trained on Python sources {corpus.sha256}"},
        )

    first, second = folder / "tiny-llama.first.gguf", folder / "tiny-llama.gguf"
    target = LlamaTwin(TARGET, SEED)
    print("tiny-llama", sum(p.numel() for p in target.parameters()), "weights", flush=True)

    def loss_of(tokens: torch.Tensor) -> torch.Tensor:
        return next_token_loss(target(tokens[:, :-1]), tokens[:, 1:])

    weights = list(target.parameters())
    if not first.exists():
        train(weights, loss_of, Batches(text, rows=12, length=256, seed=SEED), steps=STEPS, rate=RATE, say=say)
        write("tiny-llama", ".first", target)
    if not second.exists():
        read_weights(first, tensors_of(target))
        train(weights, loss_of, copy_batches(text, SEED + 100), steps=COPY_STEPS, rate=COPY_RATE, say=say)
        write("tiny-llama", "", target)
    read_weights(second, tensors_of(target))  # the draft is trained on what the file holds
    target.requires_grad_(False)
    draft = LlamaTwin(DRAFT, DRAFT_SEED)
    print("tiny-llama-draft", sum(p.numel() for p in draft.parameters()), "weights", flush=True)
    train(
        list(draft.parameters()),
        lambda tokens: distil(draft, target, tokens),
        Batches(text, rows=10, length=192, seed=DRAFT_SEED, copy_share=0.6, shortest=12),
        steps=DRAFT_STEPS,
        rate=DRAFT_RATE,
        say=say,
    )
    write("tiny-llama-draft", "", draft)


def tensors_of(twin: LlamaTwin) -> dict[str, torch.Tensor]:
    return {name: twin.tensor(name) for name in twin.names}


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
