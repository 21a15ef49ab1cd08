# SPDX-License-Identifier: Apache-2.0
"""int8 by int8 in numpy wraps silently: products of matrices stand in one file of the engine only."""

from __future__ import annotations

import ast
from pathlib import Path

ENGINE = Path(__file__).resolve().parents[2] / "reference_engine"
HELPER = ENGINE / "backends" / "integer_product.py"
PRODUCTS = {
    "matmul",
    "dot",
    "vdot",
    "inner",
    "outer",
    "tensordot",
    "einsum",
    "convolve",
    "correlate",
    "matvec",
    "vecmat",
}


def matrix_products(source: str) -> list[int]:
    """Lines with ``@`` or a call of one of numpy's matrix products, by numpy's name or as a method (``a.dot``)."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.MatMult):
            found.append(node.lineno)
        if isinstance(node, ast.Call):
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            of_numpy = owner is None or getattr(owner, "id", "") in ("np", "numpy")
            if name == "dot" or (of_numpy and name in PRODUCTS):
                found.append(node.lineno)
    return sorted(found)


def test_matrix_products_stand_in_one_helper_only() -> None:
    files = sorted(ENGINE.rglob("*.py"))
    assert HELPER in files
    assert len(matrix_products(HELPER.read_text(encoding="utf-8"))) == 1
    found = {str(f): matrix_products(f.read_text(encoding="utf-8")) for f in files if f != HELPER}
    assert {file: lines for file, lines in found.items() if lines} == {}


def test_the_lint_sees_each_way_to_multiply() -> None:
    lines = "y = a @ b\ny @= c\nz = np.dot(a, b)\nw = a.dot(b)\nv = einsum('ij', a)\n"
    assert matrix_products(lines) == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert matrix_products("y = a * b\nz = np.multiply(a, b)\nlibrary.matmul(8, 8, 8)\nassert 'a @ b'\n") == []
