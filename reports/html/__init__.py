# SPDX-License-Identifier: Apache-2.0
"""A report as one self-contained HTML file: no script, no network, readable on a phone, dark and light."""

from __future__ import annotations

from reports.html.page import MissingPackage, render_html

__all__ = ["MissingPackage", "render_html"]
