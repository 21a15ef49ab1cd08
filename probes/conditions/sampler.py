# SPDX-License-Identifier: Apache-2.0
"""A light sampler: one thread that looks at the conditions at most ten times a second while a row runs."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from probes.conditions.sample import Phase, Sample
from probes.conditions.sources import Sources

SHORTEST_PERIOD_S = 0.1
"""10 Hz: often enough to see a governor move, seldom enough not to be load itself."""

LOAD_PERIOD_S = 1.0
"""Load needs a look at every process, so it is read at the edges of a row and once a second within."""


class Row:
    """The samples of one row, growing while it runs: one before, those during, one after."""

    def __init__(self) -> None:
        self._samples: list[Sample] = []
        self._guard = threading.Lock()
        self._running = False

    @property
    def samples(self) -> tuple[Sample, ...]:
        with self._guard:
            return tuple(sorted(self._samples, key=lambda sample: sample.at_s))

    def begin(self, sample: Sample | None) -> None:
        self.look(sample)
        with self._guard:
            self._running = True

    def during(self, sample: Sample) -> None:
        """Keeps the sample unless the row ended while it was taken."""
        with self._guard:
            if self._running:
                self._samples.append(sample)

    @property
    def running(self) -> bool:
        return self._running

    def stop(self) -> None:
        """The row's work is over: samples still being taken do not belong to it."""
        with self._guard:
            self._running = False

    def look(self, sample: Sample | None) -> None:
        """Keeps a sample that was asked for; None, one that did not come in time, is passed over."""
        with self._guard:
            if sample is not None:
                self._samples.append(sample)


class Sampler:
    """Samples a machine whose files lie under ``system_root``. Use it as a context manager.

    ``period_s`` below 0.1 raises ValueError. ``pid`` is the process that is not foreign load (default: this
    one, with all its descendants); ``sources`` replaces what is found under the root; ``clock`` gives
    monotonic seconds. All reading is done by the sampler's own thread: a sensor that hangs costs samples,
    after ``patience_s`` each, and never the run.
    """

    def __init__(
        self,
        system_root: Path = Path("/"),
        *,
        period_s: float = SHORTEST_PERIOD_S,
        pid: int | None = None,
        sources: Sources | None = None,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = 2.0,
    ) -> None:
        if not period_s >= SHORTEST_PERIOD_S:
            raise ValueError(f"a period of {period_s} s is too short: {SHORTEST_PERIOD_S} s is the shortest")
        self._sources = sources or Sources.find(system_root)
        self.period_s = period_s
        self._pid = os.getpid() if pid is None else pid
        self._clock = clock
        self._patience_s = patience_s
        self._requests: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._row: Row | None = None

    def __enter__(self) -> Sampler:
        self._requests = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, args=(self._requests,), name="conditions", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._requests.put(None)
        if self._thread:
            self._thread.join(self._patience_s)
            self._thread = None

    def take(self, phase: Phase = Phase.BEFORE) -> Sample | None:
        """One look, now; None when it did not end in time. RuntimeError when the sampler is not running."""
        if self._thread is None:
            raise RuntimeError("the sampler is not running: use it in a with statement")
        request = _Request(phase, queue.SimpleQueue())
        self._requests.put(request)
        try:
            return request.answer.get(timeout=self._patience_s)
        except queue.Empty:
            return None

    def now_s(self) -> float:
        """The sampler's clock: monotonic seconds."""
        return self._clock()

    def open_row(self) -> Row:
        """Begins a row with one sample. RuntimeError when another is open: rows are measured one at a
        time."""
        with self._guard:
            if self._row is not None:
                raise RuntimeError("a row is open already: rows are measured one at a time")
            row = self._row = Row()
        row.begin(self.take(Phase.BEFORE))
        return row

    def close_row(self) -> None:
        """Ends the open row with one sample, where the sampler still runs. Does nothing when no row is
        open."""
        with self._guard:
            row, self._row = self._row, None
        if row is not None:
            row.stop()
            if self._thread is not None:
                row.look(self.take(Phase.AFTER))

    @contextmanager
    def row(self) -> Iterator[Row]:
        """The time of one row as a block. It is closed as the block ends, also when it ends by an error."""
        row = self.open_row()
        try:
            yield row
        finally:
            self.close_row()

    def _serve(self, requests: queue.SimpleQueue[_Request | None]) -> None:
        loaded_s = self._clock()
        while True:
            try:
                request = requests.get(timeout=self.period_s)
            except queue.Empty:
                row = self._row
                if row is not None and row.running:
                    with_load = self._clock() - loaded_s >= LOAD_PERIOD_S
                    sample = self._look(Phase.DURING, with_load=with_load)
                    row.during(sample)
                    loaded_s = sample.at_s if with_load else loaded_s
                continue
            if request is None:
                return
            sample = self._look(request.phase, with_load=True)
            loaded_s = sample.at_s
            request.answer.put(sample)

    def _look(self, phase: Phase, *, with_load: bool) -> Sample:
        return self._sources.sample(phase, self._clock(), pid=self._pid, with_load=with_load)


@dataclass(frozen=True)
class _Request:
    phase: Phase
    answer: queue.SimpleQueue[Sample]
