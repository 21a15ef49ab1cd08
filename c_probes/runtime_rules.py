# SPDX-License-Identifier: Apache-2.0
"""What the fields of ``rknn_matmul_info`` mean to a runtime, by its version. Pure tables and one builder.

Sources: the struct of every header from 1.5.0 to 2.3.2 (sizes and offsets compiled and compared), and the
release notes of those versions. Runtimes before 2.0 own 24 bytes; 2.0.0-beta0 owns 64, knows two
quantisation types, calls per-channel 1, and gives dynamic shapes and the B converter other signatures than
2.1.0 does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from c_probes.errors import UnsupportedByRuntime
from c_probes.names import Layout, QuantType

INFO_BUFFER_BYTES = 256
"""What is handed over instead of the bare struct, so that a longer struct of a later runtime reads zeros."""


@dataclass(frozen=True)
class RuntimeRules:
    """``quant`` maps our names of a quantisation type to the runtime's number; an absent one is unknown to
    it.

    ``create_dynamic`` is the symbol for dynamic shapes and ``converter_arguments`` the number of arguments of
    rknn_B_normal_layout_to_native_layout; None where that runtime has none.
    """

    era: str
    info_bytes: int
    quant: Mapping[int, int]
    b_layouts: frozenset[int]
    create_dynamic: str | None
    converter_arguments: int | None


_ERAS: tuple[tuple[tuple[int, ...], RuntimeRules], ...] = (
    (
        (2, 1),
        RuntimeRules(
            "2.1 and later",
            64,
            {int(quant): int(quant) for quant in QuantType},
            frozenset(int(layout) for layout in Layout),
            "rknn_matmul_create_dynamic_shape",
            5,
        ),
    ),
    (
        (2, 0),
        RuntimeRules(
            "2.0",
            64,
            {int(QuantType.PER_LAYER_SYM): 0, int(QuantType.PER_CHANNEL_SYM): 1},
            frozenset((0, 1)),
            "rknn_matmul_create_dyn_shape",
            7,
        ),
    ),
    ((0,), RuntimeRules("1.x", 24, {int(QuantType.PER_LAYER_SYM): 0}, frozenset((0, 1)), None, None)),
)


def rules_for(version: tuple[int, ...] | None) -> RuntimeRules:
    """The rules of a version. An unknown version gets the latest: its zero-filled tail means the same to
    all.
    """
    if version is None:
        return _ERAS[0][1]
    return next(rules for start, rules in _ERAS if version >= start)


@dataclass(frozen=True)
class MatmulRequest:
    """What a matmul context is asked to be. ``type`` is a code, so that unknown ones can be tried as
    well.
    """

    M: int
    K: int
    N: int
    type: int
    B_layout: int = Layout.NORM
    AC_layout: int = Layout.NORM
    B_quant: int = QuantType.PER_LAYER_SYM
    AC_quant: int = QuantType.PER_LAYER_SYM
    group_size: int = 0
    iommu_domain: int = 0

    def __str__(self) -> str:
        return (
            f"type {self.type}, M={self.M} K={self.K} N={self.N}, B_layout {self.B_layout}, "
            f"AC_layout {self.AC_layout}, B_quant {self.B_quant}"
        )


def check_request(request: MatmulRequest, rules: RuntimeRules) -> None:
    """Raises ValueError for what no field can hold and UnsupportedByRuntime for what this runtime has no
    field for.
    """
    for name, bits in (("M", 32), ("K", 32), ("N", 32), ("type", 32), ("iommu_domain", 32), ("group_size", 16)):
        value = getattr(request, name)
        if not 0 <= value < 1 << (bits - 1):
            raise ValueError(f"{name} = {value} does not fit the field of {bits} bits in rknn_matmul_info.")
    for name in ("B_quant", "AC_quant"):
        if getattr(request, name) not in rules.quant:
            raise UnsupportedByRuntime(
                f"Runtime {rules.era} has no quantisation type {getattr(request, name)} ({name})."
            )
    if request.B_layout not in rules.b_layouts or request.AC_layout not in (Layout.NORM, Layout.NATIVE):
        raise UnsupportedByRuntime(
            f"Runtime {rules.era} has no B_layout {request.B_layout} with AC_layout {request.AC_layout}."
        )
    if rules.info_bytes < 64 and request.iommu_domain:
        raise UnsupportedByRuntime(f"Runtime {rules.era} has no IOMMU domains; leave iommu_domain at 0.")
    if rules.era != _ERAS[0][1].era and request.group_size:
        raise UnsupportedByRuntime(f"Runtime {rules.era} has no group_size; leave it at 0.")


def build_info(ffi: Any, request: MatmulRequest, rules: RuntimeRules) -> tuple[Any, Any]:
    """``(buffer, rknn_matmul_info *)``: zeroed, filled as ``rules`` say. The buffer must outlive the pointer.

    For 1.x the same stores are right: its 32-bit layout fields of value 0 or 1 are our 16-bit layout and a
    zero quantisation type.
    """
    check_request(request, rules)
    buffer = ffi.new(f"char[{INFO_BUFFER_BYTES}]")
    info = ffi.cast("rknn_matmul_info *", buffer)
    info.M, info.K, info.N = request.M, request.K, request.N
    info.type = request.type
    info.B_layout, info.AC_layout = int(request.B_layout), int(request.AC_layout)
    info.B_quant_type = rules.quant[request.B_quant]
    info.AC_quant_type = rules.quant[request.AC_quant]
    info.iommu_domain_id = request.iommu_domain
    info.group_size = request.group_size
    if any(bytes(ffi.buffer(buffer))[rules.info_bytes :]):
        raise AssertionError(f"bytes past the {rules.info_bytes} that runtime {rules.era} owns are set")
    return buffer, info
