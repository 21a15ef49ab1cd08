# SPDX-License-Identifier: Apache-2.0
"""Speculation is lossless on the kit's own models: every strategy, every back end, against hashes that are kept."""
