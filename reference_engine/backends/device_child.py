# SPDX-License-Identifier: Apache-2.0
"""Start and loop of the device back end's child. Run as a script in isolated mode: SPEC CHANNEL_FD BLOCK_FD."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

# In isolated mode nothing of the checkout is on the path; the rest of the caller's path comes with the request.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from c_probes.child_limits import apply_limits


def main(arguments: list[str]) -> None:
    spec = json.loads(arguments[0])
    sys.path[:] = spec["path"]
    apply_limits(spec)
    channel = socket.socket(fileno=int(arguments[1]))
    try:
        serve(spec, channel, int(arguments[2]))
    except BrokenPipeError:
        return  # the parent is gone


def serve(spec: dict[str, Any], channel: socket.socket, block_fd: int) -> None:
    """Open the library, then answer requests until the parent says ``end`` or is gone."""
    # Importable only once the path is set.
    from c_probes.errors import BindingError  # noqa: PLC0415
    from c_probes.librknnrt import open_library  # noqa: PLC0415
    from reference_engine.backends.device_wire import Block, receive, send  # noqa: PLC0415
    from reference_engine.backends.device_worker import Worker  # noqa: PLC0415

    block = Block(block_fd)
    block.note("opening the library")
    try:
        library = open_library(
            spec["library"], device_present=spec["device_present"], force=spec["force"], log_file=Path(spec["log"])
        )
    except BindingError as error:
        send(channel, {"error": str(error)})
        return
    send(channel, {"ok": {"path": library.path, "version": library.version_text, "is_mock": library.is_mock}})
    worker = Worker(library, block, one_core=spec["one_core"], per_weight=spec["per_weight"])
    operations = {"load": worker.load, "run": worker.run}
    while (request := receive(channel)) is not None:
        if request["op"] == "end":
            block.note("freeing contexts and memory")
            worker.close()
            send(channel, {"ok": {"remarks": library.remarks[-8:]}})
            return
        block.follow()
        try:
            send(channel, {"ok": operations[request["op"]](request)})
        except (BindingError, ValueError) as error:
            send(channel, {"error": str(error)})


if __name__ == "__main__":
    main(sys.argv[1:])
