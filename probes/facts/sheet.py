# SPDX-License-Identifier: Apache-2.0
"""The facts of one board by key, and the pen that writes them down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from probes.answers import Answer
from probes.system import System
from reports.contract import Fact, JsonValue, Provenance
from reports.events import Event


class FactSheet(Mapping[str, Fact]):
    """Facts by key, in the order they were found. The typed accessors give None for absent and for the wrong type."""

    def __init__(self, facts: Mapping[str, Fact] | None = None) -> None:
        self._facts: dict[str, Fact] = dict(facts or {})

    def __getitem__(self, key: str) -> Fact:
        return self._facts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def value(self, key: str) -> JsonValue:
        fact = self._facts.get(key)
        return None if fact is None else fact.value

    def reason(self, key: str) -> str:
        fact = self._facts.get(key)
        return "not asked for" if fact is None else fact.reason or ""

    def source(self, key: str) -> str:
        fact = self._facts.get(key)
        return "" if fact is None else fact.source

    def text(self, key: str) -> str | None:
        value = self.value(key)
        return value if isinstance(value, str) else None

    def number(self, key: str) -> int | float | None:
        value = self.value(key)
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def flag(self, key: str) -> bool | None:
        value = self.value(key)
        return value if isinstance(value, bool) else None

    def items_of(self, key: str) -> list[Any]:
        value = self.value(key)
        return value if isinstance(value, list) else []

    def rows(self, key: str) -> list[dict[str, Any]]:
        return [row for row in self.items_of(key) if isinstance(row, dict)]

    def table(self, key: str) -> dict[str, Any]:
        value = self.value(key)
        return value if isinstance(value, dict) else {}


class Pen:
    """Writes facts: keeps them in the sheet and sends each to the listener. One per run."""

    def __init__(self, system: System, sheet: FactSheet, emit: Callable[[Event], None]) -> None:
        self.system = system
        self.sheet = sheet
        self._emit = emit

    def put(
        self,
        key: str,
        value: JsonValue,
        source: str,
        *,
        reason: str | None = None,
        provenance: Provenance = Provenance.READ,
        needs_root: bool = False,
    ) -> None:
        """Write one fact. A None without a reason of its own says that the source holds no usable value."""
        if value is None and not reason:
            reason = f"{source}: no usable value"
        kept = reason if value is None else None
        fact = Fact(key, value, source, provenance, kept, needs_root and value is None)
        self.sheet._facts[key] = fact
        self._emit(fact)

    def take(self, key: str, answer: Answer[Any], value: JsonValue) -> None:
        """Write what was made of ``answer``; where nothing was, its refusal is the reason."""
        reason = None if value is not None else answer.reason
        self.put(key, value, answer.path, reason=reason, needs_root=answer.needs_root)

    def assume(self, key: str, value: JsonValue, source: str, reason: str | None = None) -> None:
        self.put(key, value, source, reason=reason, provenance=Provenance.ASSUMED)
