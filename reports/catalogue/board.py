# SPDX-License-Identifier: Apache-2.0
"""Findings about the board, its kernel, its devices and its conditions.

The tables live beside this file, by letter: access (E, S), kernel and driver (K), versions (V), memory (M) and
conditions of speed (P).
"""

from __future__ import annotations

from reports.catalogue import board_access, board_conditions, board_kernel, board_versions
from reports.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    *board_access.ENTRIES,
    *board_kernel.ENTRIES,
    *board_versions.ENTRIES,
    *board_conditions.ENTRIES,
)
