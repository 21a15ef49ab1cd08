# SPDX-License-Identifier: Apache-2.0
"""What bench/gemm_s8.py and the tests of the kernels run: the kernels as a library, and the peers beside them."""
