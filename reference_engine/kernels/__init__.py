# SPDX-License-Identifier: Apache-2.0
"""The engine's arithmetic in C; ``library.load_library`` is the door to it."""
