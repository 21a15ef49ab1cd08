# SPDX-License-Identifier: Apache-2.0
"""The conformance suite: ``pytest conformance`` tells whether a librknnrt computes what it says."""
