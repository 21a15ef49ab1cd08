# SPDX-License-Identifier: Apache-2.0
"""One module for each command of ``python -m reference_engine``."""
