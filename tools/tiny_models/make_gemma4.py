# SPDX-License-Identifier: Apache-2.0
"""``python -m tools.tiny_models.make_gemma4 FOLDER``: tiny-gemma4 and the drafter trained on its hidden states."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import torch
from torch.nn import functional

from tools.tiny_models.batches import Batches
from tools.tiny_models.corpus import standard_library
from tools.tiny_models.export import Value, write_gguf
from tools.tiny_models.gemma4_twin import AssistantShape, AssistantTwin, Gemma4Shape, Gemma4Twin
from tools.tiny_models.make_llama import text_of
from tools.tiny_models.training import (
    COPY_RATE,
    COPY_STEPS,
    copy_batches,
    next_token_loss,
    read_weights,
    train,
)
from tools.tiny_models.vocabulary import train_vocabulary

STEPS, ASSISTANT_STEPS, DRAFT = 1000, 1600, 4


def keys_of(s: Gemma4Shape) -> dict[str, Value]:
    return {
        "block_count": s.n_layer,
        "context_length": s.n_ctx,
        "embedding_length": s.n_embd,
        "embedding_length_per_layer_input": s.n_per_layer,
        "feed_forward_length": [s.n_ff[0 if layer < s.first_shared else 1] for layer in range(s.n_layer)],
        "attention.head_count": s.n_head,
        "attention.head_count_kv": [s.n_head_kv[s.kind(layer)] for layer in range(s.n_layer)],
        "attention.key_length": s.head_dim[1],
        "attention.value_length": s.head_dim[1],
        "attention.key_length_swa": s.head_dim[0],
        "attention.value_length_swa": s.head_dim[0],
        "attention.sliding_window": s.window,
        "attention.sliding_window_pattern": list(s.in_window),
        "attention.shared_kv_layers": s.n_shared,
        "attention.layer_norm_rms_epsilon": s.eps,
        "rope.freq_base": s.rope_base[1],
        "rope.freq_base_swa": s.rope_base[0],
        "rope.dimension_count": s.head_dim[1],
        "rope.dimension_count_swa": s.head_dim[0],
        "final_logit_softcapping": s.softcap,
        "vocab_size": s.n_vocab,
    }


def assistant_keys_of(a: AssistantShape, s: Gemma4Shape) -> dict[str, Value]:
    keys = keys_of(s)
    for name in ("embedding_length_per_layer_input", "final_logit_softcapping"):
        del keys[name]
    n = len(a.in_window)
    return keys | {
        "block_count": n,
        "nextn_predict_layers": n,
        "embedding_length": a.n_embd,
        "embedding_length_out": s.n_embd,
        "feed_forward_length": a.n_ff,
        "attention.head_count": a.n_head,
        "attention.head_count_kv": [s.n_head_kv[0 if w else 1] for w in a.in_window],
        "attention.sliding_window_pattern": list(a.in_window),
        "attention.shared_kv_layers": n,
    }


def assistant_loss(twin: Gemma4Twin, assistant: AssistantTwin, tokens: torch.Tensor) -> torch.Tensor:
    """Mean over DRAFT steps of the divergence from what the target thinks, every step fed with its own hidden state."""
    with torch.no_grad():
        logits, hidden, held = twin(tokens)
        wanted = functional.log_softmax(logits, -1)
        embedded = twin.tensor("token_embd.weight")[tokens] * math.sqrt(twin.shape.n_embd)
    length = tokens.shape[1]
    h = functional.pad(hidden, (0, 0, 1, 0))[:, :length]  # row p: the hidden state of p - 1
    total = torch.zeros(())
    for i in range(DRAFT):
        # Row p gets the token at p + i; rows whose answer lies past the end are left out.
        shifted = functional.pad(embedded, (0, 0, 0, i))[:, i : i + length]
        guess, h = assistant.step(shifted, h, held)
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
    about = {"license": "Apache-2.0", "description": f"trained on Python sources {corpus.sha256}"}
    twin = Gemma4Twin(Gemma4Shape(), 3)
    print("tiny-gemma4", sum(p.numel() for p in twin.parameters()), "weights", flush=True)

    def loss_of(tokens: torch.Tensor) -> torch.Tensor:
        return next_token_loss(twin(tokens[:, :-1])[0], tokens[:, 1:])

    def write(path: Path) -> None:
        write_gguf(
            path,
            "gemma4",
            keys=keys_of(twin.shape),
            tensors=twin.gguf_tensors(),
            vocabulary=vocabulary,
            about={"name": "tiny-gemma4", **about},
        )

    first, second, weights = folder / "tiny-gemma4.first.gguf", folder / "tiny-gemma4.gguf", list(twin.parameters())
    tensors = {name: twin.tensor(name) for name in twin.names}
    if not first.exists():
        train(weights, loss_of, Batches(text, rows=10, length=192, seed=3), steps=STEPS, rate=4e-3, say=say)
        write(first)
    if not second.exists():
        read_weights(first, tensors)
        train(weights, loss_of, copy_batches(text, 103), steps=COPY_STEPS, rate=COPY_RATE, say=say)
        write(second)
    read_weights(second, tensors)  # the drafter is trained on what the file holds
    twin.requires_grad_(False)
    assistant = AssistantTwin(AssistantShape(), twin.shape, 4)
    print("tiny-gemma4-mtp", sum(p.numel() for p in assistant.parameters()), "weights", flush=True)
    train(
        list(assistant.parameters()),
        lambda tokens: assistant_loss(twin, assistant, tokens),
        Batches(text, rows=8, length=192, seed=4, copy_share=0.6, shortest=12),
        steps=ASSISTANT_STEPS,
        rate=3e-3,
        say=say,
    )
    write_gguf(
        folder / "tiny-gemma4-mtp.gguf",
        "gemma4-assistant",
        keys=assistant_keys_of(assistant.shape, twin.shape),
        tensors=assistant.gguf_tensors(),
        vocabulary=vocabulary,
        about={"name": "tiny-gemma4-mtp", **about},
    )


if __name__ == "__main__":
    main()
