# SPDX-License-Identifier: Apache-2.0
"""Runs one check in this process: opens the library, calls the check, puts how it ended into the contract's words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from c_probes.librknnrt import BindingError, LibraryUnavailable, MissingSymbol, UnsupportedByRuntime, open_library
from conformance.bench import Bench, NotServed, Wrong
from conformance.profile import profile_for
from conformance.runtime.catalogue import CHECKS
from reports.contract import Verdict


def run_check(request: dict[str, Any]) -> dict[str, Any]:
    """``request``: library, force, soc, level, seed, check.

    The answer: verdict, covered or reason, unexpected, known.
    """
    try:
        library = open_library(
            Path(request["library"]), force=bool(request["force"]), device_present=bool(request["force"])
        )
    except LibraryUnavailable as error:
        return {"verdict": Verdict.COULD_NOT_RUN.value, "reason": str(error)}
    profile = profile_for(request["soc"], library.version)
    bench = Bench(library, profile, request["level"], int(request["seed"]), request["check"])
    verdict, sentence = _judge(bench)
    if verdict is Verdict.PASSED and library.remarks:
        # Return code, pointer and log are three signals of one call; success after a logged error is none
        # (rknn-llm issue 156).
        verdict, sentence = Verdict.FAILED, f"the library contradicts itself: {library.remarks[0]}"
    key = "covered" if verdict is Verdict.PASSED else "reason"
    return {"verdict": verdict.value, key: sentence, "unexpected": bench.unexpected, "known": bench.known}


def _judge(bench: Bench) -> tuple[Verdict, str]:
    check = CHECKS[bench.check]
    try:
        return Verdict.PASSED, check.function(bench)
    except Wrong as error:
        return Verdict.FAILED, str(error)
    except (NotServed, UnsupportedByRuntime, MissingSymbol) as error:
        return Verdict.UNSUPPORTED, str(error)
    except BindingError as error:
        return Verdict.FAILED, str(error)
    except Exception as error:
        return Verdict.COULD_NOT_RUN, f"the check itself broke: {type(error).__name__}: {error}"
