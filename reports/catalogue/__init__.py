# SPDX-License-Identifier: Apache-2.0
"""The catalogue of findings: every code the kit can report, with its fixed texts. Append-only; a code is never reused.

Letters: E environment and access, K kernel and driver, V versions, L limits of shapes, M memory and IOMMU,
P performance conditions, C correctness of results, R resources and leaks, S safety and other users of the NPU,
D device under test (the library and the programs that call it), F model files.
"""

from __future__ import annotations

from types import MappingProxyType

from reports.catalogue import board, model, runtime
from reports.catalogue.entry import Entry
from reports.contract import Finding

__all__ = ["CATALOGUE", "Entry", "make_finding"]


def _merged(*tables: tuple[Entry, ...]) -> dict[str, Entry]:
    merged: dict[str, Entry] = {}
    for table in tables:
        for entry in table:
            if entry.code in merged:
                raise ValueError(f"finding code {entry.code} stands twice in the catalogue")
            merged[entry.code] = entry
    return merged


CATALOGUE = MappingProxyType(_merged(board.ENTRIES, runtime.ENTRIES, model.ENTRIES))


def make_finding(code: str, evidence: str, **values: object) -> Finding:
    """The finding ``code`` with ``values`` put into its texts. KeyError for an unknown code or a value left out."""
    return CATALOGUE[code].finding(evidence, **values)
