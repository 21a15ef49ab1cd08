# SPDX-License-Identifier: Apache-2.0
"""The name of a signal, for sentences about a child's end."""

from __future__ import annotations

import signal


def signal_name(number: int) -> str:
    """``SIGSEGV`` for 11; ``signal 99`` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
