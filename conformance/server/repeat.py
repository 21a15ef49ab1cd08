# SPDX-License-Identifier: Apache-2.0
"""Is greedy decoding greedy, and the same every time?"""

from __future__ import annotations

from conformance.bench import NotServed, Wrong
from conformance.server.bench import ServerBench
from conformance.server.difference import NEAR_TIE, UNCLEAR, Difference, first_difference, path_of, step_at
from conformance.server.replies import Completion
from conformance.server.sides import N_PROBS, Side, speculates

MIN_STEPS = 16
"""A run that ends sooner says nothing."""


def greedy_is_repeatable(bench: ServerBench) -> str:
    """The same prompt at temperature 0 gives the same tokens again, with other prompts in between.

    Sources: vllm issue 7627 and llama.cpp issue 3014 (the same prompt, other tokens).
    """
    count, n, times = bench.pick(2, 3, 6), bench.pick(48, 96, 256), bench.pick(2, 3, 4)
    prompts = bench.fresh(count)
    first = [bench.server.complete(prompt, n, ignore_eos=True) for prompt in prompts]
    for prompt, wanted in zip(prompts, first, strict=True):
        if not wanted.steps:
            raise Wrong(f"nothing is generated for a prompt of {len(prompt)} characters")
    shortest = min(len(told.steps) for told in first)
    if shortest < MIN_STEPS:
        raise NotServed(f"of {n} tokens asked for it generates {shortest} (ignore_eos is set): too few to judge")
    for _ in range(times - 1):
        for prompt, wanted in zip(prompts, first, strict=True):
            _same(bench, prompt, wanted, bench.server.complete(prompt, n, ignore_eos=True))
    kind = "token ids" if first[0].tokens is not None else "texts (it gives no token ids)"
    said = f"{count} prompts by {shortest} steps or more, {times} times each in turn: the same {kind}"
    return "; ".join([said, *(f"but for a tie between batch shapes of drafts: {text}" for text in bench.known)])


def greedy_takes_the_most_likely(bench: ServerBench) -> str:
    """At temperature 0 each token that comes without a draft is the one on top of its own log-probabilities.

    A service whose default sampler stays in the chain (a penalty, a minimum, mirostat) gives plausible text that no
    greedy reference can match.
    """
    n = bench.pick(48, 128, 256)
    checked = tied = 0
    for prompt in bench.fresh(bench.pick(1, 2, 4), ("prose", "copy")):
        told = bench.server.complete(prompt, n, ignore_eos=True, n_probs=N_PROBS)
        for place, row in enumerate(told.rows):
            if not row.logprobs:
                continue
            top = max(row.logprobs, key=lambda token: row.logprobs[token])
            checked += 1
            if row.token == top:
                continue
            if row.token in row.logprobs and row.logprobs[top] - row.logprobs[row.token] < 1e-5:
                tied += 1  # float32 log-probabilities of logits that differ in their last bits
                continue
            above = row.logprobs[top] - row.logprobs.get(row.token, min(row.logprobs.values()))
            raise Wrong(
                f"token {place} is not the most likely one at temperature 0: {row.token!r} is taken, {top!r} is "
                f"{above:.2f} nats or more above it; a sampler of the service stays in the chain"
            )
    if not checked:
        raise NotServed("it gives no log-probabilities (n_probs), so what it takes cannot be held against them")
    if checked < MIN_STEPS:
        raise NotServed(
            f"only {checked} tokens came with log-probabilities, the others out of drafts: too few to judge"
        )
    return f"{checked} tokens, each on top of its row" + (f" ({tied} of them tied)" if tied else "")


def _same(bench: ServerBench, prompt: str, wanted: Completion, again: Completion) -> None:
    """Notes a tie where drafts change the batch shape; raises :class:`Wrong` for any other difference."""
    place = first_difference(wanted.steps, again.steps)
    if place is None:
        return
    side = Side("", bench.server)
    first, later = step_at(wanted.steps, place), step_at(again.steps, place)
    row = side.row_after(side.ids_before(prompt, wanted, place))
    path = path_of("path that reads the prefix at once", row, first, later)
    paths = () if path is None else (path,)
    found = Difference(place, first, later, paths, None, ("at first", "when the prompt is sent again"))
    if speculates(bench.props, bench.server) and not bench.f32 and found.kind in (NEAR_TIE, UNCLEAR):
        # Drafts differ with what the service has seen since, and so do the batch shapes.
        bench.known.append(found.sentence())
        return
    raise Wrong(
        f"greedy decoding is not repeatable: {found.sentence()}. Without drafts nothing differs between the two; look "
        "for a cache that keeps something, a sampler that is not greedy, or requests of others in the same batch"
    )
