# SPDX-License-Identifier: Apache-2.0
"""Tests of the claims and their experiments."""
