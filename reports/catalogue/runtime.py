# SPDX-License-Identifier: Apache-2.0
"""Findings about librknnrt, the programs that call it, and the numbers they returned."""

from __future__ import annotations

from reports.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
