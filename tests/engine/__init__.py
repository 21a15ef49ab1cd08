# SPDX-License-Identifier: Apache-2.0
"""Tests of loading, graphs, sessions and generation."""
