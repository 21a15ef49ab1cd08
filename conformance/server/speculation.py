# SPDX-License-Identifier: Apache-2.0
"""Does speculation change what a service answers, and what does it bring?"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from conformance.bench import NotServed, Wrong
from conformance.server.bench import ServerBench
from conformance.server.difference import (
    NEAR_TIE,
    RULED_OUT,
    Difference,
    Path,
    first_difference,
    noise_between,
    path_of,
    step_at,
)
from conformance.server.replies import Completion, Metrics, Row
from conformance.server.sides import N_PROBS, Side, sides_of, speculates

DRAFTED, ACCEPTED = "spec_decode_num_draft_tokens_total", "spec_decode_num_accepted_tokens_total"

MIN_STEPS = 32
"""A shorter comparison has missed real faults (mlx-swift-lm issue 542)."""


@dataclass(frozen=True)
class Pair:
    """One prompt on both sides."""

    prompt: str
    off: Completion
    on: Completion

    @property
    def index(self) -> int | None:
        """Of the first difference."""
        return first_difference(self.off.steps, self.on.steps)


def speculation_changes_nothing(bench: ServerBench) -> str:
    """With speculation on and off the greedy tokens are the same: on F32 weights with F32 KV to the last one, on
    quantised weights up to ties, and every difference comes with its position, its gap in both paths and its class.

    Sources: llama.cpp issues 23302, 23335 and 25618 (speculation alters greedy output; the A-B-B-A order), mlx-swift-lm
    issue 542 (only after 200 tokens). Each prompt is sent once to each side, in the order A-B-B-A.
    """
    off, on = sides_of(bench)
    count, n = bench.pick(4, 6, 12), bench.pick(64, 128, 512)
    before = bench.server.metrics()
    pairs = run_pairs(bench, off, on, count, n)
    counted = acceptance(pairs, before, bench.server.metrics())
    if any(pair.off.timings.draft_n for pair in pairs):
        raise NotServed(f"the side without speculation drafts too ({off.client.url}): there is nothing to compare with")
    shortest = min(max(len(pair.off.steps), len(pair.on.steps)) for pair in pairs)
    if shortest < MIN_STEPS:
        raise NotServed(f"of {n} tokens asked for {shortest} are generated (ignore_eos is set): too few to judge")
    told = [judged(bench, pair, off, on, pair.index) for pair in pairs if pair.index is not None]
    if not told and (counted[0] == 0 if counted is not None else speculates(bench.props, bench.server) is None):
        what = "no draft was made" if counted else "nothing shows that a draft was made"
        raise NotServed(f"{what} for {count} prompts of {n} tokens: nothing was verified")
    bench.known += told
    kv = {True: " and F32 KV", False: " and a KV cache that is not F32", None: ""}[bench.kv_f32]
    same = count - len(told)
    sentence = f"{same} of {count} fresh prompts by {n} tokens the same in the order A-B-B-A, on {bench.weights}{kv}"
    return "; ".join([sentence, *told, said_of(counted), speed_of(pairs)])


def run_pairs(bench: ServerBench, off: Side, on: Side, count: int, n: int) -> list[Pair]:
    """A-B-B-A: the first prompt without and then with, the next one with and then without, and so on."""
    found = []
    for number, prompt in enumerate(bench.fresh(count)):
        if number % 2 == 0:
            one = off.ask(prompt, n)
            found.append(Pair(prompt, one, on.ask(prompt, n)))
        else:
            other = on.ask(prompt, n)
            found.append(Pair(prompt, off.ask(prompt, n), other))
    for pair in found:
        if not pair.off.steps and not pair.on.steps:
            raise Wrong(f"neither side generates anything for a prompt of {len(pair.prompt)} characters")
    return found


def judged(bench: ServerBench, pair: Pair, off: Side, on: Side, index: int) -> str:
    """The sentence on a difference. Raises :class:`Wrong` where no correct service makes it."""
    lengths = len(pair.off.steps), len(pair.on.steps)
    if index == min(lengths):
        raise Wrong(
            f"the same tokens, but {lengths[0]} of them without speculation and {lengths[1]} with it: tokens are lost "
            "or added at the end (an accepted draft is counted wrongly)"
        )
    again = off.ask(pair.prompt, len(pair.off.steps), n_probs=N_PROBS)
    own = first_difference(pair.off.steps, again.steps)
    if own is not None and own <= index:
        raise Wrong(
            f"without speculation the same prompt gives another token at {own} when it is sent again: greedy decoding "
            "is not repeatable there, so speculation is not to blame"
        )
    found = explained(pair, off, on, index, again)
    sentence = found.sentence()
    if bench.f32 and (bench.kv_f32 or found.kind != NEAR_TIE):
        raise Wrong(f"speculation changes the output on F32 weights: {sentence}; there it has to be the same")
    if found.kind == RULED_OUT:
        raise Wrong(
            f"speculation takes a token that the service itself rules out: {sentence}. Rounding does not reach so far; "
            "a cache that is not rolled back, or wrong positions of the draft, do"
        )
    return sentence


def explained(pair: Pair, off: Side, on: Side, index: int, again: Completion) -> Difference:
    """Asks for the log-probabilities at the first difference: decoded one by one, and after the whole prefix."""
    greedy, speculative = step_at(pair.off.steps, index), step_at(pair.on.steps, index)
    decode = again.rows[index] if index < len(again.rows) else None
    rows: list[tuple[str, Row | None]] = [("path that decodes one by one", decode)]
    prefix = off.ids_before(pair.prompt, pair.off, index)
    at_once = off.row_after(prefix)
    rows += [
        ("path that reads the prefix at once", at_once),
        ("same path of the service with speculation", on.row_after(prefix)),
    ]
    paths = [path_of(name, row, greedy, speculative) for name, row in rows]
    kept: tuple[Path, ...] = tuple(path for path in paths if path is not None)
    return Difference(index, greedy, speculative, kept, noise_between(decode, at_once))


def acceptance(pairs: list[Pair], before: Metrics | None, after: Metrics | None) -> tuple[int, int] | None:
    """Drafted and accepted tokens: from the answers where they tell, else from the counters of ``/metrics``.

    llama.cpp leaves the fields out of an answer without a draft, so their absence is 0 only beside another that has
    them. None: nobody tells.
    """
    told = [pair.on.timings for pair in pairs if pair.on.timings.draft_n is not None]
    if told:
        drafted = sum(timings.draft_n or 0 for timings in told)
        accepted = sum(timings.draft_n_accepted or 0 for timings in told)
    else:
        counts = [None if page is None else page.get(name) for name in (DRAFTED, ACCEPTED) for page in (before, after)]
        if any(count is None for count in counts):
            return None
        first, last, taken, taken_last = (int(count or 0) for count in counts)
        drafted, accepted = last - first, taken_last - taken
    if accepted > drafted:
        raise Wrong(f"it says that {accepted} of {drafted} drafted tokens were accepted: more than there were")
    return drafted, accepted


def said_of(counted: tuple[int, int] | None) -> str:
    """Acceptance in words."""
    if counted is None:
        return "acceptance is told neither by the answers nor by /metrics"
    drafted, accepted = counted
    return (
        "no draft was made"
        if not drafted
        else f"{accepted} of {drafted} drafted tokens accepted ({accepted / drafted:.2f})"
    )


def speed_of(pairs: list[Pair]) -> str:
    """Median over the prompts of decode speed with by without; whole exchanges where no timings are told."""
    ratios: list[float] = []
    unit = "decode speed by its own timings"
    for pair in pairs:
        one, other = pair.off.timings.decode_tps, pair.on.timings.decode_tps
        if one is None or other is None:
            ratios, unit = [], "time of the whole exchange"
            break
        ratios.append(other / one)
    if not ratios:
        ratios = [pair.off.seconds / max(pair.on.seconds, 1e-9) for pair in pairs]
    return f"{median(ratios):.2f} times the speed without it ({min(ratios):.2f} to {max(ratios):.2f}, {unit})"
