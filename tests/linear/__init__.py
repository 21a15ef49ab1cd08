# SPDX-License-Identifier: Apache-2.0
"""Tests of the matmul back ends and their kernels."""
