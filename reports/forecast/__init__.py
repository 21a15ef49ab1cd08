# SPDX-License-Identifier: Apache-2.0
"""What a model will do on a measured board: from the model's header and the board's report alone.

Floors, lowest first: ``quantity`` (numbers that know their interval, their sources and what is missing), ``board``
(coefficients out of a report), ``npu_rate`` (time of a matmul), ``work`` (what a model asks for), ``passes`` (time of
a forward pass), then what is told from them: ``memory``, ``crossover``, ``speculate``, and ``document``, ``page``.
"""
