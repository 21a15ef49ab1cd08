# SPDX-License-Identifier: Apache-2.0
"""Takes the weights of a model out of its file: matrices go to the back end, vectors become float32.

Only what a graph asks for is loaded, so a few layers of a large file cost those layers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from reference_engine.errors import NotFinite
from reference_engine.gguf_errors import TENSOR_MISSING, GgufError, quoted
from reference_engine.gguf_hparam_table import ARCHITECTURES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reference_engine.backends import Backend, Linear, LinearGroup
    from reference_engine.gguf_file import GgufFile
    from reference_engine.gguf_hparams import Hparams
    from reference_engine.gguf_tensor import GgufTensor

    F32 = NDArray[np.float32]

Progress = Callable[[int, int, str], None]
"""Called with the bytes loaded so far, the bytes to load, and the tensor that comes next."""


class Loader:
    """What a graph is built from. GgufError for a tensor that is not there, NotFinite for NaN or Inf in a vector."""

    def __init__(
        self,
        model: GgufFile,
        hparams: Hparams,
        backend: Backend,
        layers: range,
        *,
        head: bool = True,
        progress: Progress | None = None,
    ) -> None:
        self.hparams = hparams
        self.head = head
        self.backend = backend
        self.layers = layers
        self._tensors = model.tensors
        self._path = model.path
        table = ARCHITECTURES[hparams.architecture]
        self._known = frozenset(table.model_tensors)
        self._known_in_layer = frozenset(table.layer_tensors)
        self._progress = progress
        self._done = 0
        self._total = sum(
            tensor.n_bytes for name, tensor in self._tensors.items() if _layer_of(name) in (None, *layers)
        )

    def has(self, name: str) -> bool:
        return name in self._tensors

    def tensor(self, name: str) -> GgufTensor:
        tensor = self._tensors.get(name)
        if tensor is None:
            raise GgufError(TENSOR_MISSING, f"tensor {quoted(name)} is missing", None, self._path)
        return tensor

    def vector(self, name: str) -> F32:
        """A norm's weight or a bias as float32 [n], checked for NaN and Inf."""
        tensor = self._next(name)
        values = np.ascontiguousarray(tensor.dequantize().reshape(-1))
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise NotFinite(f"Tensor {quoted(name)} holds NaN or Inf at element {bad[0]}: the file is damaged")
        if self.backend.kernels is not None:
            self.backend.kernels.pin(values)
        return values

    def matrix(self, name: str) -> F32:
        """A small matrix that no product is made with, as float32 of its shape, checked likewise."""
        return self.vector(name).reshape(self.tensor(name).shape)

    def optional_vector(self, name: str) -> F32 | None:
        return self.vector(name) if self.has(name) else None

    def linear(self, name: str, bias_of: str | None = None) -> Linear:
        """The weight ``name`` in the back end, with its bias where the architecture and the file have one.

        ``bias_of``: the weight whose bias it is, where that is another one (a tied head keeps the bias of the output).
        """
        linear = self.backend.linear(self._next(name))
        bias = self._bias(bias_of or name)
        return linear if bias is None else LinearWithBias(linear, bias)

    def group(self, *names: str) -> LinearGroup:
        """Weights that share their input, so that a quantising back end quantises it once."""
        group = self.backend.group([self._next(name) for name in names])
        biases = tuple(self._bias(name) for name in names)
        return group if all(bias is None for bias in biases) else GroupWithBias(group, biases)

    def _bias(self, name: str) -> F32 | None:
        bias = name.removesuffix("weight") + "bias"
        known = bias in self._known or bias.partition(".")[2].partition(".")[2] in self._known_in_layer
        return self.optional_vector(bias) if known else None

    def _next(self, name: str) -> GgufTensor:
        tensor = self.tensor(name)
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total, name)
        self._done += tensor.n_bytes
        return tensor


def _layer_of(name: str) -> int | None:
    """The layer whose tensor this is; None for those of the whole model."""
    head, _, rest = name.partition(".")
    number = rest.partition(".")[0]
    return int(number) if head == "blk" and number.isdecimal() else None


class LinearWithBias:
    """A Linear and its bias [n_out], added after it in float32."""

    def __init__(self, linear: Linear, bias: F32) -> None:
        self._linear, self._bias = linear, bias
        self.name, self.n_in, self.n_out, self.where = linear.name, linear.n_in, linear.n_out, linear.where

    def __call__(self, x: F32, out: F32 | None = None) -> F32:
        y = self._linear(x, out)
        return np.add(y, self._bias, out=y)


class GroupWithBias:
    """A LinearGroup whose members have a bias, or None."""

    def __init__(self, group: LinearGroup, biases: Sequence[F32 | None]) -> None:
        self._group, self._biases = group, tuple(biases)
        self.members = tuple(
            member if bias is None else LinearWithBias(member, bias)
            for member, bias in zip(group.members, self._biases, strict=True)
        )

    def __call__(self, x: F32, outs: Sequence[F32] | None = None) -> tuple[F32, ...]:
        results = self._group(x, outs)
        for y, bias in zip(results, self._biases, strict=True):
            if bias is not None:
                np.add(y, bias, out=y)
        return results
