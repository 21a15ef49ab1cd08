# SPDX-License-Identifier: Apache-2.0
"""The commands of ``python -m reports``, one module each."""
