# SPDX-License-Identifier: Apache-2.0
"""Who may import whom: the ground floor nobody above it, probes and engine not each other."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = {
    "c_probes": {"c_probes"},
    "reference_engine": {"c_probes", "reference_engine", "reports"},
}
HOUSE = {"c_probes", "probes", "reference_engine", "reports", "bench", "tests"}


def imported(path: Path) -> set[str]:
    """First names of everything that a module imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_arrows_run_one_way(package: str) -> None:
    modules = sorted((ROOT / package).rglob("*.py"))
    assert len(modules) > 10
    wrong = {str(path): extra for path in modules if (extra := (imported(path) & HOUSE) - ALLOWED[package])}
    assert wrong == {}


def test_an_import_in_a_function_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("def f():\n    from probes.lock import NpuLock\n    import reports.text as t\n")
    assert imported(path) == {"probes", "reports"}
