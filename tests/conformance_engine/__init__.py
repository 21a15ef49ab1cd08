# SPDX-License-Identifier: Apache-2.0
"""The engine suite: its quantiser, its goldens, its faults."""
