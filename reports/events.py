# SPDX-License-Identifier: Apache-2.0
"""Events of a run and the one thing that sends them. Probes emit; sinks listen; no probe prints."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol, Union

from reports.contract import Fact, Finding, JsonValue, Measurement, Step


@dataclass(frozen=True)
class Breadcrumb:
    """Written and flushed before a step that could take the machine down: the next run can name it."""

    step: str
    detail: str = ""


@dataclass(frozen=True)
class Progress:
    """How far a long step is: ``done`` of ``total`` units, with a word on the current one."""

    step: str
    done: int
    total: int
    detail: str = ""


@dataclass(frozen=True)
class RunStarted:
    """First event of a run: everything about it that is known before the first probe."""

    header: dict[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True)
class RunEnded:
    """Last event of a run. A log without it belongs to a run that was cut short."""

    exit_code: int


Event = Union[RunStarted, Breadcrumb, Progress, Fact, Measurement, Finding, Step, RunEnded]


class Sink(Protocol):
    """A listener. ``handle`` sees every event in order, with its time in seconds since the epoch."""

    def handle(self, event: Event, at: float) -> None: ...

    def close(self) -> None: ...


class Emitter:
    """Sends each event to every sink, in the order the sinks were given."""

    def __init__(self, sinks: Iterable[Sink]) -> None:
        self._sinks = tuple(sinks)

    def emit(self, event: Event) -> None:
        at = time.time()
        for sink in self._sinks:
            sink.handle(event, at)

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()
