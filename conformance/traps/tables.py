# SPDX-License-Identifier: Apache-2.0
"""Traps without attention: a table of what follows what, written into the FFN so that one fault changes the entry.

Each right token is looked up by one or several hidden units, whose columns of ffn_down vote for it and, less, for what
a faulty product would say.
"""

from __future__ import annotations

from collections.abc import Iterable

from conformance.traps.blueprint import FIRST, GATE, NOTHING, VOTE, Blueprint
from conformance.traps.trap import UNLESS, Design

_LETTERS = "abcdefgh"
_4_BITS = "[4-bit activations]"
_GAIN = 4.0


_LAST = 63
_4_BITS_SEEN = {
    str(
        _LAST
    ): "activations, or the KV cache, were cut to 4 bits (unless trap int8-wrap springs too, which can look the same)"
}


def _unless(traps: str) -> str:
    return f" {UNLESS} {traps} springs too, which can look the same)"


def _cycle(count: int = len(_LETTERS), rounds: int = 2) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Prompt and continuation of a table in which each of ``count`` tokens is followed by the next."""
    ids = [FIRST + number for number in range(count)]
    return (ids[0],), tuple(ids[(step + 1) % count] for step in range(rounds * count))


def _followers(count: int = len(_LETTERS)) -> Iterable[tuple[int, int, int]]:
    """Number, token, token that follows."""
    return ((number, FIRST + number, FIRST + (number + 1) % count) for number in range(count))


def int8_wrap() -> Design:
    """Quantised values beyond 127 wrap to negative ones.

    With scale = amax / 127 none gets there; with amax / 128 or a clip factor below 1 the largest of each row does
    (unimatrix099's notes on its RKNPU2 back end: clip 0.95 without a clamp turned a perplexity of 12.2 into 10106). The
    largest element of each row is the one that decides: negative, it votes for the fault.
    """
    plan = Blueprint((*_LETTERS, "[int8 wrapped]", "[int8 of a weight wrapped]"))
    wrapped = FIRST + len(_LETTERS)
    plan.embed_plainly()
    plan.read_answers(_GAIN)
    layer = plan.layers[0]
    for unit, token, follower in _followers():
        layer.detect(unit, token, plan.constant, plan.height())
        layer.down[plan.answer(follower), unit] = VOTE
        # Opposite to the right answer, wherever that is read.
        plan.head[wrapped, plan.answer(follower)] = -_GAIN / 2
    plan.head[wrapped, plan.constant] = -_GAIN / 2
    # A row whose largest weight is negative, and so stays what it is, where the largest of each other row turns over.
    plan.head[wrapped + 1, plan.constant] = _GAIN / 4
    plan.head[wrapped + 1, plan.constant + 1] = -_GAIN
    plan.head[NOTHING, plan.answer(NOTHING)] = _GAIN / 4
    prompt, tokens = _cycle()
    fault = "int8 values beyond 127 wrapped to negative ones (a scale of amax / 128 or a clip factor, without a clamp)"
    names = {str(wrapped): fault, str(wrapped + 1): fault.replace("int8 values", "int8 weights")}
    return Design("int8-wrap", fault, plan, prompt, tokens, names)


def quantiser() -> Design:
    """Activations are cut off instead of rounded, or lose their sign.

    The right vote comes from eight hidden units of 0.75 of a step each, where the row's largest element, 127 steps,
    says "cut off"; a negative one holds down what a lost sign would say. (roundf in the forks' quantisers: rk-llama.cpp
    quantize_fp32_to_int8.)
    """
    plan = Blueprint((*_LETTERS, "[activations cut off]", "[sign lost]"), n_ff=128)
    cut, unsigned = (FIRST + len(_LETTERS) + number for number in range(2))
    faint, units = 0.75 / 127, 8
    plan.embed_plainly()
    plan.read_answers(_GAIN)
    layer = plan.layers[0]
    for number, token, follower in _followers():
        for unit in (0, 1):
            layer.detect(unit, token, plan.constant, plan.height(), activation=(1.0, -0.5)[unit])
        for unit in range(2 + units * number, 2 + units * (number + 1)):
            # silu(0.855) is 0.6: shared out, so that neither weight is a fraction of a step of the largest.
            layer.detect(unit, token, plan.constant, plan.height(), activation=faint * GATE / 0.6)
            layer.gate[unit, token] *= 0.855 / GATE
            layer.down[plan.answer(follower), unit] = VOTE / units / faint
    layer.down[plan.answer(cut), 0] = VOTE / 2
    # Nothing with its sign; without it, louder than the right answer.
    layer.down[plan.answer(unsigned), [0, 1]] = 1.2 * VOTE, 1.2 * VOTE / 0.5
    prompt, tokens = _cycle()
    names = {
        str(cut): f"activations below one step were cut off instead of rounded{_unless('w4a4 or int8-wrap')}",
        str(unsigned): f"activations lost their sign{_unless('w4a4 or int8-wrap')}",
    }
    return Design("quantiser", "activations cut off or without a sign", plan, prompt, tokens, names)


K_LONG = 8192 + 128
"""Columns of ffn_down in the traps of K segments: over the limit of RK3588 (8192) and twice that of RK3576 (4096)."""
_GROUPS = ((0, 4096), (4096, 8192), (8192, K_LONG))
_EDGES = (0, -1, 1, -2, 17, -17, 32, -33)
"""Where in its part of K the unit of each letter lies: at both ends, and about the tiles of 16 and 32."""


def _unit(number: int, group: int) -> int:
    start, end = _GROUPS[group]
    return (start if _EDGES[number] >= 0 else end) + _EDGES[number]


def k_segment() -> Design:
    """A matmul whose K is cut in segments (8192 on RK3588, 4096 on RK3576; rk-llama.cpp compute_k_segments) loses one.

    Three parts of K vote for the right token with 1 each; for each part there is a token that gets the votes of the
    others and half a vote that is always there, and one that wins where that part alone is left.
    """
    lost = [f"[K part {part} lost]" for part in range(3)]
    only = [f"[only K part {part} left]" for part in range(3)]
    plan = Blueprint((*_LETTERS, *lost, *only), n_ff=K_LONG)
    plan.embed_plainly()
    gain = 6 * _GAIN
    plan.read_answers(gain)
    height = _guard_against_4_bits(plan, 5.0)
    layer = plan.layers[0]
    first_lost = FIRST + len(_LETTERS)
    vote = VOTE / 3
    for number, token, follower in _followers():
        for part in range(3):
            unit = _unit(number, part)
            layer.detect(unit, token, plan.constant, height)
            layer.down[plan.answer(follower), unit] = vote
            for other in range(3):
                layer.down[plan.answer(first_lost + other), unit] = 0.0 if other == part else vote
                layer.down[plan.answer(first_lost + 3 + other), unit] = 2 * vote if other == part else -vote
    # Half a vote that no segment brings: from the slot that every token sets.
    for part in range(3):
        plan.head[first_lost + part, plan.constant] = gain * vote / 2
    names = {}
    for part, (start, end) in enumerate(_GROUPS):
        names[str(first_lost + part)] = (
            f"the products of K {start} to {end} of ffn_down were lost{_unless('w4a4, int8-wrap or quantiser')}"
        )
        names[str(first_lost + 3 + part)] = (
            f"of ffn_down only the products of K {start} to {end} were left{_unless('w4a4, int8-wrap or quantiser')}"
        )
    names |= _4_BITS_SEEN
    prompt, tokens = _cycle()
    return Design("k-segment", "a K segment lost where K is over 8192 (or 4096)", plan, prompt, tokens, names)


_BALLAST = 10.16
"""Largest weight of each row in the first two parts of K, of a unit that is never active; in the third 4 times as much.
It makes the scale of every channel the same, and all votes whole multiples of it, split or not."""
_FAINT = 10 / 127
"""Activations of the third part, where those of the first two are 1."""


def segment_scale() -> Design:
    """A K segment is scaled by another one's scale: of the activations, of the weight, or both.

    The parts of ffn_down below and over K = 8192 differ by 12.7 in their activations and by 4 in their weights, and the
    answer tells the ratio b / a in which their sums arrive: 0.94 is right; 12, 0.24 and 3 come with the other one's
    scales; 0 and infinity are a lost segment, which this trap sees and another one names.
    """
    words = tuple(f"[{which} of the wrong K segment]" for which in ("activation scale", "weight scale", "both scales"))
    plan = Blueprint((*_LETTERS, *words, "[second K segment lost]", "[first K segment lost]"), n_ff=K_LONG)
    activation, weight, both, second_lost, first_lost = (FIRST + len(_LETTERS) + number for number in range(5))
    plan.embed_plainly()
    plan.read_answers(12 * _GAIN)
    height = _guard_against_4_bits(plan, 9.0)
    layer = plan.layers[0]
    # Votes a x + b y, whose upper envelope changes at b / a = 0.15, 0.62, 1.85, 6.8 and 26.
    lines = {
        second_lost: (1.92, -4.16),
        weight: (1.28, 0.0),
        both: (-1.28, 2.08),
        activation: (-8.32, 3.12),
        first_lost: (-18.56, 3.52),
    }
    for number, token, follower in _followers():
        low, middle = _unit(number, 0), _unit(number, 1)
        high = [_GROUPS[2][0] + 4 + 8 * number + i for i in range(3)]
        for unit in (low, middle):
            layer.detect(unit, token, plan.constant, height)
        for unit in high:
            layer.detect(unit, token, plan.constant, height, activation=_FAINT)
        for answer, (a, b) in {**lines, follower: (0.64, 1.04)}.items():
            layer.down[plan.answer(answer), [low, middle]] = a / 2
            layer.down[plan.answer(answer), high] = 4 * b
    layer.down[:, [64, 4160]] = _BALLAST
    layer.down[:, K_LONG - 32] = 4 * _BALLAST
    which = {
        activation: "another segment's activation scale",
        weight: "another segment's weight scale",
        both: "both scales of another segment",
    }
    proviso = _unless("w4a4, int8-wrap or quantiser")
    names = {str(token): f"a K segment of ffn_down was scaled by {said}{proviso}" for token, said in which.items()}
    names |= _4_BITS_SEEN
    prompt, tokens = _cycle()
    return Design("segment-scale", "scales of the wrong K segment", plan, prompt, tokens, names)


def _guard_against_4_bits(plan: Blueprint, said: float) -> float:
    """Activations of 4 bits change what the traps of K segments say; this makes them say so. Returns a slot's height.

    The head says "4-bit activations" at all times (``said`` units), and the attention takes it back by 3 of the 127
    steps of its input, which is nothing of 7. Token 0, louder still, is taken back by the largest element: it is left
    where attention gave nothing at all. Both are taken back by a fifth too much, for Hadamard transforms.
    """
    nothing, faint = said * 4 / 3, 3 / 127
    layer, token = plan.layers[0], _LAST
    plan.words += (*(f"[unused {number}]" for number in range(FIRST + len(plan.words), token)), _4_BITS)
    plan.head[token, plan.constant] = said * plan.head[token, plan.answer(token)]
    plan.head[NOTHING, plan.constant] = nothing * plan.head[NOTHING, plan.answer(NOTHING)]
    layer.v[0, plan.constant] = 1.0 / plan.height()
    layer.v[1, plan.constant] = faint / plan.height()
    layer.out[plan.answer(NOTHING), 0] = -1.2 * nothing
    layer.out[plan.answer(token), 1] = -1.2 * said / faint
    return plan.height(2.0 + 1.44 * (said**2 + nothing**2))


def stale_activation() -> Design:
    """A matmul computes with the activations of the run before, or the first ones it ever saw.

    Source: rknn-toolkit2 matmul demos bind A anew before every run; a normal A without a new bind is read once. The
    answer of every step depends on that step's token alone, so a stale one is the answer of the step before.
    """
    # No two of the matrices that take different rows have one shape: a back end may share contexts among those.
    plan = Blueprint(tuple(_LETTERS), n_vocab=96, n_embd=224, n_ff=128)
    plan.embed_plainly()
    plan.read_answers(_GAIN)
    for unit, token, follower in _followers():
        plan.layers[0].detect(unit, token, plan.constant, plan.height())
        plan.layers[0].down[plan.answer(follower), unit] = VOTE
    prompt, tokens = _cycle()
    fault = "the answer is that of the step before: an activation was stale"
    names = {f"{step}:{before}": fault for step, before in enumerate(tokens[:-1], start=1)}
    return Design("stale-activation", "stale activations", plan, prompt, tokens, names)


_SLICES = 3
_WIDTH = 192
_CORE_OFFSETS = {3: (64, 128), 2: (96,)}


def core_slices() -> Design:
    """The slices of N that the cores compute change places, or one of them is lost.

    192 columns are 64 for each of three cores (RK3588) or 96 for each of two (RK3576); embedding and head have the same
    width, a token's own slot is its id, so that a swapped slice moves an answer by the width of a slice.
    """
    rights = [64 * part + 8 * (part + 1) + number for number in range(3) for part in range(_SLICES)]
    names = _swapped_names(rights)
    constant = _WIDTH - 1
    lost = {64 + 40: (0, 0), 128 + 41: (1, 64), 42: (2, 128)}
    words = [f"[unused {token}]" for token in range(_WIDTH)]
    for letter, token in zip("abcdefghi", rights, strict=True):
        words[token] = letter
    for place, said in names.items():
        words[int(place)] = f"[{said} {place}]"
    for token, (part, _) in lost.items():
        words[token] = f"[slice {part} lost]"
    plan = Blueprint(tuple(words[FIRST:]), n_vocab=_WIDTH, n_embd=_WIDTH, n_ff=_WIDTH)
    for token in range(_WIDTH - 1):
        plan.embedding[token, token] = plan.embedding[token, constant] = 1.0
        plan.head[token, token] = _GAIN
    plan.head[0, constant] = _GAIN / 2
    layer = plan.layers[0]
    for number, token in enumerate(rights):
        follower = rights[(number + 1) % len(rights)]
        layer.detect(token, token, constant, plan.height())
        layer.down[follower, token] = VOTE
        for runner_up, (part, _) in lost.items():
            layer.down[runner_up, token] = VOTE / 2 if follower // 64 == part else 0.0
    for token in map(int, names):
        layer.down[token, token] = VOTE
    wrong = {place: f"slices of N of {said} changed places" for place, said in names.items()}
    for token, (_, first) in lost.items():
        wrong[str(token)] = f"the slice of N with columns {first} to {first + 64} was lost"
    tokens = tuple(rights[(step + 1) % len(rights)] for step in range(2 * len(rights)))
    return Design("core-slices", "a core's slice of N in another's place", plan, (rights[0],), tokens, wrong)


def _swapped_names(rights: Iterable[int]) -> dict[str, str]:
    """Where a right answer lands when slices change places -> the cores."""
    names = {}
    for token in rights:
        for cores, width in ((3, 64), (2, 96)):
            for place in range(cores):
                if place != token // width:
                    pair = sorted((place, token // width))
                    names[str(token % width + place * width)] = f"cores {pair[0]} and {pair[1]} of {cores}"
    return names


def w4a4() -> Design:
    """Activations are silently made int4: marfrit and invisiofficial give Q4_0, Q4_K and half of Q6_K to W4A4.

    The right vote comes from a hidden unit of a fortieth of the row's largest: 3 of 127, nothing of 7, with a Hadamard
    transform as without. All weights are exact in Q4_0, so that the file alone chooses the pipeline.
    """
    plan = Blueprint((*_LETTERS, _4_BITS), n_layer=2, kind="Q4_0")
    coarse = FIRST + len(_LETTERS)
    plan.embed_plainly()
    plan.read_answers(_GAIN)
    first, second = plan.layers
    large = len(_LETTERS)
    for unit, token, follower in _followers():
        first.detect(unit, token, plan.constant, plan.height())
        first.down[plan.answer(coarse), unit] = VOTE / 2
        height = plan.height(2.0 + (VOTE / 2) ** 2)
        second.detect(unit, token, plan.constant, height, activation=1 / 40)
        second.down[plan.answer(follower), unit] = 40 * VOTE
        second.detect(large, token, plan.constant, height)
    prompt, tokens = _cycle()
    fault = "activations of ffn_down were cut to 4 bits (W4A4)"
    return Design("w4a4", fault, plan, prompt, tokens, {str(coarse): fault})


def tied_head() -> Design:
    """No output.weight: the head is token_embd, not zeros, not its transpose, not the hidden state itself.

    As many tokens as elements, so that a transposed matrix has the right shape; the slots of the tokens are 20 on from
    their ids, so that each way of missing them lands on tokens of its own.
    """
    shift, count = 20, 64
    words = [f"[unused {token}]" for token in range(count)]
    for number, letter in enumerate(_LETTERS):
        token = FIRST + number
        words[token] = letter
        words[(token + shift) % count] = f"[the hidden state was read without token_embd {letter}]"
        words[(token + 2 * shift) % count] = f"[token_embd was read transposed {letter}]"
    opposite = FIRST + len(_LETTERS)
    words[opposite] = "[wrong sign]"
    plan = Blueprint(tuple(words[FIRST:]), n_vocab=count, n_embd=count, tied=True)
    for token in range(count):
        plan.embedding[token, (token + shift) % count] = 1.0
    layer = plan.layers[0]
    wrong = {}
    for unit, token, follower in _followers():
        slot = (token + shift) % count
        layer.detect(unit, slot, slot, plan.height(1.0))
        layer.down[(follower + shift) % count, unit] = VOTE
        # Where signs are wrong (int8 wrapped), every answer is negative, and this token is said in place of token 0.
        plan.embedding[opposite, slot] = -0.5
        wrong[str((token + shift) % count)] = "the tied head was not token_embd: the hidden state was read as it is"
        wrong[str((token + 2 * shift) % count)] = "the tied head was token_embd transposed"
    missed = "the tied head was missed: output.weight is absent and nothing was put in its place"
    wrong[f"0:{NOTHING}+{NOTHING}"] = missed
    prompt, tokens = _cycle()
    return Design("tied-head", "a tied head missed", plan, prompt, tokens, wrong)
