# SPDX-License-Identifier: Apache-2.0
"""What the matmul units of each SoC take: cores, alignment, K limit. Data, no logic.

Sources: alignment and core counts from the vendor's matmul header 2.3.2 and user guide (table 3-6, 3-7); K limits of
RK3588 and RK3576 from the configuration of rk-llama.cpp (rknpu2-configuration.cpp at c9b63b83), of the others from the
header of runtime 1.6.0. No matmul back end is known for RK356x and RK3562: their rows say what the runtime would take.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OperandRule:
    """One type of activation: K and N are multiples of these, ``a_bits`` per element of A and B, ``c_bytes`` of C.

    ``doubt`` is what sources disagree about; None where they agree.
    """

    k_align: int
    n_align: int
    a_bits: int
    c_bytes: int
    doubt: str | None = None


@dataclass(frozen=True)
class NpuSoc:
    """One SoC. ``rules`` by activation type (``int8``, ``int4``, ``fp16``); a type that is absent is not supported."""

    name: str
    cores: int
    k_limit: int
    rules: dict[str, OperandRule]


_INT4_RK3576 = "the user guide lists no int4 by int4 for RK3576; a fork's configuration uses it"

_ROWS = (
    NpuSoc(
        "rk3588",
        3,
        8192,
        {
            "int8": OperandRule(32, 32, 8, 4),
            "int4": OperandRule(32, 64, 4, 2),
            "fp16": OperandRule(32, 16, 16, 4),
        },
    ),
    NpuSoc(
        "rk3576",
        2,
        4096,
        {
            "int8": OperandRule(32, 32, 8, 4),
            "int4": OperandRule(32, 64, 4, 2, _INT4_RK3576),
            "fp16": OperandRule(32, 16, 16, 4),
        },
    ),
    NpuSoc("rk3562", 1, 10240, {"int8": OperandRule(32, 16, 8, 4), "fp16": OperandRule(32, 8, 16, 4)}),
    NpuSoc("rk3566", 1, 10240, {"int8": OperandRule(32, 16, 8, 4), "fp16": OperandRule(16, 8, 16, 4)}),
    NpuSoc("rk3568", 1, 10240, {"int8": OperandRule(32, 16, 8, 4), "fp16": OperandRule(16, 8, 16, 4)}),
)
NPU_SOCS = {row.name: row for row in _ROWS}


def npu_soc(name: str) -> NpuSoc:
    """The row of ``name`` (``rk3588``, ``RK3588S`` and the like). ValueError names those that are known."""
    key = name.lower().rstrip("sjm2") if name.lower().startswith(("rk3588", "rk3576")) else name.lower()
    found = NPU_SOCS.get(key)
    if found is None:
        raise ValueError(f"SoC {name!r} is not one with a matmul table; known are {', '.join(NPU_SOCS)}")
    return found
