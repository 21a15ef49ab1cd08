# SPDX-License-Identifier: Apache-2.0
"""Runs calls that might never return in a thread of their own, with a time limit."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """One thread for calls that might never return. A call that is late costs the thread, not the run."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Any] | None = None

    def call(self, job: Callable[[], T], seconds: float) -> T:
        """The job's result; TimeoutError when late; the job's own OSError otherwise."""
        if self._jobs is None:
            self._jobs = queue.SimpleQueue()
            threading.Thread(target=_serve, args=(self._jobs,), name="board-reader", daemon=True).start()
            weakref.finalize(self, self._jobs.put, None)
        answer: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        self._jobs.put((job, answer))
        try:
            good, value = answer.get(timeout=seconds)
        except queue.Empty:
            self._jobs.put(None)
            self._jobs = None
            raise TimeoutError from None
        if not good:
            raise value
        result: T = value
        return result


def _serve(jobs: queue.SimpleQueue[Any]) -> None:
    while (item := jobs.get()) is not None:
        job, answer = item
        try:
            answer.put((True, job()))
        except Exception as error:  # handed to the caller, who asked for the call
            answer.put((False, error))
        del item, job, answer
