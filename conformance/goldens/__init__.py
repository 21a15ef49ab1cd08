# SPDX-License-Identifier: Apache-2.0
"""Golden token ids: a manifest with how far each step was from going another way, and how to make it anew."""
