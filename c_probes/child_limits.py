# SPDX-License-Identifier: Apache-2.0
"""Limits that a child which calls librknnrt sets for itself before anything else. Standard library alone."""

from __future__ import annotations

import os
import resource
import signal
from typing import Any

PR_SET_PDEATHSIG = 1
NOFILE_CAP = 1 << 20
"""Some container hosts allow 2^30 descriptors; programs that walk them all would crawl."""


def apply_limits(spec: dict[str, Any]) -> None:
    """Sets the resource limits of ``spec``: no core file, descriptors up to the hard limit, address space.

    Also asks the kernel to kill this process when its parent dies, so that a killed kit leaves nothing on
    the NPU.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if spec.get("raise_nofile"):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        soft = NOFILE_CAP if hard == resource.RLIM_INFINITY else min(hard, NOFILE_CAP)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    _die_with_parent(int(spec["parent"]))
    wanted = spec.get("address_space_bytes")
    if wanted is not None:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        ceiling = int(wanted) if hard == resource.RLIM_INFINITY else min(int(wanted), hard)
        resource.setrlimit(resource.RLIMIT_AS, (ceiling, ceiling))


def _die_with_parent(parent: int) -> None:
    try:
        import ctypes  # noqa: PLC0415 - an interpreter built without ctypes loses only this one protection

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(1)
