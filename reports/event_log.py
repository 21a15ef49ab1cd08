# SPDX-License-Identifier: Apache-2.0
"""The event log: one JSON object a line, flushed to the disk at once, so that it survives what ends the run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reports.contract import Fact, Finding, JsonValue, Measurement, finite
from reports.events import Breadcrumb, Event, Progress, RunEnded, RunStarted
from reports.files import OutputError
from reports.redact import Names, redact

MAX_LINE_BYTES = 16 * 1024 * 1024


class EventLogSink:
    """Writes every event but progress, redacted with ``names`` like the report unless ``full`` keeps personal data."""

    def __init__(self, path: Path, *, force: bool = False, full: bool = False, names: Names | None = None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if force else os.O_EXCL)
        try:
            self._handle = os.open(path, flags, 0o644)
        except FileExistsError as error:
            raise OutputError(f"{path} exists already. Use --force to write over it.") from error
        except OSError as error:
            raise OutputError(f"cannot write {path}: {error.strerror}. Choose another with --output.") from error
        self._full = full
        self._names = names

    def handle(self, event: Event, at: float) -> None:
        if isinstance(event, Progress):
            return
        document = event_as_json(event, full=self._full)
        if not self._full:
            document = (
                redact({"facts": {event.key: document}}, self._names)["facts"][event.key]
                if isinstance(event, Fact)
                else redact(document, self._names)
            )
        line = json.dumps({"at": round(at, 6), **document}, ensure_ascii=True)
        data = line.encode("ascii") + b"\n"
        while data:
            data = data[os.write(self._handle, data) :]
        os.fsync(self._handle)

    def close(self) -> None:
        os.close(self._handle)


def event_as_json(event: Event, *, full: bool = False) -> dict[str, JsonValue]:
    """One event as an object with the key ``event``. A fact keeps its ``key`` beside its record."""
    if isinstance(event, RunStarted):
        return {"event": "run-started", **finite(event.header)}
    if isinstance(event, RunEnded):
        return {"event": "run-ended", "exit_code": event.exit_code}
    if isinstance(event, Breadcrumb):
        return {"event": "breadcrumb", "step": event.step, "detail": event.detail}
    if isinstance(event, Progress):
        return {"event": "progress", "step": event.step, "done": event.done, "total": event.total}
    if isinstance(event, Fact):
        return {"event": "fact", "key": event.key, **event.as_json(full=full)}
    if isinstance(event, Measurement):
        return {"event": "measurement", **event.as_json()}
    if isinstance(event, Finding):
        return {"event": "finding", **event.as_json()}
    return {"event": "step", **event.as_json()}


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a log, in order. A last line that was cut off, and any line that is no object, is left out."""
    with path.open("rb") as stream:
        while line := stream.readline(MAX_LINE_BYTES):
            if not line.endswith(b"\n"):
                continue
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                yield event


def interrupted_step(path: Path) -> str | None:
    """Where the run that wrote ``path`` was cut short: its last breadcrumb or step, or None when it ended itself."""
    last: str | None = None
    started = False
    for event in read_events(path):
        kind = event.get("event")
        if kind == "run-started":
            started = True
        elif kind == "run-ended":
            return None
        elif kind == "breadcrumb":
            detail = event.get("detail")
            last = f"{event.get('step')}: {detail}" if detail else str(event.get("step"))
    return (last or "before the first step") if started else None
