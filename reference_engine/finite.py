# SPDX-License-Identifier: Apache-2.0
"""Where NaN or Inf came from: asked only after a pass has ended in one, so that a sound model pays nothing for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from reference_engine.gguf_errors import quoted
from reference_engine.gguf_tensor import MissingPackage, NoDequantizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reference_engine.gguf_file import GgufFile
    from reference_engine.gguf_tensor import GgufTensor
    from reference_engine.graphs.common import Trace

    F32 = NDArray[np.float32]


class _Found(Exception):
    def __init__(self, name: str, layer: int, row: int) -> None:
        self.name, self.layer, self.row = name, layer, row


def explain(again: Callable[[Trace], Any], file: GgufFile, first: int) -> str:
    """Run the pass ``again`` with every intermediate result checked, and say in one sentence where it went wrong.

    ``first`` is the position of the pass's first row.
    """

    def watch(name: str, layer: int, array: F32) -> None:
        rows = ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)
        if rows.any():
            raise _Found(name, layer, int(np.argmax(rows)))

    try:
        again(watch)
    except _Found as found:
        where = f"layer {found.layer}, {found.name}" if found.layer >= 0 else found.name
        return f"NaN or Inf at position {first + found.row} in {where}: {_cause(file, found)}"
    return "NaN or Inf in a pass that is finite when repeated: the memory of this machine may be faulty"


def _cause(file: GgufFile, found: _Found) -> str:
    for name, tensor in file.tensors.items():
        # Outside the layers, all that belongs to none of them.
        if name.startswith(f"blk.{found.layer}." if found.layer >= 0 else ("token_embd.", "output")):
            row = _bad_row(tensor)
            if row is not None:
                return f"tensor {quoted(name)} holds NaN or Inf in row {row}, so the file is damaged"
    return "no weight there holds one, so the activations overflow"


def _bad_row(tensor: GgufTensor) -> int | None:
    """The first row of the tensor with NaN or Inf."""
    try:
        for start, rows in tensor.row_blocks():
            bad = ~np.isfinite(rows).all(axis=1)
            if bad.any():
                return start + int(np.argmax(bad))
    except (MissingPackage, NoDequantizer):
        return None
    return None
