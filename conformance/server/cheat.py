# SPDX-License-Identifier: Apache-2.0
"""Is a repeated prompt faster, though nothing is to be kept? Then every benchmark that repeats a prompt flatters."""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.bench import NotServed, Wrong
from conformance.cache_cheat import Speeds, compare_speeds
from conformance.server.bench import ServerBench
from conformance.server.client import NotOffered
from conformance.server.replies import Completion


@dataclass
class Timed:
    """Milliseconds of one kind of prompt, and how many drafted tokens were accepted."""

    prefill: list[float] = field(default_factory=list)
    decode: list[float] = field(default_factory=list)
    accepted: int = 0

    def take(self, told: Completion) -> None:
        """Adds one exchange."""
        timings = told.timings
        if timings.prompt_ms is None or timings.predicted_ms is None or not timings.predicted_n:
            raise NotServed("it tells no timings of prefill and decode")
        self.prefill.append(timings.prompt_ms)
        self.decode.append(timings.predicted_ms / timings.predicted_n)
        self.accepted += timings.draft_n_accepted or 0


def repeated_prompt_is_not_faster(bench: ServerBench) -> str:
    """With ``cache_prompt`` false a repeated prompt takes as long as distinct ones of its length, within 10 %.

    Sources: MLPerf Inference compliance test TEST04 (repeated samples may not be more than 10 % faster); a campaign on
    RK3588 in which identical prompts gave every strategy acceptance 1.0 and 3 to 4.6 times the speed.
    """
    distinct, repeated = _measured(bench)
    prefill, decode = _speeds(distinct, repeated)
    if prefill.cheats or decode.cheats:
        # Once is a chance, twice is a cache.
        distinct, repeated = _measured(bench)
        prefill, decode = _speeds(distinct, repeated)
    if prefill.cheats:
        raise Wrong(f"prefill, measured twice: {prefill.sentence('ms')}, though cache_prompt is false")
    sentences = [f"prefill: {prefill.sentence('ms')}"]
    if decode.cheats:
        sentences.append(_of_decode(bench, decode, distinct, repeated))
    elif prefill.cheats is None or decode.cheats is None:
        raise NotServed(f"not decided: prefill: {prefill.sentence('ms')}; decode: {decode.sentence('ms per token')}")
    else:
        sentences.append(f"decode: {decode.sentence('ms per token')}")
    return "; ".join(sentences)


def _speeds(distinct: Timed, repeated: Timed) -> tuple[Speeds, Speeds]:
    return compare_speeds(distinct.prefill, repeated.prefill), compare_speeds(distinct.decode, repeated.decode)


def _measured(bench: ServerBench) -> tuple[Timed, Timed]:
    """New prompts and the first of them again, in turns. Wrong where the service says that it took a cache."""
    count, n = bench.pick(5, 8, 12), bench.pick(64, 96, 192)  # llama.cpp's ngram-mod learns 32 tokens at a time
    prompts = _of_one_length(bench, bench.fresh(count + 1, ("prose",)))
    again, distinct, repeated = prompts[0], Timed(), Timed()
    bench.server.complete(again, n, ignore_eos=True)
    for prompt in prompts[1:]:
        distinct.take(bench.server.complete(prompt, n, ignore_eos=True))
        told = bench.server.complete(again, n, ignore_eos=True)
        if told.timings.cache_n:
            raise Wrong(
                f"cache_prompt is false, and yet {told.timings.cache_n} tokens of a repeated prompt come from a cache: "
                "prefill of a repeated prompt is not measured"
            )
        repeated.take(told)
    return distinct, repeated


def _of_decode(bench: ServerBench, decode: Speeds, distinct: Timed, repeated: Timed) -> str:
    """Drafts out of an earlier answer are what n-gram tables do: flagged, and no fault of the numbers."""
    said = f"decode: {decode.sentence('ms per token')}"
    if repeated.accepted <= distinct.accepted:
        raise Wrong(f"{said}, and no accepted drafts explain it ({repeated.accepted} against {distinct.accepted})")
    told = (
        f"{said} ({repeated.accepted} drafted tokens accepted against {distinct.accepted}): n-gram tables live across "
        "requests; a benchmark of this service needs a fresh prompt every time"
    )
    bench.known.append(told)
    return told


def _of_one_length(bench: ServerBench, texts: list[str]) -> list[tuple[int, ...]]:
    """As ids, cut to the shortest, so that equal work is timed. NotServed where it gives no ids."""
    try:
        ids = [bench.server.tokenize(text) for text in texts]
    except NotOffered as error:
        raise NotServed(f"{error}; prompts of one length cannot be made without") from error
    least = min(map(len, ids))
    return [one[:least] for one in ids]
