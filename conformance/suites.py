# SPDX-License-Identifier: Apache-2.0
"""The suites by name. Each is a module with ``CHECKS`` and ``open_bench``, loaded only where it runs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.bench import BaseBench, Check

SUITES = ("runtime", "engine", "server")


@dataclass(frozen=True)
class Suite:
    """``open_bench`` takes the request of one check and raises :class:`conformance.bench.CannotOpen`."""

    name: str
    checks: Mapping[str, Check]
    open_bench: Callable[[dict[str, Any]], BaseBench]


def load_suite(name: str) -> Suite:
    """The suite of that name, one of SUITES."""
    module = importlib.import_module(f"conformance.{name}.suite")
    return Suite(name, module.CHECKS, module.open_bench)
