# SPDX-License-Identifier: Apache-2.0
"""A process with more than a thousand open descriptors is served as any other."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.runner import Runner
from conformance.target import choose_target
from reports.contract import Verdict

MANY = 1100


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * MANY:
        pytest.skip(f"no more than {hard} descriptors are allowed here")
    if soft != resource.RLIM_INFINITY and soft < 2 * MANY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (2 * MANY, hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(MANY)]
    yield
    for fd in held:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_descriptors")
def test_a_check_is_run_where_a_thousand_descriptors_are_open(mock_library: Path) -> None:
    with Runner(choose_target(mock_library), level="quick", seed=1) as runner:
        outcome = runner.run("type_table", deadline_s=60.0)
    assert outcome.verdict is Verdict.PASSED, outcome.reason
