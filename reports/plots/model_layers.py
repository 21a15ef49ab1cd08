# SPDX-License-Identifier: Apache-2.0
"""The matmul weights of a model, from the header of its file, as points of the roofline."""

from __future__ import annotations

from pathlib import Path

from reports.plots.series import Layer, ModelLayers
from reports.text import inert

_MOST_LAYERS = 64


class ModelRefused(Exception):
    """A file that is no readable model. The text is fit for the user."""


def model_layers(path: Path) -> ModelLayers:
    """Weights of ``path`` that are multiplied, alike ones counted together. Nothing but the header is read.

    Raises ModelRefused, with the code and the place, for a file that is no model.
    """
    from reference_engine.gguf_file import GgufError, open_gguf  # noqa: PLC0415  only with a model
    from reference_engine.npu_route import role_of  # noqa: PLC0415

    counts: dict[tuple[str, int, int], int] = {}
    try:
        with open_gguf(path, header_only=True) as model:
            tied = "output.weight" not in model.tensors
            for tensor in model.tensors.values():
                role = role_of(tensor.name, tied_head=tied)
                if role is not None and len(tensor.dims) == 2:
                    key = (role.name, tensor.dims[0], tensor.dims[1])
                    counts[key] = counts.get(key, 0) + 1
            name = model.metadata.get("general.name")
    except GgufError as error:
        raise ModelRefused(str(error)) from error
    shown = inert(name, 60) if isinstance(name, str) and name else inert(path.name, 60)
    layers = tuple(Layer(inert(role, 40), k, n, count) for (role, k, n), count in list(counts.items())[:_MOST_LAYERS])
    return ModelLayers(shown, layers)
