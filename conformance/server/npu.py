# SPDX-License-Identifier: Apache-2.0
"""Does the NPU behind a service work? Prefill says it, beside the same model on the CPU alone."""

from __future__ import annotations

from conformance.bench import NotServed, Wrong
from conformance.offload import MIN_PREFILL
from conformance.offload_rule import Ruling, Speeds, against_cpu
from conformance.server.bench import ServerBench
from conformance.server.sides import speculates


def npu_is_used_in_prefill(bench: ServerBench) -> str:
    """Prefill is faster than on the CPU alone (``--server-off``, same model) by more than a CPU setting gives.

    Source: a campaign on RK3588, where decode was 7 % apart with and without the NPU and could show nothing, while
    prefill was three times the CPU's. Fresh prompts in the order A-B-B-A, speeds from the answers' own timings.
    """
    if bench.off is None or bench.off_props is None:
        raise NotServed("needs --server-off: the same model served on the CPU alone; prefill is compared, not decode")
    if speculates(bench.props, bench.server) or speculates(bench.off_props, bench.off):
        raise NotServed("one of the two services speculates: this check is about the NPU alone; start both without")
    prefill: tuple[list[float], list[float]] = ([], [])
    decode: tuple[list[float], list[float]] = ([], [])
    sides = (bench.off, bench.server)
    for number in range(bench.pick(4, 8, 16)):
        prompt = "\n\n".join(bench.fresh(3))
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            timings = sides[side].complete(prompt, 16, ignore_eos=True).timings
            if timings.prefill_tps is None or timings.decode_tps is None:
                raise NotServed(f"{sides[side].url} tells no timings, and a whole exchange mixes prefill with decode")
            if (timings.prompt_n or 0) < MIN_PREFILL:
                raise Wrong(
                    f"{sides[side].url} says that it read {timings.prompt_n} tokens of a prompt of {len(prompt)} "
                    "characters that was never sent before: its timings are not of this prompt"
                )
            prefill[side].append(timings.prefill_tps)
            decode[side].append(timings.decode_tps)
    told = against_cpu(
        [Speeds("prefill", *_middle(prefill))],
        [Speeds("decode", *_middle(decode))],
    )
    if told.ruling is Ruling.NOT_USED:
        raise Wrong(f"{told.ruling.value}: {told.why}")
    if told.ruling is Ruling.CANNOT_TELL:
        raise NotServed(f"{told.ruling.value}: {told.why}")
    return f"{told.ruling.value}: {told.why}"


def _middle(rates: tuple[list[float], list[float]]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The middle half of the samples of each side: one exchange disturbed by something else decides nothing."""
    one, other = (sorted(side)[len(side) // 4 : len(side) - len(side) // 4] for side in rates)
    return tuple(one), tuple(other)
