# SPDX-License-Identifier: Apache-2.0
"""Every parameter that changes a number of the NPU pipelines, and the checks on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from reference_engine.backends.segments import k_segments, largest_pow2_divisor, n_segments, next_pow2
from reference_engine.backends.signs import HashedSigns, SignProvider, SignsFile


class PipelineError(ValueError):
    """A pipeline cannot be what was asked for; the message names the parameter and what it may be."""


CHOICES: Mapping[str, tuple[str, ...]] = {
    "activation": ("int8", "int4", "fp16"),
    "weight_scale": ("segment", "channel", "rank-one", "tensor"),
    "activation_scale": ("row", "tensor"),
    "hadamard": ("none", "padded", "block"),
    "m_bucket": ("none", "pow2", "pow2-128", "tile-256"),
    "int16_overflow": ("wrap", "saturate"),
    "route": ("all", "by-type"),
}

# (K, N) alignment by activation: table of rknpu2-configuration.cpp (RK3588).
_ALIGNMENT = {"int8": (32, 32), "int4": (32, 64), "fp16": (32, 16)}
_QMAX = {"int8": 127, "int4": 7, "fp16": 0}


@dataclass(frozen=True)
class Pipeline:
    """How a weight and its activations become integers, are multiplied and become floats again.

    ``weight_scale``: one scale per K segment and core slice, per output channel and K segment, a rank-one matrix of
    scales, or (for quality figures) one per tensor. ``activation_scale``: per row and K segment as all forks do, or one
    per activation matrix and K segment (quality figures; then a row's bits depend on its batch).
    ``hadamard``: none; padded to the next power of two; in blocks of the largest power of two that divides K.
    ``k_limit`` 0 is no limit. ``a_clip`` and ``b_clip`` multiply the largest magnitude before the scale is made.
    ``clamp`` off wraps to int8 as a narrowing store does. ``fma``: the accumulation over K segments is fused.
    ``k_align`` and ``n_align`` 0 take the alignment of the activation type.
    ``routes``: with ``route`` by-type, for each tensor type the presets that its tensors take in turn.
    """

    name: str
    activation: str = "int8"
    weight_scale: str = "channel"
    activation_scale: str = "row"
    hadamard: str = "none"
    k_limit: int = 8192
    cores: int = 3
    clamp: bool = True
    fma: bool = True
    m_bucket: str = "none"
    k_align: int = 0
    n_align: int = 0
    int16_overflow: str = "saturate"
    a_clip: float = 1.0
    b_clip: float = 1.0
    signs: SignProvider = field(default_factory=HashedSigns)
    route: str = "all"
    routes: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise PipelineError(f"{name} is {getattr(self, name)!r}; it may be {', '.join(allowed)}")
        for name, least, most in (("cores", 1, 8), ("k_limit", 0, 1 << 30), ("k_align", 0, 4096), ("n_align", 0, 4096)):
            if not least <= getattr(self, name) <= most:
                raise PipelineError(f"{name} is {getattr(self, name)}; it may be {least} to {most}")
        for name in ("a_clip", "b_clip"):
            if not 0.01 <= getattr(self, name) <= 2.0:
                raise PipelineError(f"{name} is {getattr(self, name)}; it may be 0.01 to 2")
        if self.activation == "fp16" and self.weight_scale == "rank-one":
            raise PipelineError("weight_scale rank-one has no meaning for fp16, which has no scales")
        aligned = _ALIGNMENT[self.activation]
        object.__setattr__(self, "k_align", self.k_align or aligned[0])
        object.__setattr__(self, "n_align", self.n_align or aligned[1])

    @property
    def qmax(self) -> int:
        """Largest quantised magnitude: 127, 7, or 0 for fp16."""
        return _QMAX[self.activation]

    @property
    def bits(self) -> int:
        return {"int8": 8, "int4": 4, "fp16": 16}[self.activation]

    def k_op(self, k: int) -> int:
        """K of the operation: padded to a power of two under the padded Hadamard transform."""
        return next_pow2(k) if self.hadamard == "padded" else k

    def block(self, k: int) -> int:
        """Block of the Hadamard transform and divisor of the result; 1 for none."""
        return {"none": 1, "padded": next_pow2(k), "block": largest_pow2_divisor(k)}[self.hadamard]

    def k_segments(self, k: int) -> tuple[tuple[int, int], ...]:
        """K segments of a weight with rows of ``k``."""
        return k_segments(self.k_op(k), self.k_limit, self.k_align)

    def n_segments(self, n: int) -> tuple[tuple[int, int], ...]:
        """Columns of each active core."""
        return n_segments(n, self.cores, self.n_align)

    @property
    def batch_invariant(self) -> bool:
        """Whether a row has the same bits alone and in any batch."""
        return self.activation_scale == "row"


_BOOLEANS = {"on": True, "off": False, "true": True, "false": False, "1": True, "0": False}


def with_settings(pipeline: Pipeline, settings: Mapping[str, str]) -> Pipeline:
    """``pipeline`` with fields set from text. PipelineError for an unknown field or a value that it cannot have."""
    known = {item.name: item for item in fields(Pipeline) if item.name not in ("name", "routes")}
    changes: dict[str, Any] = {}
    for key, text in settings.items():
        if key not in known:
            raise PipelineError(f"no parameter {key!r}; there are {', '.join(sorted(known))}")
        changes[key] = _value(key, getattr(pipeline, key), text)
    if "activation" in changes and changes["activation"] != pipeline.activation:
        changes = {"k_align": 0, "n_align": 0, **changes}
    said = ",".join(f"{key}={text}" for key, text in settings.items())
    return replace(pipeline, name=f"{pipeline.name},{said}" if said else pipeline.name, **changes)


def _value(key: str, now: Any, text: str) -> Any:
    if key == "signs":
        return SignsFile(Path(text))
    try:
        if isinstance(now, bool):
            return _BOOLEANS[text.lower()]
        return type(now)(text)
    except (KeyError, ValueError):
        kind = "on or off" if isinstance(now, bool) else "a number"
        raise PipelineError(f"{key} is {text!r}; it has to be {kind}") from None
