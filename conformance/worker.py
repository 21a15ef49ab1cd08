# SPDX-License-Identifier: Apache-2.0
"""The process that runs checks: it forks a child for each, gives it a deadline, and says how it ended.

Starting an interpreter with numpy and cffi for each check would cost more than the checks do, so this process has
both loaded and forks. It never opens the library itself. One JSON request per line on stdin, one answer on stdout.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from typing import Any

from c_probes import librknnrt
from c_probes.abi import load_ffi
from c_probes.child_limits import apply_limits
from c_probes.signal_names import signal_name
from conformance.readable import readable
from conformance.run_check import run_check
from conformance.suites import load_suite

GRACE_S = 2.0
_MAX_ANSWER = 1 << 20
_MAX_SAID = 2000


def main() -> int:
    """Serves requests until stdin ends."""
    apply_limits({"parent": os.getppid()})
    # Parsing the ABI header takes longer than most checks do: once here, and each child inherits it.
    ffi = load_ffi()
    vars(librknnrt)["load_ffi"] = lambda: ffi
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), flush=True)
    return 0


def serve(request: dict[str, Any]) -> dict[str, Any]:
    """One check in a child of its own: the child's answer, or how it died."""
    try:
        load_suite(request["suite"])  # here once, and each child inherits it
    except ImportError as error:
        return {"verdict": "could-not-run", "seconds": 0.0, "reason": f"the suite {request['suite']}: {error}"}
    read_end, write_end = os.pipe()
    with tempfile.TemporaryFile() as said:
        pid = os.fork()
        if pid == 0:
            os.close(read_end)
            _child(request, write_end, said.fileno())
        os.close(write_end)
        started = time.monotonic()
        answer, in_time = _read(read_end, started + float(request["deadline_s"]))
        os.close(read_end)
        status = _reap(pid, 0.0 if not in_time else GRACE_S)
        said.seek(0)
        text = said.read()[-_MAX_SAID:].decode("utf-8", "replace").strip()
    seconds = time.monotonic() - started
    ended = _how_it_ended(request, answer, in_time, status, text)
    return {"seconds": seconds, "said": text, **ended}


def _how_it_ended(
    request: dict[str, Any], answer: bytes, in_time: bool, status: int | None, text: str
) -> dict[str, Any]:
    last = text.splitlines()[-1] if text else "nothing"
    if status is None:
        reason = "the check did not end and cannot be killed: it is stuck in the kernel; a reboot is needed"
        return {"verdict": "timed-out", "reason": reason}
    if not in_time:
        reason = f"a call never returned: no answer within {request['deadline_s']:g} s; the library said last: {last}"
        return {"verdict": "timed-out", "reason": reason}
    if status < 0:
        reason = f"the library ended the process with {signal_name(-status)}; it said last: {last}"
        return {"verdict": "crashed", "reason": reason}
    try:
        told = json.loads(answer)
    except ValueError:
        return {"verdict": "crashed", "reason": f"the process ended with code {status} and no answer; it said: {last}"}
    return dict(told)


def _child(request: dict[str, Any], answer: int, said: int) -> None:
    """Never returns: this is a copy of the worker."""
    code = 70
    try:
        os.setsid()
        apply_limits({"parent": os.getppid()})
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.environ.update(request.get("env") or {})
        told = json.dumps(run_check(request)).encode()
        while told:
            told = told[os.write(answer, told) :]
        code = 0
    finally:
        os._exit(code)


def _read(fd: int, deadline: float) -> tuple[bytes, bool]:
    """Everything up to the end of the pipe, and whether the end came in time."""
    parts: list[bytes] = []
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not readable(fd, left):
            return b"".join(parts), False
        part = os.read(fd, 1 << 16)
        if not part or sum(map(len, parts)) > _MAX_ANSWER:
            return b"".join(parts), True
        parts.append(part)


def _reap(pid: int, grace_s: float) -> int | None:
    """Exit code, or minus the signal; None for a child that SIGKILL does not end (state D)."""
    for number, wait_s in ((0, grace_s), (signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
        if number:
            os.killpg(pid, number)
        end = time.monotonic() + wait_s
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() >= end:
                break
            time.sleep(0.005)
    return None


if __name__ == "__main__":
    sys.exit(main())
