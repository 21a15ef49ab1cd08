# SPDX-License-Identifier: Apache-2.0
"""What all tests need of the process they run in."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

# The same examples in every run, and none judged by how long a busy machine takes for it. New examples come with
# --hypothesis-profile=default. Fixtures that several examples share are made for that.
settings.register_profile(
    "kit",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("kit")


def pytest_configure() -> None:
    """A shell has what it starts in the background ignore Ctrl-C, which some tests send; all children would, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
