# SPDX-License-Identifier: Apache-2.0
"""Tests of the quality figures and of the compare command."""
