# SPDX-License-Identifier: Apache-2.0
"""Tests of the GGUF reader. Every file is written field by field; none is stored."""
