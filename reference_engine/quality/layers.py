# SPDX-License-Identifier: Apache-2.0
"""Normalised mean square error of intermediate results, layer by layer: where on its way a model parts from another."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]

SHOWN = ("l_out",)
"""The residual stream behind each layer; layer -1 of other names is the head's part of the graph."""


@dataclass
class Errors:
    """Sums of squares: of the difference, and of the reference. float64."""

    difference: float = 0.0
    reference: float = 0.0

    def add(self, reference: F32, other: F32) -> None:
        a, b = reference.astype(np.float64), other.astype(np.float64)
        self.difference += float(np.square(a - b).sum())
        self.reference += float(np.square(a).sum())

    @property
    def nmse(self) -> float | None:
        """sum (a - b)^2 / sum a^2; None where the reference is all zero."""
        return self.difference / self.reference if self.reference else None


@dataclass
class LayerErrors:
    """Collects a reference's results of one batch, then holds another's against them."""

    layers: dict[int, Errors] = field(default_factory=dict)
    _kept: dict[int, F32] = field(default_factory=dict)

    def keep(self, name: str, layer: int, array: F32) -> None:
        """A trace for the reference."""
        if name in SHOWN:
            self._kept[layer] = array.copy()

    def compare(self, name: str, layer: int, array: F32) -> None:
        """A trace for the other one, on the same tokens."""
        if name in SHOWN and layer in self._kept:
            self.layers.setdefault(layer, Errors()).add(self._kept[layer], array)

    def share_reference(self, other: LayerErrors) -> None:
        """Take over what ``other`` kept."""
        self._kept = other._kept

    def as_json(self) -> list[dict[str, float | int | None]]:
        return [{"layer": layer, "nmse": errors.nmse} for layer, errors in sorted(self.layers.items())]
