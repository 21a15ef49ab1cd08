# SPDX-License-Identifier: Apache-2.0
"""Speculative decoding: drafters, verification, statistics and a cost model."""
