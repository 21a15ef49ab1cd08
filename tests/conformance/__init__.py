# SPDX-License-Identifier: Apache-2.0
"""Tests of the conformance suite: it is green on a right runtime, red on a wrong one, and its oracles are right."""
