# SPDX-License-Identifier: Apache-2.0
"""The child that calls librknnrt for the device back end: weights, buffers and contexts, held for the whole session.

Contexts are cached by (rows, K, N, core, type, IOMMU domain), buffers of A and C likewise, as in rk-llama.cpp; weights
are loaded once, each in memory of its own, and bound before a run. One context serves all weights of one size, and
those unused for longest are closed, because a runtime was seen to fail at 150 live ones; ``contexts`` per-weight makes
one for each weight and keeps it, as rk-llama.cpp does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c_probes.device_memory import DeviceMemory
from c_probes.librknnrt import CoreMask, Layout, Librknnrt, Matmul, MatmulType, SyncMode
from reference_engine.backends.device_layout import int4_pairs, native_tiles, padded
from reference_engine.backends.device_wire import A_DTYPES, C_DTYPES, MATMUL_TYPES, Block

SMALLEST_K_SEGMENT = 4096
"""Above this K some chips cut a native B into segments (RK3576; RK3588 above 8192)."""

MOST_CONTEXTS = 120
"""Live at a time where they are shared. Drafts of many lengths ask for more: each number of rows is a context."""

_CORES = (CoreMask.CORE_0, CoreMask.CORE_1, CoreMask.CORE_2)


@dataclass(frozen=True)
class Piece:
    """One segment of a weight on the device: ``n`` columns of ``k`` rows, padded to ``N`` and ``K``."""

    weight: int
    k_index: int
    core: int
    n0: int
    n: int
    k: int
    N: int
    K: int
    activation: str
    domain: int
    memory: DeviceMemory


@dataclass
class Context:
    """A matmul context, and which memory is bound as its B and C."""

    matmul: Matmul
    B: DeviceMemory | None = None
    C: DeviceMemory | None = None


class Worker:
    """Answers the requests of :mod:`reference_engine.backends.device_session`."""

    def __init__(self, library: Librknnrt, block: Block, *, one_core: bool, per_weight: bool) -> None:
        self._library, self._block = library, block
        self._one_core, self._per_weight = one_core, per_weight
        self._owners: dict[int, Matmul] = {}
        self._pieces: dict[tuple[int, int], list[Piece]] = {}
        self._contexts: dict[tuple[object, ...], Context] = {}
        self._buffers: dict[tuple[object, ...], DeviceMemory] = {}
        self._team = ThreadPoolExecutor(len(_CORES))

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        """One segment of a weight, [n, k] row by row in the block, into device memory."""
        n, k, activation = int(request["n"]), int(request["k"]), str(request["activation"])
        rows = self._block.view(request["at"], (n, k), A_DTYPES[activation])
        piece = Piece(
            weight=int(request["weight"]),
            k_index=int(request["k_index"]),
            core=int(request["core"]),
            n0=int(request["n0"]),
            n=n,
            k=k,
            N=int(request["N"]),
            K=int(request["K"]),
            activation=activation,
            domain=int(request["domain"]),
            memory=self._owner(int(request["domain"])).memory(int(request["bytes"])),
        )
        context = self._context(piece, 1)
        self._block.note(f"laying out B of K={piece.K} N={piece.N}")
        laid = self._laid_out(context.matmul, padded(rows, (piece.N, piece.K)), activation)
        piece.memory.bytes[: laid.nbytes] = laid.view(np.uint8).reshape(-1)
        piece.memory.sync(SyncMode.TO_DEVICE)
        self._pieces.setdefault((piece.weight, piece.k_index), []).append(piece)
        return {"contexts": len(self._contexts)}

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """All pieces of one weight and K segment, each on its core, ``tiles`` of rows one after the other.

        ``a`` holds the place of A in the block for each piece, C is written to ``c`` as [rows, all columns].
        """
        pieces = self._pieces[int(request["weight"]), int(request["k_index"])]
        rows, columns = int(request["rows"]), sum(piece.n for piece in pieces)
        first = pieces[0]
        result = self._block.view(request["c"], (rows, columns), C_DTYPES[first.activation])
        inputs = [self._block.view(at, (rows, first.k), A_DTYPES[first.activation]) for at in request["a"]]
        spent = [0, 0, 0]
        start = 0
        for size in request["tiles"]:
            stop = min(start + size, rows)
            took = self._run_tile(pieces, size, [part[start:stop] for part in inputs], result[start:stop])
            spent = [before + more for before, more in zip(spent, took, strict=True)]
            start = stop
        return {"prepare_ns": spent[0], "run_ns": spent[1], "collect_ns": spent[2]}

    def _run_tile(
        self, pieces: list[Piece], M: int, inputs: list[NDArray[Any]], result: NDArray[Any]
    ) -> tuple[int, int, int]:
        at_start = time.perf_counter_ns()
        first = pieces[0]
        contexts = []
        for i, piece in enumerate(pieces):
            context = self._context(piece, M)
            own = i if len(inputs) > 1 else 0  # rank-one scales: an A for each piece
            memory = self._buffer(context.matmul, "A", (M, piece.K, own, piece.activation, piece.domain))
            if i == own:
                self._fill(memory, inputs[own], M, piece)
            # In normal layout A is taken over at the bind, so it is bound anew each time.
            context.matmul.use("A", memory, capture=False)
            self._bind(context, piece, M)
            contexts.append(context)
        prepared = time.perf_counter_ns()
        cores = ",".join(str(piece.core) for piece in pieces)
        self._block.note(f"rknn_matmul_run, M={M} K={first.K} N={','.join(str(p.N) for p in pieces)}, cores {cores}")
        self._each(contexts, lambda context: context.matmul.run(capture=False))
        ran = time.perf_counter_ns()
        self._block.note("rknn_mem_sync of C, from the device")
        column = 0
        for piece, context in zip(pieces, contexts, strict=True):
            assert context.C is not None
            context.C.sync(SyncMode.FROM_DEVICE, capture=False)
            sums = context.C.bytes.view(C_DTYPES[piece.activation])[: M * piece.N].reshape(M, piece.N)
            result[:, column : column + piece.n] = sums[: result.shape[0], : piece.n]
            column += piece.n
        return prepared - at_start, ran - prepared, time.perf_counter_ns() - ran

    def _bind(self, context: Context, piece: Piece, M: int) -> None:
        if context.B is not piece.memory:
            self._block.note(f"rknn_matmul_set_io_mem of B, M={M} K={piece.K} N={piece.N}")
            context.matmul.use("B", piece.memory, capture=False)
            context.B = piece.memory
        if context.C is None:
            key = (M, piece.N, piece.core, piece.activation, piece.domain)
            context.C = self._buffer(context.matmul, "C", key)
            context.matmul.use("C", context.C, capture=False)

    def _fill(self, memory: DeviceMemory, rows: NDArray[Any], M: int, piece: Piece) -> None:
        """A row by row; columns beyond k are zero, rows beyond those given keep what they had."""
        grown = padded(rows, (rows.shape[0], piece.K))
        packed = int4_pairs(grown) if piece.activation == "int4" else grown
        raw = np.ascontiguousarray(packed).view(np.uint8).reshape(-1)
        memory.bytes[: raw.size] = raw
        self._block.note(f"rknn_mem_sync of A, M={M} K={piece.K}, to the device")
        memory.sync(SyncMode.TO_DEVICE, capture=False)

    def _each(self, contexts: list[Context], job: Callable[[Context], object]) -> None:
        """On all contexts at once; of several errors the first one is raised after all have ended."""
        if len(contexts) == 1:
            job(contexts[0])
            return
        futures = [self._team.submit(job, context) for context in contexts]
        errors = [error for future in futures if (error := future.exception())]
        if errors:
            raise errors[0]

    def _context(self, piece: Piece, M: int) -> Context:
        own = (piece.weight, piece.k_index, piece.n0) if self._per_weight else ()
        key = (M, piece.K, piece.N, piece.core, piece.activation, piece.domain, *own)
        if key in self._contexts:
            self._contexts[key] = self._contexts.pop(key)  # to the end: the first one is unused for longest
        else:
            self._make_room()
            self._block.note(f"rknn_matmul_create, M={M} K={piece.K} N={piece.N} {piece.activation} core {piece.core}")
            self._contexts[key] = Context(
                self._library.matmul(
                    M,
                    piece.K,
                    piece.N,
                    MatmulType(MATMUL_TYPES[piece.activation]),
                    B_layout=Layout.NATIVE,
                    AC_layout=Layout.NORM,
                    iommu_domain=piece.domain,
                    core_mask=self._mask(piece.core),
                )
            )
        return self._contexts[key]

    def _make_room(self) -> None:
        """Those of the product that is being made were asked for last."""
        while not self._per_weight and len(self._contexts) >= MOST_CONTEXTS:
            oldest = next(iter(self._contexts))
            self._block.note("rknn_matmul_destroy of the context unused for longest")
            self._contexts.pop(oldest).matmul.close()

    def _mask(self, core: int) -> int | None:
        """None, the runtime's choice, for one core (chips that have one refuse masks) and for a fourth."""
        return None if self._one_core or core >= len(_CORES) else int(_CORES[core])

    def _buffer(self, matmul: Matmul, name: str, key: tuple[object, ...]) -> DeviceMemory:
        key = (name, *key)
        if key not in self._buffers:
            self._buffers[key] = self._owner(matmul.request.iommu_domain).memory(matmul.attr(name).size)
        return self._buffers[key]

    def _owner(self, domain: int) -> Matmul:
        """The small context of a domain that makes all memory in it, so that no other context has to outlive it."""
        if domain not in self._owners:
            self._block.note(f"rknn_matmul_create of the context that owns the memory of IOMMU domain {domain}")
            kind = MatmulType.FLOAT16_MM_FLOAT16_TO_FLOAT32
            self._owners[domain] = self._library.matmul(32, 32, 32, kind, iommu_domain=domain)
        return self._owners[domain]

    def _laid_out(self, matmul: Matmul, rows: NDArray[Any], activation: str) -> NDArray[Any]:
        converts = self._library.rules.converter_arguments is not None
        if rows.shape[1] > SMALLEST_K_SEGMENT and converts:
            return matmul.convert_B(np.ascontiguousarray(rows.T))
        dims = matmul.attr("B").dims
        tiles = native_tiles(rows, dims[2], dims[3])
        return int4_pairs(tiles) if activation == "int4" else tiles

    def close(self) -> None:
        """Frees what the runtime gave, contexts before the memory they are bound to."""
        self._team.shutdown()
        for context in self._contexts.values():
            context.matmul.close()
        for memory in [*self._buffers.values(), *(p.memory for pieces in self._pieces.values() for p in pieces)]:
            memory.close()
        for owner in self._owners.values():
            owner.close()
