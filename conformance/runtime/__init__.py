# SPDX-License-Identifier: Apache-2.0
"""Checks of the matmul runtime. Each is a function of a :class:`~conformance.bench.Bench`; its docstring says what it
holds and which public report made it necessary.
"""
