# SPDX-License-Identifier: Apache-2.0
"""Traps with attention: it copies by distance, so that positions, rows, windows and cells all have to be right.

Every key is the same vector, every query the same but turned by RoPE: the score of the key ``d`` positions back is the
mean of cos(theta * (d - distance)) over a few pairs, whose frequencies were chosen for a single wide peak there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from string import ascii_lowercase

from conformance.traps.blueprint import CONTEXT, FIRST, NOTHING, VOTE, Blueprint
from conformance.traps.trap import Design

_HEAD = 64
_GAIN = 4.0
_SLOW = 31
"""A pair that turns by less than a hundredth of a radian over the whole text: its score does not depend on distance."""


def _score(
    plan: Blueprint, number: int, pairs: Sequence[int], distance: float, *, base: float, sharpness: float
) -> None:
    """Keys of layer ``number`` are 1 in each of ``pairs``; the score at ``distance`` is ``sharpness``."""
    layer, column, height = plan.layers[number], plan.constant, plan.height()
    for pair in pairs:
        first, second = _dims(plan, pair)
        angle = -distance * base ** (-2 * pair / _HEAD)
        layer.k[first, column] = 1.0 / height
        share = sharpness / len(pairs) * math.sqrt(_HEAD) / height
        # Rounded, so that a libm that differs in the last place gives the same file.
        layer.q[[first, second], column] = [round(share * part, 6) for part in (math.cos(angle), math.sin(angle))]


def _dims(plan: Blueprint, pair: int) -> tuple[int, int]:
    """The two elements that RoPE turns together: neighbours in llama, half a head apart in gemma3."""
    return (2 * pair, 2 * pair + 1) if plan.architecture == "llama" else (pair, pair + _HEAD // 2)


def _unit_norms(plan: Blueprint, number: int, pairs: Sequence[int], sharpness: float) -> None:
    """Head norms of gemma3 give ``pairs`` the heights that :func:`_score` meant, whatever the scale of the row."""
    norms, share = plan.layers[number].norms, math.sqrt(len(pairs) / _HEAD)
    norms["attn_k_norm"][:] = share
    norms["attn_q_norm"][:] = share * sharpness / len(pairs) * math.sqrt(_HEAD)


def batch_row() -> Design:
    """A row of a batch is lost or lands in another's place, while the prompt is processed.

    Sources: only the first slice of a batch computed (rk-llama.cpp before its rank guard: LFM2 and mixtures of experts
    gave garbage), rows of C in the wrong order. The text is said again: each step copies the token 15 back, and a row
    that is not there leaves the first token of the prompt to be attended to, which says so.
    """
    letters = ascii_lowercase[:16]
    plan = Blueprint(("^", *letters, "[a row of the batch lost]"))
    sink, lost = FIRST, FIRST + 1 + len(letters)
    ids = range(FIRST + 1, lost)
    plan.embed_plainly()
    plan.read_answers(_GAIN)
    plan.embedding[sink, plan.constant] = 0.0
    plan.embedding[sink, plan.constant + 1] = 1.0
    sharpness = 64.0
    _score(plan, 0, (0, 1, 2), len(letters) - 1, base=plan.rope_base, sharpness=sharpness)
    layer = plan.layers[0]
    first, _ = _dims(plan, _SLOW)
    layer.k[first, plan.constant + 1] = 1.0 / plan.height()
    # Half way between the peak and the highest score beside it, 0.294 lower.
    layer.q[first, plan.constant] = (1 - 0.294 / 2) * sharpness * math.sqrt(_HEAD) / plan.height()
    for token in ids:
        layer.v[token, token] = 1.0 / plan.height()
        layer.out[plan.answer(token), token] = VOTE
    layer.v[lost, sink] = 1.0 / plan.height()
    layer.out[plan.answer(lost), lost] = VOTE
    tokens = tuple(ids) * 2
    wrong = {str(lost): "the keys and values of a row of the batch were lost, or put in another row's place"}
    # The first half of two swapped rows is seen first, with what belongs to the second.
    for step, token in enumerate(ids[1:]):
        wrong[f"{step}:{token}"] = "rows of a batch changed places"
    # The last row gave nothing, and the one after it, alone in its batch, is right.
    wrong[f"0:{NOTHING}+{tokens[1]}"] = "the last rows of a batch were lost"
    return Design("batch-row", "a row of a batch lost or swapped", plan, (sink, *ids), tokens, wrong)


def kv_rollback() -> Design:
    """Tokens that were drafted and rejected stay in the KV cache.

    The prompt says the alphabet and then X; the answer says the alphabet and then digits. Whoever drafts from the
    prompt drafts X, which is rejected; X among the last 16 rows makes every further step say so. Without speculation
    the trap shows nothing. (llama.cpp b11434 llama_kv_cache::seq_rm is what has to do it there.)
    """
    chain, bait, filler = ascii_lowercase + "0123456789", "X", "."
    plan = Blueprint(("^", *chain, bait, filler, "[rejected draft still in the KV cache]"))
    ids = {text: FIRST + number for number, text in enumerate(plan.words)}
    stays = ids[plan.words[-1]]
    plan.embed_plainly()
    plan.read_answers(_GAIN)
    layer, height = plan.layers[0], plan.height()
    # Slow enough that the last 16 positions are near and the prompt's X (33 to 80 back) are on the far side.
    near, sharpness = 10, 50.0
    _score(plan, 0, (near,), 0, base=plan.rope_base, sharpness=sharpness)
    first, _ = _dims(plan, near)
    layer.k[:] = 0.0
    layer.k[first, ids[bait]] = 1.0 / height
    slow, _ = _dims(plan, _SLOW)
    layer.k[slow, ids["^"]] = 1.0 / height
    layer.q[slow, plan.constant] = 0.35 * sharpness * math.sqrt(_HEAD) / height
    layer.v[0, ids[bait]] = 1.0 / height
    layer.out[plan.answer(stays), 0] = 2 * VOTE
    for unit, (text, follower) in enumerate(zip(chain, chain[1:] + chain[0], strict=True)):
        layer.detect(unit, ids[text], plan.constant, height)
        layer.down[plan.answer(ids[follower]), unit] = VOTE
    text = "^" + ascii_lowercase + 8 * bait + 32 * filler + "a"
    fault = "the rows of rejected draft tokens were left in the KV cache"
    prompt, tokens = tuple(ids[letter] for letter in text), tuple(ids[letter] for letter in chain[1:])
    return Design("kv-rollback", fault, plan, prompt, tokens, {str(stays): fault})


_WINDOW = 16
_SWA_PAIRS, _SWA_PEAK = (2, 4), 17.0
"""The score rises up to a distance of 17: by 0.18 of its height to 14, then 0.39, 0.28 and 0.10."""
_SWA_FAULTS: Mapping[int, str] = {
    14: "the sliding window was one position too short",
    16: "the sliding window was one position too long",
    17: "the sliding window was two positions too long, or not there",
}


def swa_window() -> Design:
    """A sliding window is one position too short or too long, or is not there.

    A position sees itself and ``window - 1`` before it (llama.cpp b11434 llama-hparams.h is_masked_swa: masked from a
    distance of ``window`` on). The score rises towards the oldest position that may be seen, so that the text repeats
    every 16 tokens; any other border copies another token.
    """
    letters = ascii_lowercase[:24]
    plan = _gemma(letters)
    plan.keys["attention.sliding_window"] = _WINDOW
    plan.keys["rope.freq_base_swa"] = 10000.0
    pairs, sharpness = _SWA_PAIRS, 90.0
    _score(plan, 0, pairs, _SWA_PEAK, base=10000.0, sharpness=1.0)
    _unit_norms(plan, 0, pairs, sharpness)
    layer = plan.layers[0]
    ids = range(FIRST, FIRST + len(letters))
    for token in ids:
        layer.v[token, token] = 1.0 / plan.height()
        layer.out[plan.answer(token), token] = 1.0
    layer.norms["post_attention_norm"][:] = VOTE
    prompt = tuple(ids)
    tokens = _copied(prompt, _WINDOW - 1, _WINDOW)
    # A wrong window shows at once; later on, the token of another distance is that of another step, which proves less.
    wrong = {f"0:{prompt[-1 - distance]}": fault for distance, fault in _SWA_FAULTS.items()}
    return Design("swa-window", "a sliding window off by one", plan, prompt, tokens, wrong)


def _copied(prompt: Sequence[int], distance: int, count: int) -> tuple[int, ...]:
    """A text in which each token is the one at a distance from its predecessor."""
    text = list(prompt)
    for _ in range(count):
        text.append(text[len(text) - 1 - distance])
    return tuple(text[len(prompt) :])


_ROPE_PROMPT = 31
_GLOBAL_BASE, _LOCAL_BASE = 1e6, 1e4
_GLOBAL, _LOCAL = 5, 0


def rope_base() -> Design:
    """gemma3 turns its global layers by one RoPE base and those in a window by another; here they are mixed up.

    (llama.cpp b11434 src/models/gemma3.cpp: rope.freq_base 1e6 and rope.freq_base_swa 1e4.) Both kinds of layer copy
    the letter 31 back; with the other base the peak falls among the dots, which say of which layer it was.
    """
    letters = ascii_lowercase[:8]
    plan = _gemma(letters + ".", "[RoPE base of a global layer wrong]", "[RoPE base of a window layer wrong]")
    plan.keys["attention.sliding_window"] = CONTEXT
    plan.keys["rope.freq_base_swa"] = _LOCAL_BASE
    plan.rope_base = _GLOBAL_BASE
    sharpness = 60.0
    dot = FIRST + len(letters)
    said = {_GLOBAL: dot + 1, _LOCAL: dot + 2}
    for number, pairs, base in ((_GLOBAL, (0, 1, 5), _GLOBAL_BASE), (_LOCAL, (0, 2, 5), _LOCAL_BASE)):
        _score(plan, number, pairs, _ROPE_PROMPT - 1, base=base, sharpness=1.0)
        _unit_norms(plan, number, pairs, sharpness)
        layer = plan.layers[number]
        for token in range(FIRST, dot + 1):
            layer.v[token, token] = 1.0 / plan.height()
        for token in range(FIRST, dot):
            # Half of a right answer goes to a slot that nothing reads: a wrong one has to outvote it alone.
            layer.out[[plan.answer(token), plan.constant + 1], token] = 1.0
        layer.out[plan.answer(said[number]), dot] = 1.0
        layer.norms["post_attention_norm"][:] = VOTE
    ids = tuple(range(FIRST, dot))
    prompt = (*ids, *([dot] * (_ROPE_PROMPT - len(ids))))
    wrong = {
        str(said[_GLOBAL]): "the global layer was turned by another RoPE base than rope.freq_base",
        str(said[_LOCAL]): "the layer in a window was turned by another RoPE base than rope.freq_base_swa",
    }
    return Design("rope-base", "RoPE bases of gemma3 mixed up", plan, prompt, ids, wrong)


def _gemma(letters: str, *words: str) -> Blueprint:
    """Six layers, the last one global; only those that a trap writes do anything."""
    plan = Blueprint((*letters, *words), architecture="gemma3", n_layer=6)
    plan.embed_plainly()
    plan.read_answers(_GAIN)
    return plan
