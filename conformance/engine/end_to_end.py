# SPDX-License-Identifier: Apache-2.0
"""End to end: what a pipeline costs a model, beside what two correct implementations of it differ by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conformance.bench import NotServed, Wrong
from conformance.engine.bench import EngineBench
from conformance.engine.targets import Target, long_text
from reference_engine.backends.presets import parse_pipeline
from reference_engine.quality.document import distance
from reference_engine.quality.evaluate import Text, cut, evaluate, noise_floor

DITHER = "a_clip=1.01,b_clip=1.01,clamp=on"
"""Scales that are 1 % larger: another correct quantiser, every element of which may round another way."""

FLOORS = 2.0
"""How many floors a pipeline may be from float. Measured: 0.55 to 0.8 with int8 and int4, because two independent
roundings are further apart than one is from none."""


@dataclass(frozen=True)
class Limit:
    """Beyond this a pipeline is broken on this model: mean KL divergence, perplexity over float's."""

    kl: float
    perplexity: float


OWN = {8: Limit(0.01, 1.03), 4: Limit(0.6, 1.6), 16: Limit(1e-5, 1.002)}
"""Of the kit's models. Measured: int8 0.0002 to 0.002 nats and 1.009, int4 0.04 to 0.25 and 1.25, fp16 1e-6."""

OTHERS = {8: Limit(0.25, 1.20), 16: Limit(1e-3, 1.01)}
"""Of any model. W8A8 per channel costs Gemma 3 270M and SmolLM2 135M 0.04 to 0.10 nats by the text, perplexity 1.04 to
1.05; one scale for a whole activation matrix, which is broken, 0.27 to 0.85."""


@dataclass(frozen=True)
class Figures:
    """Of one pipeline: mean KL against float, share of same tops, perplexity ratio, and the two floors (mean KL)."""

    kl: float
    same_top: float
    perplexity: float
    dithered: float
    shaken: float

    @property
    def floor(self) -> float:
        return max(self.dithered, self.shaken)

    def sentence(self) -> str:
        return (
            f"KL {self.kl:.2g}, same top {self.same_top:.3f}, perplexity x{self.perplexity:.4f} against float; floor "
            f"{self.floor:.2g} (other roundings {self.dithered:.2g}, norms shaken by 1e-7 {self.shaken:.2g})"
        )


def end_to_end(bench: EngineBench) -> str:
    """A pipeline is no further from float than its own roundings explain, by KL divergence, same top and perplexity.

    Source: published practice compares tokens or logits of whole models; noise of 1e-7 on the norms, another batch
    shape or half-even rounding move its logits as much as the whole quantisation, so figures mean something beside a
    floor of the same run alone.
    """
    parts = []
    for target in bench.targets:
        presets = bench.pick(
            ("w8a8-per-channel",), ("w8a8-per-channel", "w8a8-segment", "w8a8-hadamard", "w4a4-hadamard", "w16a16")
        )
        text = _text(bench, target)
        for preset in presets:
            where = f"{target.name} {bench.engine}:{preset}, {text.tokens} tokens"
            found = _figures(bench, target, preset, text=text, where=where)
            _judge(bench, target, preset, found=found, where=where)
            parts.append(f"{where}: {found.sentence()}")
    return "; ".join(parts)


def _text(bench: EngineBench, target: Target) -> Text:
    tokens = bench.tokens(target, long_text())
    length, chunks = bench.pick((256, 1), (256, 4)) if target.embedded else bench.pick((64, 1), (128, 2))
    try:
        return cut(tokens, length, None, most=chunks)
    except ValueError as error:
        raise NotServed(f"{target.name}: {error}") from error


def _figures(bench: EngineBench, target: Target, preset: str, *, text: Text, where: str) -> Figures:
    judged = bench.model(target, bench.backend(preset))
    plain = bench.plain_model(target, bench.float_backend())
    against_float = distance(evaluate([("float", plain), (preset, judged)], text)[1].rows)
    # The floor is the emulation's, so that what is wrong with the judged engine does not lift it.
    emulation, dithered = bench.plain_model(target, bench.backend(preset, judged=False)), 0.0
    if parse_pipeline(preset).bits != 16:
        other = bench.plain_model(target, bench.backend(f"{preset},{DITHER}", judged=False))
        dithered = distance(evaluate([("dithered", other), (preset, emulation)], text)[1].rows)["kl_mean"]["value"]
    shaken = distance(noise_floor(emulation, text.chunks[0], seed=bench.seed).rows)["kl_mean"]["value"]
    if bench.engine == "device":
        _as_the_emulation(where, distance(evaluate([("emulation", emulation), (preset, judged)], text)[1].rows), shaken)
    return Figures(
        against_float["kl_mean"]["value"],
        against_float["same_top"]["value"],
        against_float["perplexity_ratio"]["value"],
        dithered,
        shaken,
    )


def _as_the_emulation(where: str, found: dict[str, Any], floor: float) -> None:
    """The same engine on both sides: where every product is exact there is no distance at all."""
    kl = found["kl_mean"]["value"]
    if kl > 2 * floor:
        raise Wrong(
            f"{where}: KL {kl:.3g} against the emulation, whose own floor is {floor:.3g} (norms shaken by 1e-7); see "
            "matmul_device for the matmul"
        )


def _judge(bench: EngineBench, target: Target, preset: str, *, found: Figures, where: str) -> None:
    bits = parse_pipeline(preset).bits
    limit = (OWN if target.embedded else OTHERS).get(bits)
    if limit is not None and (found.kl > limit.kl or found.perplexity > limit.perplexity):
        excuse = "" if target.embedded else ": this model does not stand the pipeline, or the pipeline is broken"
        raise Wrong(
            f"{where}: beyond a KL of {limit.kl:g} or a perplexity ratio of {limit.perplexity:g}{excuse}; "
            f"{found.sentence()}"
        )
    if bits != 16 and found.kl > FLOORS * found.floor + 1e-6:
        raise Wrong(
            f"{where}: further from float than {FLOORS:g} times what rounding another way does; {found.sentence()}"
        )
    if found.kl > 1:
        bench.known.append(f"{where}: KL {found.kl:.2g} against float; 4 bits are known to break models")
