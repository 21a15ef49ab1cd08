# SPDX-License-Identifier: Apache-2.0
"""Tests of what the engine's benchmarks conclude from samples; nothing is timed here."""
