# SPDX-License-Identifier: Apache-2.0
"""Tests of the HTML and Markdown pages and their plots."""
