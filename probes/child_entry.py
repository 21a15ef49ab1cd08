# SPDX-License-Identifier: Apache-2.0
"""What runs first inside every child: set the limits, then become the program or call the function.

Started by :mod:`probes.child` as a script in isolated mode, so that the parent needs no code between fork
and exec (which is not safe in a process with threads). Only the standard library is imported here, and
little of it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

# In isolated mode nothing of the checkout is on the path; the caller's own path comes with its request.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from c_probes.child_limits import apply_limits


def become_program(spec: dict[str, Any], status_fd: int, argv: list[str]) -> None:
    """Replaces this process by ``argv``. On failure the reason goes to ``status_fd``, which success
    closes.
    """
    os.set_inheritable(status_fd, False)
    # Python ignores these two and a child would inherit that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        apply_limits(spec)
        os.execvp(argv[0], argv)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        os.write(status_fd, reason.encode("utf-8", "replace"))
    os._exit(127)


def call_function(spec: dict[str, Any], input_fd: int, log_fd: int, channel_fd: int) -> None:
    """Calls the function named in the JSON at ``input_fd``; its result goes to ``channel_fd`` as one JSON line.

    What a captured library call had written when the process died in it stays in ``log_fd``.
    """
    with os.fdopen(input_fd, "rb") as stream:
        request = json.load(stream)
    sys.path[:] = request["path"]
    os.set_inheritable(channel_fd, False)
    os.set_inheritable(log_fd, False)
    apply_limits(spec)
    answer: dict[str, Any]
    try:
        # Importable only once the path is set.
        from c_probes.log_capture import survive_in  # noqa: PLC0415
        from probes.child_steps import bind_channel  # noqa: PLC0415

        survive_in(log_fd)
        bind_channel(channel_fd)
        module = __import__(request["module"], fromlist=[request["function"]])
        value = getattr(module, request["function"])(*request["args"], **request["kwargs"])
        answer = {"result": value}
        line = json.dumps(answer)
    except (KeyboardInterrupt, SystemExit) as error:
        line = json.dumps({"error": {"type": type(error).__name__, "message": str(error)}})
    except Exception as error:  # any failure of the call is an answer
        line = json.dumps({"error": {"type": type(error).__name__, "message": str(error)}})
    payload = memoryview(line.encode() + b"\n")
    while payload:
        payload = payload[os.write(channel_fd, payload) :]
    sys.stdout.flush()
    sys.stderr.flush()


def main(arguments: list[str]) -> None:
    """``program SPEC STATUS_FD ARGV...`` or ``call SPEC INPUT_FD LOG_FD CHANNEL_FD``."""
    kind, spec = arguments[0], json.loads(arguments[1])
    if kind == "program":
        become_program(spec, int(arguments[2]), arguments[3:])
    else:
        call_function(spec, *(int(fd) for fd in arguments[2:5]))


if __name__ == "__main__":
    main(sys.argv[1:])
