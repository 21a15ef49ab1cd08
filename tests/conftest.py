# SPDX-License-Identifier: Apache-2.0
"""What all tests need of the process they run in."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """A shell that starts a job in the background has it ignore Ctrl-C, which some tests send; so would all children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
