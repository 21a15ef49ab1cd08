# SPDX-License-Identifier: Apache-2.0
"""Runs one check in this process: opens what is judged, calls the check, says how it ended in the contract's words."""

from __future__ import annotations

from typing import Any

from c_probes.librknnrt import BindingError, MissingSymbol, UnsupportedByRuntime
from conformance.bench import BaseBench, CannotOpen, Check, NotServed, Wrong
from conformance.suites import load_suite
from reports.contract import Verdict


def run_check(request: dict[str, Any]) -> dict[str, Any]:
    """``request``: suite, check, level, seed, and what the suite needs to open what it judges.

    The answer: verdict, covered or reason, unexpected, known.
    """
    suite = load_suite(request["suite"])
    try:
        bench = suite.open_bench(request)
    except CannotOpen as error:
        return {"verdict": Verdict.COULD_NOT_RUN.value, "reason": str(error)}
    verdict, sentence = _judge(suite.checks[bench.check], bench)
    remarks = bench.remarks()
    if verdict is Verdict.PASSED and remarks:
        verdict, sentence = Verdict.FAILED, f"the library contradicts itself: {remarks[0]}"
    bench.close()
    key = "covered" if verdict is Verdict.PASSED else "reason"
    return {"verdict": verdict.value, key: sentence, "unexpected": bench.unexpected, "known": bench.known}


def _judge(check: Check, bench: BaseBench) -> tuple[Verdict, str]:
    try:
        return Verdict.PASSED, check.function(bench)
    except Wrong as error:
        return Verdict.FAILED, str(error)
    except (NotServed, UnsupportedByRuntime, MissingSymbol) as error:
        return Verdict.UNSUPPORTED, str(error)
    except BindingError as error:
        return Verdict.FAILED, str(error)
    except CannotOpen as error:
        return Verdict.COULD_NOT_RUN, str(error)
    except Exception as error:
        return Verdict.COULD_NOT_RUN, f"the check itself broke: {type(error).__name__}: {error}"
