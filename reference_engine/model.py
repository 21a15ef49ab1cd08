# SPDX-License-Identifier: Apache-2.0
"""A loaded model: tokens and a KV cache in, logits and hidden state out.

The logits of a token are the same bits whether it is computed alone or in any batch, with any number of threads, by the
C kernels or by numpy: every reduction below has one order that depends on its own length alone.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Union

import numpy as np

from reference_engine.backends import NonFinite
from reference_engine.errors import ContextFull, EngineError, NotFinite, UsageError
from reference_engine.finite import explain
from reference_engine.gguf_errors import quoted
from reference_engine.gguf_file import GgufFile, open_gguf
from reference_engine.gguf_hparams import Hparams, load_hparams
from reference_engine.gguf_shapes import check_shapes
from reference_engine.graphs import graph_of
from reference_engine.graphs.common import Graph, Run, Trace
from reference_engine.kv_cache import KvCache
from reference_engine.vector_ops import make_ops
from reference_engine.weights import Loader, Progress
from reference_engine.workspace import Workspace, layer_shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reference_engine.backends import Backend

    F32 = NDArray[np.float32]

CHUNK = 256
"""Rows computed at a time; a longer batch goes through in chunks, without any effect on a bit of the result."""

RowChoice = Union[str, Sequence[int]]


@dataclass(frozen=True)
class KvOptions:
    """Types of the KV cache: f32, f16, q8_0 or q4_0; ``rotate`` turns quantised rows by a Hadamard matrix first."""

    type_k: str = "f16"
    type_v: str = "f16"
    rotate: bool = True


@dataclass(frozen=True)
class Forward:
    """``logits`` float32 [rows, n_vocab], ``hidden`` float32 [rows, n_embd] behind the final norm."""

    logits: F32
    hidden: F32


class Model:
    """Use as a context manager, or call ``close``. One pass at a time: the scratch arrays are the model's."""

    def __init__(
        self,
        file: GgufFile,
        hparams: Hparams,
        backend: Backend,
        graph: Graph,
        *,
        n_ctx: int,
        kv: KvOptions,
        threads: int,
        gelu_half_table: bool,
        flash: bool,
    ) -> None:
        self.file, self.hparams, self.backend, self.graph = file, hparams, backend, graph
        self.n_ctx, self.kv, self.threads = n_ctx, kv, threads
        self.n_vocab, self.n_embd = hparams.n_vocab, hparams.n_embd
        self.layers = graph.layer_numbers
        self.ops = make_ops(backend.kernels, threads)
        self.flash, self.gelu_half_table = flash, gelu_half_table
        self._workspace = Workspace([layer_shape(hparams, number) for number in self.layers], backend.kernels)
        self._positions = np.arange(n_ctx, dtype=np.int32)

    @classmethod
    def load(
        cls,
        source: str | PathLike[str] | GgufFile,
        backend: Backend,
        *,
        n_ctx: int = 0,
        layers: range | None = None,
        head: bool = True,
        kv: KvOptions | None = None,
        threads: int = 1,
        gelu_half_table: bool = False,
        flash: bool = False,
        progress: Progress | None = None,
    ) -> Model:
        """Check the file and give its weights to ``backend``.

        ``n_ctx`` 0: the model's own context length. ``layers``: these alone are loaded and run, between embedding and
        head. Without ``head`` there are hidden states and no logits. ``gelu_half_table``: GELU as ggml's CPU back end
        computes it, through a table of 16-bit floats.
        GgufError for a file that cannot be run, UsageError for layers or a context it does not have, NotFinite.
        """
        file = source if isinstance(source, GgufFile) else open_gguf(source)
        try:
            hparams = load_hparams(file)
            chosen = _chosen_layers(hparams, layers)
            _refuse_unsound(file, hparams, chosen)
            loader = Loader(file, hparams, backend, chosen, head=head, progress=progress)
            try:
                graph = graph_of(hparams.architecture)(loader)
            except NonFinite as error:
                raise NotFinite(str(error)) from error
            return cls(
                file,
                hparams,
                backend,
                graph,
                n_ctx=_context(hparams, n_ctx),
                kv=kv or KvOptions(),
                threads=threads,
                gelu_half_table=gelu_half_table,
                flash=flash,
            )
        except BaseException:
            if file is not source:
                file.close()
            raise

    def new_cache(self) -> KvCache:
        """An empty KV cache for ``n_ctx`` positions of the loaded layers."""
        shapes = [layer_shape(self.hparams, number) for number in self.layers]
        states = self.graph.new_states()
        own = [self.graph.kv_index(index) == index and not (states and states[index]) for index in range(len(shapes))]
        cache = KvCache(
            len(shapes),
            [shape.kv_heads if has else 0 for shape, has in zip(shapes, own, strict=True)],
            [shape.key for shape in shapes],
            self.n_ctx,
            type_k=self.kv.type_k,
            type_v=self.kv.type_v,
            rotate=self.kv.rotate,
            windows=self.graph.layer_windows,
            head_dim_v=[shape.value for shape in shapes],
            n_batch=CHUNK,
            kernels=self.backend.kernels,
            threads=self.threads,
        )
        cache.states = states
        return cache

    def forward(
        self,
        tokens: Sequence[int],
        cache: KvCache,
        *,
        rows: RowChoice = "last",
        trace: Trace | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Forward:
        """Compute ``tokens`` at the positions from ``cache.n_past`` on, which moves by their number.

        ``rows``: which of them get logits and hidden state: "last", "all", or their indices in ascending order (none:
        the cache is filled and nothing else is computed). ``trace(name, layer, array)`` sees every intermediate result,
        chunk by chunk. ``progress(done, all)`` is called before each chunk.
        ContextFull, EngineError for a token id that is not in the vocabulary, NotFinite; the cache is then as before,
        as far as layers that keep a window only can go back.
        """
        wanted = _wanted_rows(rows, len(tokens))
        self._check_tokens(tokens)
        start = cache.n_past
        if start + len(tokens) > self.n_ctx:
            raise ContextFull(
                f"The context is full: {start} of {self.n_ctx} positions are taken and {len(tokens)} more are needed; "
                "nothing is shifted or dropped to make room. Start with a larger context or a shorter text"
            )
        logits = np.empty((len(wanted), self.n_vocab if self.graph.head else 0), dtype=np.float32)
        hidden = np.empty((len(wanted), self.n_embd), dtype=np.float32)
        done = 0
        try:
            for begin in range(0, len(tokens), CHUNK):
                if progress is not None:
                    progress(begin, len(tokens))
                part = tokens[begin : begin + CHUNK]
                here = [row - begin for row in wanted if begin <= row < begin + len(part)]
                span = slice(done, done + len(here))
                self._chunk(part, cache, here, Forward(logits[span], hidden[span]), trace)
                done += len(here)
        except BaseException:
            # Where layers with a window have gone too far to return, the chunks that are complete stay.
            with contextlib.suppress(UsageError):
                cache.truncate(start)
            raise
        return Forward(logits, hidden)

    def close(self) -> None:
        self._workspace.clear()
        self.backend.close()
        self.file.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _chunk(self, tokens: Sequence[int], cache: KvCache, rows: list[int], out: Forward, trace: Trace | None) -> None:
        first = cache.n_past
        try:
            x = self._pass(tokens, cache, rows, out, trace)
            sound = self.ops.check_finite(x) and (not rows or self.ops.check_finite(out.logits))
        except NonFinite as error:
            raise NotFinite(str(error)) from error
        if not sound:
            raise NotFinite(explain(lambda watch: self._pass(tokens, cache, rows, out, watch), self.file, first))
        cache.n_past = first + len(tokens)

    def _pass(self, tokens: Sequence[int], cache: KvCache, rows: list[int], out: Forward, trace: Trace | None) -> F32:
        """One chunk through all layers; returns the residual stream behind the last one."""
        first, m, graph = cache.n_past, len(tokens), self.graph
        scratch = self._workspace.at(m)
        run = Run(
            self.ops,
            cache,
            scratch,
            first,
            self._positions[first : first + m],
            tokens=tokens,
            flash=self.flash,
            gelu_half_table=self.gelu_half_table,
            trace=trace,
        )
        # An overflow is found by its result and explained; numpy's warning would say neither where nor why.
        with np.errstate(all="ignore"):
            x = graph.embed(tokens, scratch[0].x)
            graph.run_layers(x, run)
            if rows:
                chosen = x if len(rows) == m else np.ascontiguousarray(x[rows])
                graph.hidden(chosen, run, out.hidden)
                graph.logits(out.hidden, run, out.logits)
        return x

    def _check_tokens(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            if not 0 <= token < self.n_vocab:
                raise EngineError(f"Token {token} is not in the vocabulary of {self.n_vocab} tokens")


def _chosen_layers(hparams: Hparams, layers: range | None) -> range:
    if layers is None:
        return range(hparams.n_layer)
    if layers.step != 1 or not 0 <= layers.start < layers.stop <= hparams.n_layer:
        raise UsageError(
            f"Layers {layers.start}-{layers.stop - 1} are asked for; the model has layers 0-{hparams.n_layer - 1}"
        )
    return layers


def _context(hparams: Hparams, n_ctx: int) -> int:
    trained = hparams.integer("context_length")
    if n_ctx < 0 or n_ctx > trained:
        raise UsageError(
            f"A context of {n_ctx} is asked for; the model was trained for {trained} positions, and there is no "
            "extension beyond them"
        )
    return n_ctx or trained


def _refuse_unsound(file: GgufFile, hparams: Hparams, layers: range) -> None:
    problems = check_shapes(file, hparams, layers)
    if problems:
        raise problems[0]
    for name in ("rope_factors_long.weight", "rope_factors_short.weight"):
        if name in file.tensors:
            raise EngineError(f"The model has {quoted(name)}: RoPE factors by context length are not supported")


def _wanted_rows(rows: RowChoice, count: int) -> list[int]:
    if count < 1:
        raise UsageError("There are no tokens to compute")
    if isinstance(rows, str):
        if rows not in ("last", "all"):
            raise UsageError(f"rows is {rows!r}; it must be last, all or a list of row numbers")
        return [count - 1] if rows == "last" else list(range(count))
    wanted = list(rows)
    if any(not 0 <= row < count for row in wanted) or any(a >= b for a, b in itertools.pairwise(wanted)):
        raise UsageError(f"rows must be ascending numbers from 0 to {count - 1}")
    return wanted
