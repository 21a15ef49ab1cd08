# SPDX-License-Identifier: Apache-2.0
"""What changed between two reports: facts, measurements with a verdict that knows their noise, findings."""

from reports.diff.compare import Difference, compare

__all__ = ["Difference", "compare"]
