# SPDX-License-Identifier: Apache-2.0
"""What a change of the arithmetic costs a model: distances between distributions, with error bars, and their floor.

An end-to-end figure of a quantised model moves as much by noise of 1e-7 as by the whole quantisation, so each one here
has an error bar and stands beside the distance that such noise alone makes (``noise``). Integers are judged bit for bit
instead (``matmuls``).
"""
