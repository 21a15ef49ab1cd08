# SPDX-License-Identifier: Apache-2.0
"""Tests of gemma4, its drafter, and qwen35 with its nextn block: graphs, state, and heads."""
