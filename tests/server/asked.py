# SPDX-License-Identifier: Apache-2.0
"""Runs one check of the suite ``server`` in this process, as the worker's child does."""

from __future__ import annotations

from typing import Any

from conformance.run_check import run_check


def outcome(check: str, server: str, server_off: str | None = None, **more: Any) -> dict[str, Any]:
    """The answer of ``run_check``: verdict, covered or reason, known."""
    request = {"suite": "server", "check": check, "level": "quick", "seed": 3, "deadline_s": 120.0, "model": None}
    return run_check({**request, "server": server, "server_off": server_off, **more})


def failed(told: dict[str, Any]) -> str:
    """The reason of a failure."""
    assert told["verdict"] == "failed", told
    return str(told["reason"])


def passed(told: dict[str, Any]) -> str:
    """The sentence of a pass."""
    assert told["verdict"] == "passed", told
    return str(told["covered"])
