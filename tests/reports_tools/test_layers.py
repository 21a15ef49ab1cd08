# SPDX-License-Identifier: Apache-2.0
"""What a reader of reports may rest on: no probe, no test, and of the engine only what tells of a header or a plan."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
OURS = frozenset({"bench", "c_probes", "conformance", "probes", "reference_engine", "tests", "tools"})
ENGINE = ("backends.presets", "claims", "gguf_", "npu_", "speculation.cost")
"""The modules of the engine that the reports may use: headers, plans, the arithmetic of drafts, the table of claims."""


def imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            yield str(ast.literal_eval(node.args[0])) if isinstance(node.args[0], ast.Constant) else "reports"


def forbidden(source: str) -> list[str]:
    found = []
    for name in imported(source):
        top, _, rest = name.partition(".")
        if top in OURS and not (top == "reference_engine" and rest.startswith(ENGINE)):
            found.append(name)
    return found


def test_no_module_of_the_reports_imports_a_probe_or_runs_the_engine() -> None:
    sources = sorted((CHECKOUT / "reports").rglob("*.py"))
    assert len(sources) > 50
    found = {str(path): forbidden(path.read_text(encoding="utf-8")) for path in sources}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "line",
    [
        "import probes",
        "from probes.measure import timing",
        "def run():\n    from reference_engine.model import Model",
        "import importlib\nimportlib.import_module('conformance.bench')",
    ],
)
def test_an_import_that_must_not_be_is_seen(line: str) -> None:
    assert len(forbidden(line)) == 1
