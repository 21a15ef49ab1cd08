# SPDX-License-Identifier: Apache-2.0
"""Plugs the suites into pytest: options, header, the worker, the lock, the section of the report."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from c_probes.lock import LockError, NpuLock, lock_path
from conformance.bench import Check
from conformance.judging import Judge
from conformance.options import UnusableOption, add_options, read_options
from conformance.results import Results
from conformance.runner import Outcome, Runner
from conformance.section import CannotWrite, read_report
from conformance.subjects import Subject
from conformance.suites import SUITES
from conformance.target import NoTarget
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_USAGE

RESULTS = pytest.StashKey[Results]()
LOCK_WAIT_S = 600.0


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    try:
        options = read_options(config)
        if options.report is not None:
            read_report(options.report)
        results = Results(options, options.subjects(), is_worker=hasattr(config, "workerinput"))
    except (UnusableOption, CannotWrite) as error:
        pytest.exit(str(error), returncode=EXIT_USAGE)
    except NoTarget as error:
        pytest.exit(str(error), returncode=EXIT_COULD_NOT_RUN)
    config.stash[RESULTS] = results
    config.pluginmanager.register(results, "conformance-results")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Only the suites that have something to judge."""
    suite = collection_path.stem.removeprefix("test_")
    return True if suite in SUITES and suite not in config.stash[RESULTS].subjects else None


@pytest.fixture(scope="session")
def judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    """Runs a check on what its suite judges."""
    results = request.config.stash[RESULTS]
    options = results.options
    with contextlib.ExitStack() as stack:
        runners = {
            suite: stack.enter_context(Runner(subject, level=options.level, seed=options.seed))
            for suite, subject in results.subjects.items()
        }

        def call(suite: str, check: Check) -> Outcome:
            with _turn(results.subjects[suite]):
                return runners[suite].run(check.name, deadline_s=options.deadline_for(check.deadline_s))

        yield call


@contextlib.contextmanager
def _turn(subject: Subject) -> Iterator[None]:
    """On silicon one process at a time: workers of pytest-xdist hand the lock on."""
    if not subject.silicon:
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
