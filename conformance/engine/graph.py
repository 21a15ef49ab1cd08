# SPDX-License-Identifier: Apache-2.0
"""The float parts of a model on their own recorded inputs: RoPE, attention, norms, activations, the head."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from conformance.bench import NotServed, Wrong
from conformance.engine import graph_oracle as oracle
from conformance.engine.bench import EngineBench
from conformance.engine.graph_oracle import F64, Look, Turn
from conformance.engine.targets import Target, long_text
from reference_engine.gguf_hparams import Hparams
from reference_engine.model import KvOptions, Model

# Of what a layer's largest value is. Angles are products of float32 in the engine: an error grows with the position.
_ROPE, _ATTENTION, _STEP = 2e-3, 2e-4, 2e-5

# The pairs that RoPE turns lie side by side where the converter has permuted the rows.
_SIDE_BY_SIDE = ("llama",)
_SCALED_BEFORE = ("gemma2", "gemma3", "gemma4")
KNOWN = ("llama", "qwen2", "qwen3", "qwen35", *_SCALED_BEFORE)
_UNTRACED_VALUES = ("qwen35",)
_KEPT = ("Qcur", "Kcur", "Vcur", "kqv_out", "ffn_", "l_out", "result_")
_PASS = 250  # rows of one pass of the engine, so that every step comes once
_COMMON_BASES = (10000.0, 100000.0, 500000.0, 1000000.0)


@dataclass
class Steps:
    """Intermediate results of one pass by layer and name, in the order in which they came."""

    model: Model
    tokens: int
    found: dict[tuple[int, str], NDArray[np.float32]] = field(default_factory=dict)

    def keep(self, name: str, layer: int, array: NDArray[np.float32]) -> None:
        """A trace: the array is scratch. Of an activation that comes twice (gemma4) the first one, behind the FFN."""
        if name.startswith(_KEPT) and not (name == "ffn_geglu" and (layer, name) in self.found):
            self.found[layer, name] = array.copy()

    def last(self, layer: int, *names: str) -> F64 | None:
        """The first of ``names`` that the layer has."""
        found = next((self.found[layer, name] for name in names if (layer, name) in self.found), None)
        return None if found is None else found.astype(np.float64)

    @property
    def hparams(self) -> Hparams:
        return self.model.hparams

    @property
    def layers(self) -> tuple[int, ...]:
        return self.model.layers


def steps_of(bench: EngineBench, target: Target) -> Steps:
    """One pass, long enough for a token to fall out of the window where that is affordable."""
    model = bench.model(target, bench.float_backend(), kv=KvOptions("f32", "f32"), most_layers=bench.pick(8, 16))
    wanted = max([96, *(window + 40 for window in model.graph.layer_windows if window)])
    tokens = bench.tokens(target, long_text())[: min(wanted, _PASS, model.n_ctx)]
    steps = Steps(model, len(tokens))
    model.forward(tokens, model.new_cache(), rows="all", trace=steps.keep)
    return steps


def known_steps(bench: EngineBench) -> Iterator[tuple[Target, Steps]]:
    """Models whose graph is known here."""
    for target in bench.targets:
        steps = steps_of(bench, target)
        if steps.hparams.architecture in KNOWN:
            yield target, steps


def _factors(steps: Steps, layer: int) -> F64 | None:
    """gemma4 has them for layers without a window, llama for all."""
    tensor = steps.model.file.tensors.get("rope_freqs.weight")
    if tensor is None or (steps.hparams.architecture == "gemma4" and steps.hparams.in_window(layer)):
        return None
    return tensor.dequantize().astype(np.float64).reshape(-1)


def turn_of(steps: Steps, layer: int) -> Turn:
    """What the file says of a layer's RoPE. NotServed for what is not known here."""
    hparams = steps.hparams
    kind = hparams.values["rope.scaling.type"]
    factor = hparams.number("rope.scaling.factor")
    if kind == "yarn":
        raise NotServed("RoPE by YaRN is not known here")
    base, n_rot, scale = hparams.number("rope.freq_base"), hparams.integer("rope.dimension_count"), 1.0
    if hparams.in_window(layer) and hparams.values.get("rope.freq_base_swa") is not None:
        base = hparams.number("rope.freq_base_swa")
        n_rot = hparams.optional_integer("rope.dimension_count_swa") or n_rot
    elif kind == "linear" and factor:
        scale = 1.0 / factor
    neox = hparams.architecture not in _SIDE_BY_SIDE
    return Turn(n_rot, base, neox, scale, _factors(steps, layer))


def graph_rope(bench: EngineBench) -> str:
    """Queries and keys are turned by the base, factors and pairs that the file gives for their kind of layer.

    Source: models with windows have two bases (gemma3: 1e6 and 1e4), and mixing them up gives fluent text that forgets;
    llama.cpp's converter permutes rows for one kind of pairs, so the other one is a known way to get garbage.
    """
    judged, names = 0, []
    for target, steps in known_steps(bench):
        names.append(target.name)
        hparams = steps.hparams
        own = {hparams.number(key) for key in ("rope.freq_base", "rope.freq_base_swa") if hparams.values.get(key)}
        for layer in steps.layers:
            turn = turn_of(steps, layer)
            bases = tuple({*own, *_COMMON_BASES, 10 * turn.base, turn.base / 10})
            for what in ("Q", "K"):
                turned = steps.last(layer, f"{what}cur_rope")
                before = steps.last(layer, f"{what}cur_normed", f"{what}cur")
                if turned is None or before is None:
                    continue
                before = before.reshape(turned.shape)
                positions = np.arange(len(turned))
                wrong = oracle.far(turned, turn(before, positions), _ROPE)
                if wrong is not None:
                    suspects = oracle.mistaken_turns(turn, bases)
                    cause = _cause({words: t(before, positions) for words, t in suspects.items()}, turned, _ROPE)
                    raise Wrong(
                        f"{target.name}, layer {layer}: {what} at position {wrong[0]} is not turned as the file says "
                        f"(RoPE base {turn.base:g}, {turn.n_rot} dimensions), off by {wrong[1]:.2g} of its size{cause}"
                    )
                judged += 1
    if not judged:
        raise NotServed(f"this suite knows the RoPE of {', '.join(KNOWN)}")
    return f"{judged} queries and keys of all layers of {' and '.join(names)}, against float64"


def graph_attention(bench: EngineBench) -> str:
    """Each layer attends to the positions, keys and values that the file gives it: window, groups, shared layers.

    Source: a window of n masks position differences of n and more (llama-hparams.h); off by one it changes nothing
    that a short test would see. gemma4's last layers read keys and values of earlier ones.
    """
    judged, windows, names = 0, set(), []
    for target, steps in known_steps(bench):
        if steps.hparams.architecture in _UNTRACED_VALUES:
            continue
        names.append(target.name)
        for layer in steps.layers:
            found, q = steps.last(layer, "kqv_out"), steps.last(layer, "Qcur_scaled", "Qcur_rope")
            source = steps.hparams.kv_source(layer)
            k, v = steps.last(source, "Kcur_rope"), steps.last(source, "Vcur_normed", "Vcur")
            if found is None or q is None or k is None or v is None:
                continue
            v = v.reshape(len(k), k.shape[1], -1)
            look = _look(steps, layer)
            windows.add((look.window, steps.tokens > look.window))
            wrong = oracle.far(found, look(q, k, v), _ATTENTION)
            if wrong is not None:
                cause = _cause({w: a(q, k, v) for w, a in oracle.mistaken_looks(look).items()}, found, _ATTENTION)
                raise Wrong(
                    f"{target.name}, layer {layer}: attention at position {wrong[0]} is off by {wrong[1]:.2g} of its "
                    f"size (window {look.window or 'none'}){cause}"
                )
            judged += 1
    if not judged:
        raise NotServed(f"this suite knows the attention of {', '.join(k for k in KNOWN if k not in _UNTRACED_VALUES)}")
    spans = ", ".join(
        f"a window of {w}{'' if beyond else ', which the text does not fill'}" if w else "no window"
        for w, beyond in sorted(windows)
    )
    return f"{judged} layers of {' and '.join(names)} ({spans}), against float64"


def _look(steps: Steps, layer: int) -> Look:
    hparams = steps.hparams
    given = hparams.values.get("attention.scale")
    scale = float(given) if isinstance(given, (int, float)) and given else 1.0 / math.sqrt(hparams.head_size(layer))
    scale = 1.0 if hparams.architecture in _SCALED_BEFORE else scale
    window = hparams.integer("attention.sliding_window") if hparams.in_window(layer) else 0
    cap = hparams.values.get("attn_logit_softcapping") if hparams.architecture == "gemma2" else None
    return Look(scale, window, float(cap) if isinstance(cap, (int, float)) else 0.0)


def graph_steps(bench: EngineBench) -> str:
    """Norms and activations between the matmuls are what their names say.

    Source: GELU has three forms in use (exact, tanh, ggml's table of halves); converters add 1 to gemma's norms or not.
    """
    judged, names = 0, []
    for target, steps in known_steps(bench):
        names.append(target.name)
        for layer in steps.layers:
            gate, up = steps.last(layer, "ffn_gate"), steps.last(layer, "ffn_up")
            for name, function in (("ffn_swiglu", oracle.silu), ("ffn_geglu", oracle.gelu)):
                found = steps.last(layer, name)
                if found is None or gate is None or up is None:
                    continue
                _near(f"{target.name}, layer {layer}, {name}", found, function(gate) * up)
                judged += 1
        last = steps.last(steps.layers[-1], "l_out")
        weight = steps.model.file.tensors["output_norm.weight"].dequantize().astype(np.float64).reshape(-1)
        eps = steps.hparams.number("attention.layer_norm_rms_epsilon")
        if last is not None:
            normed = steps.found[-1, "result_norm"].astype(np.float64)
            _near(f"{target.name}, the final norm", normed, oracle.rms_norm(last, weight, eps))
            judged += 1
    if not judged:
        raise NotServed(f"this suite knows the graphs of {', '.join(KNOWN)}")
    return f"{judged} steps of {' and '.join(names)}, against float64"


def graph_head(bench: EngineBench) -> str:
    """Logits are the final norm times the head's own tensor, or the embedding's where the file has no head.

    Source: tied heads (gemma, SmolLM2, small Qwens) have no output.weight; a loader that misses it takes another tensor
    or zeros.
    """
    names = []
    for target in bench.targets:
        steps = steps_of(bench, target)
        normed, found = (steps.found[-1, name][-8:].astype(np.float64) for name in ("result_norm", "result_output"))
        tensors = steps.model.file.tensors
        name = "output.weight" if "output.weight" in tensors else "token_embd.weight"
        want = np.concatenate([normed @ rows.astype(np.float64).T for _, rows in tensors[name].row_blocks()], axis=1)
        bias = tensors.get("output.bias")
        if bias is not None:
            want += bias.dequantize().astype(np.float64).reshape(-1)
        cap = steps.model.graph.logit_softcap
        if cap:
            want = cap * np.tanh(want / cap)
        wrong = oracle.far(found, want, _STEP)
        if wrong is not None:
            beside = {
                "they are those of the tokens beside": np.roll(want, 1, axis=1),
                "they are all zero": np.zeros_like(want),
            }
            cause = _cause(beside, found, _STEP)
            raise Wrong(
                f"{target.name}: logits are not those of the head {name}{' (tied)' if name[0] == 't' else ''}, off by "
                f"{wrong[1]:.2g} of their size{cause}"
            )
        names.append(f"{target.name} ({name})")
    return f"logits of 8 tokens of {' and '.join(names)}, against float64"


def _near(where: str, found: F64, want: F64) -> None:
    wrong = oracle.far(found, want, _STEP)
    if wrong is not None:
        raise Wrong(f"{where}: row {wrong[0]} is off by {wrong[1]:.2g} of its size")


def _cause(suspects: Mapping[str, F64], found: F64, relative: float) -> str:
    """The words of the wrong result that is the one found."""
    for words, other in suspects.items():
        if oracle.far(found, other, relative) is None:
            return f"; {words}"
    return ""
