# SPDX-License-Identifier: Apache-2.0
"""What all tests need of the process they run in."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """A shell has what it starts in the background ignore Ctrl-C, which some tests send; all children would, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
