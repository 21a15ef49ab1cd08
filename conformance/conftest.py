# SPDX-License-Identifier: Apache-2.0
"""Plugs the suite into pytest: options, header, the worker, the lock, the section of the report."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from c_probes.lock import LockError, NpuLock, lock_path
from conformance.options import UnusableOption, add_options, read_options
from conformance.results import Results
from conformance.runner import Outcome, Runner
from conformance.runtime.catalogue import CHECKS
from conformance.section import CannotWrite, read_report
from conformance.target import NoTarget, Target, choose_target
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_USAGE

RESULTS = pytest.StashKey[Results]()
LOCK_WAIT_S = 600.0

Judge = Callable[[str], Outcome]


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    try:
        options = read_options(config)
        if options.report is not None:
            read_report(options.report)
        results = Results(options, choose_target(options.library), is_worker=hasattr(config, "workerinput"))
    except (UnusableOption, CannotWrite) as error:
        pytest.exit(str(error), returncode=EXIT_USAGE)
    except NoTarget as error:
        pytest.exit(str(error), returncode=EXIT_COULD_NOT_RUN)
    config.stash[RESULTS] = results
    config.pluginmanager.register(results, "conformance-results")


@pytest.fixture(scope="session")
def judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    """Runs a check by name on the target."""
    results = request.config.stash[RESULTS]
    options = results.options
    with Runner(results.target, level=options.level, seed=options.seed) as runner:

        def call(name: str) -> Outcome:
            with _turn(results.target):
                return runner.run(name, deadline_s=options.deadline_for(CHECKS[name].deadline_s))

        yield call


@contextlib.contextmanager
def _turn(target: Target) -> Iterator[None]:
    """On silicon one process at a time: workers of pytest-xdist hand the lock on. The mock is no shared device."""
    if target.mock:
        yield
        return
    lock = NpuLock(lock_path())
    try:
        lock.acquire(wait_s=LOCK_WAIT_S)
    except LockError as error:
        pytest.fail(str(error), pytrace=False)
    try:
        yield
    finally:
        lock.release()
