# SPDX-License-Identifier: Apache-2.0
"""``python -m tools.tiny_models.make_qwen35 FOLDER``: tiny-qwen35: the trunk, then its nextn block."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch.nn import functional

from tools.tiny_models.batches import Batches
from tools.tiny_models.corpus import standard_library
from tools.tiny_models.export import Value, write_gguf
from tools.tiny_models.make_llama import text_of
from tools.tiny_models.qwen35_twin import Held, Qwen35Shape, Qwen35Twin
from tools.tiny_models.training import COPY_RATE, copy_batches, next_token_loss, read_weights, train
from tools.tiny_models.vocabulary import train_vocabulary

STEPS, SECOND_STEPS, NEXTN_STEPS, DRAFT = 1500, 1000, 1500, 3


def keys_of(s: Qwen35Shape) -> dict[str, Value]:
    return {
        "block_count": s.n_layer + 1,
        "nextn_predict_layers": 1,
        "context_length": s.n_ctx,
        "embedding_length": s.n_embd,
        "feed_forward_length": s.n_ff,
        "attention.head_count": s.n_head,
        "attention.head_count_kv": s.n_head_kv,
        "attention.key_length": s.head_dim,
        "attention.value_length": s.head_dim,
        "attention.layer_norm_rms_epsilon": s.eps,
        "rope.freq_base": s.rope_base,
        "rope.dimension_count": s.n_rot,
        "rope.dimension_sections": [2, 1, 1, 0],
        "ssm.conv_kernel": s.conv,
        "ssm.inner_size": s.inner,
        "ssm.state_size": s.state,
        "ssm.time_step_rank": s.n_v_heads,
        "ssm.group_count": s.n_k_heads,
        "full_attention_interval": s.interval,
        "vocab_size": s.n_vocab,
    }


def nextn_loss(twin: Qwen35Twin, tokens: torch.Tensor) -> torch.Tensor:
    """Mean over DRAFT steps of the divergence from what the trunk thinks, each step fed with the one before."""
    with torch.no_grad():
        logits, hidden = twin(tokens)
        wanted = functional.log_softmax(logits, -1)
    length = tokens.shape[1]
    h = functional.pad(hidden, (0, 0, 1, 0))[:, :length]
    held: Held = []
    total = torch.zeros(())
    for i in range(DRAFT):
        shifted = functional.pad(tokens, (0, i))[:, i : i + length]
        guess, h = twin.nextn(shifted, h, torch.arange(i, i + length), held)
        guess, answer = guess[:, 1 : length - i], wanted[:, 1 + i : length]
        total = total + functional.kl_div(
            functional.log_softmax(guess, -1).flatten(0, 1),
            answer.flatten(0, 1),
            reduction="batchmean",
            log_target=True,
        )
    return total / DRAFT


def say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    corpus = standard_library()
    vocabulary = train_vocabulary(corpus.train)
    text = text_of(vocabulary, corpus.train)
    twin = Qwen35Twin(Qwen35Shape(), 5)
    print("tiny-qwen35", sum(p.numel() for p in twin.parameters()), "weights", flush=True)

    def loss_of(tokens: torch.Tensor) -> torch.Tensor:
        return next_token_loss(twin(tokens[:, :-1])[0], tokens[:, 1:])

    trunk = [twin.tensor(name) for name in twin.trunk_names]
    rest = [twin.tensor(name) for name in twin.names if name not in twin.trunk_names]
    about = {
        "name": "tiny-qwen35",
        "license": "Apache-2.0",
        "description": f"trained on Python sources {corpus.sha256}",
    }
    tensors = {name: twin.tensor(name) for name in twin.names}

    def write(path: Path) -> None:
        write_gguf(path, "qwen35", keys=keys_of(twin.shape), tensors=tensors, vocabulary=vocabulary, about=about)

    first, second = folder / "tiny-qwen35.first.gguf", folder / "tiny-qwen35.second.gguf"
    if not first.exists():
        train(trunk, loss_of, Batches(text, rows=10, length=160, seed=5), steps=STEPS, rate=4e-3, say=say)
        write(first)
    if not second.exists():
        read_weights(first, tensors)
        train(trunk, loss_of, copy_batches(text, 105), steps=SECOND_STEPS, rate=COPY_RATE, say=say)
        write(second)
    read_weights(second, tensors)  # the nextn block is trained on what the file holds
    for tensor in trunk:
        tensor.requires_grad_(False)
    train(
        rest,
        lambda tokens: nextn_loss(twin, tokens),
        Batches(text, rows=8, length=160, seed=6, copy_share=0.6, shortest=12),
        steps=NEXTN_STEPS,
        rate=3e-3,
        say=say,
    )
    write(folder / "tiny-qwen35.gguf")


if __name__ == "__main__":
    main()
