# SPDX-License-Identifier: Apache-2.0
"""What only calls can tell about the machine: who asks, the kernel log, DRM driver names. Read-only, no NPU wake-up."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

DRM_IOCTL_VERSION = 0xC0406400
"""The one ioctl of the quick level: answered by the DRM core, it does not resume the device."""

_SYSLOG_ACTION_READ_ALL = 3
_SYSLOG_ACTION_SIZE_BUFFER = 10
_MAX_KLOG = 8 * 1024 * 1024
_ENVIRON = ("LD_LIBRARY_PATH", "container", "KUBERNETES_SERVICE_HOST")


@dataclass(frozen=True)
class DrmVersion:
    """Answer of DRM_IOCTL_VERSION: driver name, version, date text (empty on newer kernels), description."""

    name: str
    version: tuple[int, int, int]
    date: str = ""

    def as_json(self) -> list[Any]:
        return [self.name, list(self.version), self.date]

    @staticmethod
    def from_json(row: object) -> DrmVersion | None:
        if not isinstance(row, list) or len(row) != 3 or not isinstance(row[0], str):
            return None
        numbers = row[1]
        if not isinstance(numbers, list) or len(numbers) != 3 or not all(isinstance(n, int) for n in numbers):
            return None
        return DrmVersion(row[0], (numbers[0], numbers[1], numbers[2]), str(row[2]))


def _no_version(_path: str) -> DrmVersion | None:
    return None


def _no_klog() -> tuple[str | None, str]:
    return None, "no kernel log in the picture"


def _no_udev(_path: str) -> tuple[dict[str, str] | None, str]:
    return None, "the picture holds no udev database"


@dataclass(frozen=True)
class Live:
    """Injectable. ``libraries`` holds the rows of a recorded library search; None means: search the root."""

    machine: str | None = None
    uid: int | None = None
    gids: tuple[int, ...] = ()
    pid: int | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    klog: Callable[[], tuple[str | None, str]] = _no_klog
    drm_version: Callable[[str], DrmVersion | None] = _no_version
    udev: Callable[[str], tuple[dict[str, str] | None, str]] = _no_udev
    libraries: list[dict[str, Any]] | None = None


def live_here() -> Live:
    """The machine this process runs on."""
    return Live(
        machine=os.uname().machine,
        uid=os.geteuid(),
        gids=tuple(sorted({os.getegid(), *os.getgroups()})),
        pid=os.getpid(),
        environ={name: os.environ[name] for name in _ENVIRON if name in os.environ},
        klog=read_klog,
        drm_version=drm_version,
        udev=udev_properties,
    )


def udev_properties(node: str) -> tuple[dict[str, str] | None, str]:
    """Properties of a node in the udev database, or None and why. Containers mostly have neither of the two."""
    try:
        import pyudev  # noqa: PLC0415  (optional: facts need nothing but the standard library)
    except ImportError as error:
        return None, f"pyudev cannot be used: {error}"
    try:
        device = pyudev.Devices.from_device_file(pyudev.Context(), node)
        names = ("ID_PATH", "DEVLINKS", "TAGS")
        return {name: str(device.properties[name]) for name in names if name in device.properties}, ""
    except (OSError, ValueError, KeyError, pyudev.DeviceNotFoundError) as error:
        return None, f"udev does not know {node}: {error}"


def read_klog() -> tuple[str | None, str]:
    """The kernel's ring buffer by klogctl, or None with the reason. Nothing is cleared or consumed."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        size = libc.klogctl(_SYSLOG_ACTION_SIZE_BUFFER, None, 0)
        size = min(max(size, 65536), _MAX_KLOG)
        buffer = ctypes.create_string_buffer(size)
        count = libc.klogctl(_SYSLOG_ACTION_READ_ALL, buffer, size)
    except (OSError, AttributeError) as error:
        return None, f"klogctl: {error}"
    if count < 0:
        return None, f"klogctl: {os.strerror(ctypes.get_errno())}"
    return buffer.raw[:count].decode("utf-8", "replace"), ""


def drm_version(path: str) -> DrmVersion | None:
    """Who drives the DRM or accel node ``path``; None where it cannot be opened or does not answer.

    ``struct drm_version``: three ints, then three pairs of length and pointer (kernel uapi, drm.h).
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        return _ask_version(handle)
    except (OSError, struct.error):
        return None
    finally:
        with contextlib.suppress(OSError):
            os.close(handle)


def _ask_version(handle: int) -> DrmVersion | None:
    word = ctypes.sizeof(ctypes.c_size_t)
    layout = "iii4xQQQQQQ" if word == 8 else "iiiIIIIII"
    name, date, desc = (ctypes.create_string_buffer(256) for _ in range(3))
    request = bytearray(
        struct.pack(
            layout, 0, 0, 0, 255, ctypes.addressof(name), 255, ctypes.addressof(date), 255, ctypes.addressof(desc)
        )
    )
    number = (3 << 30) | (len(request) << 16) | (ord("d") << 8)
    fcntl.ioctl(handle, number, request, True)
    major, minor, patch = struct.unpack_from("iii", request)
    text = name.value.decode("ascii", "replace")
    return DrmVersion(text, (major, minor, patch), date.value.decode("ascii", "replace")) if text else None
