# SPDX-License-Identifier: Apache-2.0
"""One child with librknnrt in it, for as long as a back end lives: started, asked, watched and ended.

Every answer has a deadline. A child that crashes, hangs or reports an error becomes a :class:`DeviceError` that names
the matmul, the child's last step and the runtime's last log lines; after it the session is over.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c_probes.lock import LockError, NpuLock, lock_path
from c_probes.signal_names import signal_name
from reference_engine.backends.device_wire import A_DTYPES, C_DTYPES, STEP_BYTES, Block, aligned, receive, send
from reference_engine.errors import EngineError

_ENTRY = Path(__file__).with_name("device_child.py")
_START_S = 60.0
_END_S = 20.0
_KILL_S = 5.0
_LOG_TAIL = 16 << 10
_SHOWN_LINES = 4


class DeviceError(EngineError, RuntimeError):
    """The device back end cannot go on. The message names the matmul, what happened, and what the runtime logged."""


@dataclass(frozen=True)
class SessionOptions:
    """``library`` is the file to open; ``force`` opens one that is no mock where no NPU node is.

    ``deadline_s`` bounds each answer of the child. ``one_core``: no core masks are set. ``per_weight``: a context for
    each weight.
    """

    library: Path
    device_present: bool = False
    force: bool = False
    deadline_s: float = 60.0
    one_core: bool = False
    per_weight: bool = False


@dataclass(frozen=True)
class Piece:
    """One segment of a weight to be loaded: ``q`` [n, k] as the pipeline's integers or float16."""

    k_index: int
    core: int
    n0: int
    q: NDArray[Any]
    N: int
    K: int
    n_bytes: int


@dataclass(frozen=True)
class Product:
    """Which product is asked for: ``weight`` as given to :meth:`DeviceSession.load`, ``columns`` of all its pieces."""

    name: str
    weight: int
    k_index: int
    activation: str
    columns: int


@dataclass(frozen=True)
class Answer:
    """C of one K segment, [rows, columns], and the child's own times. ``sums`` is a view until the next request."""

    sums: NDArray[Any]
    prepare_ns: int
    run_ns: int
    collect_ns: int


class DeviceSession:
    """Takes the NPU lock, starts the child, and ends both in :meth:`close`. DeviceError where that cannot be."""

    def __init__(self, options: SessionOptions, env: Mapping[str, str]) -> None:
        self._deadline_s = options.deadline_s
        self._process: subprocess.Popen[bytes] | None = None
        self._over: str | None = None
        self._lost_child = False
        self._owed = 0  # answers that an interrupted wait has left in the channel
        self._lock = NpuLock(lock_path(env))
        try:
            self._lock.acquire()
        except LockError as error:
            raise DeviceError(str(error)) from None
        self._folder = tempfile.TemporaryDirectory(prefix="rknpu-kit-device-")
        self._log = Path(self._folder.name) / "log"
        self._block = Block.create()
        try:
            self._channel = self._start(options, env)
            self.info = self._ask({}, "opening the library", _START_S, asks=False)
        except BaseException:
            self.close()
            raise

    def load(self, name: str, weight: int, activation: str, domain: int, pieces: Sequence[Piece]) -> None:
        """Bring a weight's segments into device memory. ``weight`` is the number by which :meth:`run` knows it."""
        for piece in pieces:
            n, k = piece.q.shape
            self._block.at_least(STEP_BYTES + piece.q.nbytes)
            self._block.view(STEP_BYTES, (n, k), A_DTYPES[activation])[...] = piece.q
            request = {
                "op": "load",
                "weight": weight,
                "activation": activation,
                "domain": domain,
                "k_index": piece.k_index,
                "core": piece.core,
                "n0": piece.n0,
                "n": n,
                "k": k,
                "N": piece.N,
                "K": piece.K,
                "bytes": piece.n_bytes,
                "at": STEP_BYTES,
            }
            self._ask(request, f"{name}, loading K segment {piece.k_index} for core {piece.core}", self._deadline_s)

    def run(self, product: Product, inputs: Sequence[NDArray[Any]], tiles: Sequence[int]) -> Answer:
        """Products of one K segment. ``inputs``: one A [M, k] for all cores, or one for each piece."""
        activation = product.activation
        rows = inputs[0].shape[0]
        at, places = STEP_BYTES, []
        for q in inputs:
            places.append(at)
            at = aligned(at + q.nbytes)
        dtype = C_DTYPES[activation]
        self._block.at_least(at + rows * product.columns * np.dtype(dtype).itemsize)
        for place, q in zip(places, inputs, strict=True):
            self._block.view(place, q.shape, A_DTYPES[activation])[...] = q
        request = {
            "op": "run",
            "weight": product.weight,
            "k_index": product.k_index,
            "rows": rows,
            "a": places,
            "c": at,
        }
        where = f"{product.name}, K segment {product.k_index}, M={rows}"
        answer = self._ask({**request, "tiles": list(tiles)}, where, self._deadline_s)
        sums = self._block.view(at, (rows, product.columns), dtype)
        return Answer(sums, answer["prepare_ns"], answer["run_ns"], answer["collect_ns"])

    def close(self) -> None:
        """End the child, by force where it does not end by itself, and give the lock back."""
        process, self._process = self._process, None
        if process is not None:
            if process.poll() is None and not self._lost_child:
                # Also after Ctrl-C: a child killed in the middle of a run may leave the driver with a lost reference.
                with contextlib.suppress(OSError, ValueError):
                    self._channel.settimeout(_END_S)
                    send(self._channel, {"op": "end"})
                    for _ in range(self._owed + 1):
                        receive(self._channel)
            _end(process, 0.0 if self._lost_child else _KILL_S)
            self._channel.close()
        self._over = self._over or "the session is closed"
        self._block.close()
        self._folder.cleanup()
        self._lock.release()

    def log_lines(self) -> tuple[str, ...]:
        """What the runtime wrote last, at most 16 KiB of it."""
        try:
            with self._log.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return ()
        return tuple(line.rstrip() for line in text.splitlines() if line.strip())

    def _start(self, options: SessionOptions, env: Mapping[str, str]) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        root = str(_ENTRY.parents[2])
        spec = {
            "parent": os.getpid(),
            "raise_nofile": True,
            "path": [root, *(str(Path(entry or ".").resolve()) for entry in sys.path if entry != root)],
            "library": str(options.library),
            "device_present": options.device_present,
            "force": options.force,
            "one_core": options.one_core,
            "per_weight": options.per_weight,
            "log": str(self._log),
        }
        fds = (theirs.fileno(), self._block.fd)
        with theirs, self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(_ENTRY), json.dumps(spec), *map(str, fds)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(env),
                pass_fds=fds,
                start_new_session=True,
            )
        return ours

    def _ask(self, request: dict[str, Any], where: str, deadline_s: float, *, asks: bool = True) -> dict[str, Any]:
        if self._over is not None:
            raise DeviceError(f"{where}: not run, because {self._over}")
        self._channel.settimeout(deadline_s)
        try:
            if asks:
                send(self._channel, request)
            self._owed += 1
            answer = receive(self._channel)
            self._owed -= 1
        except TimeoutError:
            raise self._lost(where, f"no answer within {deadline_s:g} s") from None
        except OSError:
            answer = None
        except BaseException:
            self._over = f"an earlier matmul was interrupted ({where})"
            raise
        if answer is None:
            raise self._lost(where, None)
        if "error" in answer:
            raise self._failed(where, str(answer["error"]))
        found: dict[str, Any] = answer["ok"]
        return found

    def _failed(self, where: str, what: str) -> DeviceError:
        self._over = f"an earlier matmul failed ({where})"
        return DeviceError(f"{where}: {what}{'' if 'The library said' in what else self._said()}")

    def _lost(self, where: str, late: str | None) -> DeviceError:
        """The child is gone, or late and then killed."""
        process = self._process
        assert process is not None
        stuck = _end(process, 0.0 if late else _KILL_S)
        code = process.returncode
        if late is not None:
            how = f"{late}; the child was killed" if not stuck else f"{late}; the child cannot be killed, reboot"
        elif code is not None and code < 0:
            how = f"the child that calls librknnrt was ended by {signal_name(-code)}"
        else:
            how = f"the child that calls librknnrt ended with exit code {code}"
        self._over, self._lost_child = f"the child was lost at {where}", True
        return DeviceError(f"{where}: {how}; its last step was: {self._block.step() or 'start'}.{self._said()}")

    def _said(self) -> str:
        lines = self.log_lines()[-_SHOWN_LINES:]
        return f" The library said: {' | '.join(lines)}" if lines else ""


def _end(process: subprocess.Popen[bytes], grace_s: float) -> bool:
    """Wait that long, then kill the child's group. True where even that does not end it: it sits in the kernel."""
    end = time.monotonic() + grace_s
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        try:
            process.wait(_KILL_S)
        except subprocess.TimeoutExpired:
            return True
    return False
