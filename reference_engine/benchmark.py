# SPDX-License-Identifier: Apache-2.0
"""Prefill and decode speed of a loaded model, in repetitions that no other process disturbed.

A test is llama-bench's: ``n_prompt`` tokens in one batch, or ``n_gen`` one after the other, behind ``n_depth`` tokens
that are not timed; every decode step gets the next of a list of random tokens, so nothing is sampled. Fields of the
result have llama-bench's names (llama.cpp b11434, tools/llama-bench); those it does not know stand behind them.
"""

from __future__ import annotations

import math
import platform
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING

import numpy as np

from reference_engine.errors import UsageError
from reference_engine.foreign_cpu import CpuUse, CpuWatch
from reference_engine.model import CHUNK
from reports.contract import JsonValue
from reports.version import VERSION

if TYPE_CHECKING:
    from reference_engine.kv_cache import KvCache
    from reference_engine.model import Model

ENGINE = "rknpu-kit reference engine on a CPU; no figure of an NPU"
_SEED = 20261130
_PAUSE_S = 0.3


@dataclass(frozen=True)
class Workload:
    """Prefill where ``n_gen`` is 0, decode where ``n_prompt`` is."""

    n_prompt: int
    n_gen: int
    n_depth: int = 0

    @property
    def name(self) -> str:
        kind = f"pp{self.n_prompt}" if self.n_prompt else f"tg{self.n_gen}"
        return f"{kind} @ d{self.n_depth}" if self.n_depth else kind


@dataclass(frozen=True)
class Result:
    """``samples_ns`` of the repetitions that count; ``discarded`` others were disturbed."""

    test: Workload
    samples_ns: tuple[int, ...]
    discarded: int
    test_time: str

    @property
    def samples_ts(self) -> tuple[float, ...]:
        """Tokens per second."""
        tokens = self.test.n_prompt or self.test.n_gen
        return tuple(1e9 * tokens / sample for sample in self.samples_ns)


Timed = Callable[[Callable[[], None]], "tuple[int, CpuUse]"]


def timed(run: Callable[[], None]) -> tuple[int, CpuUse]:
    """Nanoseconds of one run, and who else used the CPUs meanwhile."""
    watch = CpuWatch()
    start = time.perf_counter_ns()
    run()
    return time.perf_counter_ns() - start, watch.stop()


def measure(
    model: Model,
    test: Workload,
    *,
    repetitions: int,
    patience_s: float,
    progress: Callable[[int, int, str], None] | None = None,
    clock: Timed = timed,
) -> Result:
    """``repetitions`` undisturbed ones, or as many as there were when disturbed ones had taken ``patience_s`` seconds.

    UsageError for a test that the context cannot hold.
    """
    if test.n_depth + test.n_prompt + test.n_gen > model.n_ctx:
        raise UsageError(f"{test.name} needs {test.n_depth + test.n_prompt + test.n_gen} positions, not {model.n_ctx}")
    prepared = _Prepared(model, test)
    prepared.run()  # warm up: page in the weights, make the scratch arrays
    samples: list[int] = []
    discarded, lost = 0, 0.0
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    while len(samples) < repetitions and (lost < patience_s or not discarded):
        if progress is not None:
            progress(len(samples), repetitions, f"{test.name}, {discarded} discarded")
        prepared.rewind()
        took, use = clock(prepared.run)
        if use.disturbed:
            discarded += 1
            lost += use.window_s + _PAUSE_S
            time.sleep(_PAUSE_S)
        else:
            samples.append(took)
    return Result(test, tuple(samples), discarded, at)


class _Prepared:
    """A cache filled to the depth, and the tokens of the test."""

    def __init__(self, model: Model, test: Workload) -> None:
        random = np.random.Generator(np.random.PCG64(_SEED))
        tokens = [int(token) for token in random.integers(0, model.n_vocab, test.n_depth + test.n_prompt + test.n_gen)]
        self._model, self._test = model, test
        self._before, self._tokens = tokens[: test.n_depth], tokens[test.n_depth :]
        self._cache = self._filled()

    def _filled(self) -> KvCache:
        cache = self._model.new_cache()
        if self._before:
            self._model.forward(self._before, cache, rows=())
        return cache

    def rewind(self) -> None:
        try:
            self._cache.truncate(self._test.n_depth)
        except UsageError:  # layers with a window cannot go back so far
            self._cache = self._filled()

    def run(self) -> None:
        if self._test.n_prompt:
            self._model.forward(self._tokens, self._cache)
            return
        for token in self._tokens:
            self._model.forward((token,), self._cache)


def document(model: Model, result: Result) -> dict[str, JsonValue]:
    """One row as ``llama-bench -o json`` has it. ``avg_*`` are null where every repetition was disturbed."""
    ns, ts = result.samples_ns, result.samples_ts
    file, kernels = model.file, model.backend.kernels
    return {
        "build_commit": f"rknpu-kit {VERSION}",
        "build_number": 0,
        "cpu_info": cpu_name(),
        "gpu_info": "",
        "backends": f"rknpu-kit {model.backend.name}",
        "model_filename": str(file.path),
        "model_type": model_type(model),
        "model_size": file.tensor_bytes,
        "model_n_params": sum(tensor.n_elements for tensor in file.tensors.values()),
        "n_batch": CHUNK,
        "n_ubatch": CHUNK,
        "n_threads": model.threads,
        "type_k": model.kv.type_k,
        "type_v": model.kv.type_v,
        "n_gpu_layers": 0,
        "flash_attn": model.flash,
        "n_prompt": result.test.n_prompt,
        "n_gen": result.test.n_gen,
        "n_depth": result.test.n_depth,
        "test_time": result.test_time,
        "avg_ns": round(fmean(ns)) if ns else None,
        "stddev_ns": round(_spread(ns)) if ns else None,
        "avg_ts": fmean(ts) if ts else None,
        "stddev_ts": _spread(ts) if ts else None,
        "samples_ns": list(ns),
        "samples_ts": list(ts),
        "median_ts": median(ts) if ts else None,
        "engine": ENGINE,
        "kernels": None if kernels is None else kernels.path,
        "layers": list(model.layers),
        "discarded": result.discarded,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _spread(samples: Sequence[float]) -> float:
    return stdev(samples) if len(samples) > 1 else 0.0


def model_type(model: Model) -> str:
    """Architecture, parameters, and the type that most weight bytes have: "llama 134.52M Q4_1"."""
    by_type: dict[str, int] = {}
    for tensor in model.file.tensors.values():
        by_type[tensor.type.name] = by_type.get(tensor.type.name, 0) + tensor.n_elements
    count = float(sum(by_type.values()))
    power = min(int(math.log10(max(count, 1)) // 3), 4)
    most = max(by_type, key=by_type.__getitem__)
    return f"{model.hparams.architecture} {count / 1000**power:.2f}{' KMBT'[power]} {most}"


def cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """What /proc/cpuinfo calls the processor; on Arm, where it has no name there, the machine type."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Hardware"))]
    return named[0] if named else platform.machine()
