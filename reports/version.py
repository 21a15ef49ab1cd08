# SPDX-License-Identifier: Apache-2.0
"""The version of the kit, where code and reports take it from. A test holds it equal to pyproject.toml."""

VERSION = "0.1.0"
