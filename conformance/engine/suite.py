# SPDX-License-Identifier: Apache-2.0
"""Every check of the suite ``engine``, by name, in the order of a run; and how its bench is opened."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conformance.bench import CannotOpen, Check, Wrong
from conformance.engine import end_to_end, graph, matmuls, models
from conformance.engine.bench import ENGINES, EngineBench
from conformance.engine.faults import UnknownFault, fault_of
from conformance.engine.traps import trap_checks
from conformance.quantiser import edges, sweeps
from reference_engine.backends.device import DeviceError
from reference_engine.backends.device_library import NoLibrary, find_device_library
from reference_engine.backends.interface import NonFinite
from reference_engine.errors import EngineError, NotFinite
from reference_engine.gguf_errors import GgufError
from reference_engine.gguf_file import open_gguf
from reference_engine.gguf_hparams import load_hparams
from reference_engine.gguf_tensor import MissingPackage
from reference_engine.graphs import graph_of
from reference_engine.speculation.drafter import SpeculationError

for _architecture in ("llama", "gemma4", "qwen35"):
    graph_of(_architecture)  # imported once, for every child of the worker

_FUNCTIONS: tuple[Callable[[EngineBench], str], ...] = (
    sweeps.quantiser_rim,
    sweeps.quantiser_halves,
    sweeps.quantiser_subnormal,
    edges.quantiser_clip,
    edges.quantiser_signs,
    edges.quantiser_zero_rows,
    edges.quantiser_not_finite,
    edges.quantiser_fp16,
    matmuls.matmul_oracle,
    matmuls.matmul_segments,
    matmuls.matmul_float,
    matmuls.matmul_device,
    graph.graph_rope,
    graph.graph_attention,
    graph.graph_steps,
    graph.graph_head,
    models.batch_invariance,
    models.kv_rollback,
    end_to_end.end_to_end,
    models.goldens,
    models.losslessness,
    models.cache_cheat,
)
DEADLINE_S = 120.0
"""At level quick; a large model of the user's own may need more (--deadline)."""


def _as_findings(function: Callable[[EngineBench], str]) -> Callable[[EngineBench], str]:
    """What the engine itself reports is a finding on it: a lost device, a result that is not finite."""

    @functools.wraps(function)
    def check(bench: EngineBench) -> str:
        try:
            return function(bench)
        except (DeviceError, NonFinite, NotFinite, SpeculationError) as error:
            raise Wrong(str(error)) from error
        except MissingPackage as error:
            raise CannotOpen(str(error)) from error

    return check


CHECKS = {
    function.__name__: Check(function.__name__, _as_findings(function), DEADLINE_S)
    for function in (*_FUNCTIONS, *trap_checks().values())
}


def open_bench(request: dict[str, Any]) -> EngineBench:
    """``engine`` npu or device, ``model`` a path or None, ``library`` of the device. CannotOpen."""
    if request["engine"] not in ENGINES:
        raise CannotOpen(f"there is no engine {request['engine']!r}; there are {' and '.join(ENGINES)}")
    model, library = request.get("model"), request.get("library")
    try:
        if model is not None:
            with open_gguf(model) as file:
                load_hparams(file)
        if request["engine"] == "device":
            find_device_library(None if library is None else Path(library))
        fault = fault_of(request.get("env") or {})
    except (NoLibrary, UnknownFault, GgufError, EngineError) as error:
        raise CannotOpen(str(error)) from error
    return EngineBench(
        level=request["level"],
        seed=int(request["seed"]),
        check=request["check"],
        engine=request["engine"],
        model_path=None if model is None else Path(model),
        library=None if library is None else Path(library),
        fault=fault,
    )
