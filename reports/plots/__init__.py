# SPDX-License-Identifier: Apache-2.0
"""The plots of a report's page: SVG with selectable text, or the sentence that says why there is none.

``series.py`` takes the points out of a report and knows no matplotlib; each plot is a module with ``NAME``,
``TITLE``, ``ROWS`` and ``make(report) -> Drawing | Missing``; ``canvas.py`` turns a drawing into SVG for a page,
``gallery.py`` lists all.
"""

from __future__ import annotations

from reports.plots.gallery import Plot, plots_of

__all__ = ["Plot", "plots_of"]
