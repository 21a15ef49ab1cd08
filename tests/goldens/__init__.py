# SPDX-License-Identifier: Apache-2.0
"""The engine against what other engines computed from the same weights, kept as small files with how they were made."""
