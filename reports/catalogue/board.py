# SPDX-License-Identifier: Apache-2.0
"""Findings about the board, its kernel, its devices and its conditions."""

from __future__ import annotations

from reports.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
