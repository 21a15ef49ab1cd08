# SPDX-License-Identifier: Apache-2.0
"""The traps by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.traps import copies, tables
from conformance.traps.trap import Design

DESIGNS: Mapping[str, Callable[[], Design]] = {
    "w4a4": tables.w4a4,
    "int8-wrap": tables.int8_wrap,
    "quantiser": tables.quantiser,
    "k-segment": tables.k_segment,
    "segment-scale": tables.segment_scale,
    "core-slices": tables.core_slices,
    "stale-activation": tables.stale_activation,
    "batch-row": copies.batch_row,
    "kv-rollback": copies.kv_rollback,
    "swa-window": copies.swa_window,
    "rope-base": copies.rope_base,
    "tied-head": tables.tied_head,
}
