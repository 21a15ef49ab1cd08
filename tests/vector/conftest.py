# SPDX-License-Identifier: Apache-2.0
"""The built kernels and the CPU paths of this machine, as the tests of the matrix products have them."""

from tests.linear.conftest import kernels, paths

__all__ = ["kernels", "paths"]
