# SPDX-License-Identifier: Apache-2.0
"""From the text a user writes (``npu:w8a8-per-channel,fma=off``) to a back end."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

from reference_engine.backends.float_backend import FloatBackend
from reference_engine.backends.interface import Backend
from reference_engine.backends.pipeline import PipelineError
from reference_engine.backends.presets import parse_pipeline
from reference_engine.kernels.library import load_library

if TYPE_CHECKING:
    from reference_engine.kernels.library import KernelLibrary

DEFAULT_PRESET = "w8a8-per-channel"


class BackendError(ValueError):
    """The text names no back end; the message lists what there is."""


def make_backend(text: str, *, threads: int = 1, kernels: KernelLibrary | str | None = "auto") -> Backend:
    """``float``, ``npu:PRESET[,key=value...]`` or ``device:PRESET[,key=value...][,library=PATH]``.

    ``kernels`` is the C library, None for numpy alone; by default :func:`load_library` decides. BackendError for a text
    that names nothing.
    """
    library = load_library() if isinstance(kernels, str) else kernels
    kind, _, rest = text.strip().partition(":")
    try:
        if kind == "float" and not rest:
            return FloatBackend(library, threads)
        if kind == "npu":
            module = importlib.import_module("reference_engine.backends.npu_backend")
            return cast(Backend, module.NpuBackend(parse_pipeline(rest or DEFAULT_PRESET), library, threads))
        if kind == "device":
            module = importlib.import_module("reference_engine.backends.device")
            return cast(Backend, module.make_device_backend(rest or DEFAULT_PRESET, kernels=library, threads=threads))
    except PipelineError as error:
        raise BackendError(f"back end {text!r}: {error}") from error
    raise BackendError(
        f"no back end {text!r}: write float, npu:PRESET or device:PRESET, for example npu:{DEFAULT_PRESET}"
    )
