# SPDX-License-Identifier: Apache-2.0
"""Saves what the probe reads of a board as one tar file, and opens such a file as a root: the same report comes of it.

A capture holds plain files under the paths they were asked for, the manifest of :mod:`probes.manifest`, and nothing
else: no links, no devices, no library, nothing that the probe did not look at. Personal data is taken out on the way
in: of some files only the parts that are parsed are kept (``_KEEP``), of the rest every shape and name that
:mod:`reports.redact` knows.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from probes.answers import Answer, Refusal
from probes.facts import collect
from probes.facts.klog import worth_keeping
from probes.live import DrmVersion
from probes.system import System
from reports.redact import Names, names_of, redact, redact_text

FORMAT = "rknpu-kit board capture"
FORMAT_VERSION = 1
MAX_FILES = 20_000
MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_TOTAL_BYTES = 128 * 1024 * 1024
TOP = "board"
NAMED_BY_USERS = "/etc/modprobe.d/"
"""Files there are named by whoever runs the board; all other names on the list are made by kernels and vendors."""


class CaptureError(Exception):
    """A capture cannot be written or opened; the text says what to do."""


@dataclass(frozen=True)
class Captured:
    """What went into a capture: number of files, bytes, and the paths that were refused."""

    path: Path
    files: int
    size_bytes: int
    refused: tuple[str, ...]


def capture(system: System, out: Path, *, full: bool = False, names: Names | None = None) -> Captured:
    """Look at the board behind ``system`` and write ``out``, a tar file, which must not exist.

    ``full`` leaves personal data in. CaptureError where ``out`` exists or cannot be written.
    """
    sheet = collect(system, lambda event: None)
    who = Names() if full else names if names is not None else names_of(system.root)
    picture = _Picture(system, who, full=full)
    files, manifest = picture.files, picture.manifest
    manifest["live"]["libraries"] = picture.json(sheet.items_of("libraries"))
    files["/.rknpu/manifest.json"] = json.dumps(manifest, indent=1, sort_keys=True).encode()
    try:
        with out.open("xb") as raw, tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in sorted(files):
                member = tarfile.TarInfo(TOP + path)
                member.size = len(files[path])
                member.mode = 0o644
                tar.addfile(member, io.BytesIO(files[path]))
    except FileExistsError:
        raise CaptureError(f"{out} exists; name another file, or remove it first") from None
    except OSError as error:
        with contextlib.suppress(OSError):
            out.unlink()  # ours, and not whole
        raise CaptureError(f"{out} cannot be written: {error.strerror or error}") from None
    refused = tuple(sorted({path.partition(" ")[2] for path in manifest["refused"]}))
    return Captured(out, len(files), out.stat().st_size, refused)


class _Picture:
    """Files and manifest of a capture in the making."""

    def __init__(self, system: System, who: Names, *, full: bool) -> None:
        self._who = who
        self._full = full
        self.files: dict[str, bytes] = {}
        live = system.live
        self.manifest: dict[str, Any] = {
            **{"format": FORMAT, "version": FORMAT_VERSION, "flat": True},
            **{name: {} for name in ("nodes", "links", "names", "refused", "accessible", "holders", "udev")},
            "second": [],
            "live": {
                "machine": live.machine,
                "uid": live.uid,
                "gids": list(live.gids),
                "environ": self.json(dict(live.environ)),
                "drm": {},
            },
        }
        for (kind, path), answer in system.answers.items():
            self._add(kind, path, answer)

    def _add(self, kind: str, path: str, answer: Answer[Any]) -> None:
        value = answer.value
        if path.startswith(NAMED_BY_USERS) and not self._full:
            path = redact_text(path, self._who)  # as in the listing, so that a replay asks for this name
        live = self.manifest["live"]
        if kind == "klog" and isinstance(value, str):
            self.files["/.rknpu/dmesg"] = self._log(value)
        elif kind == "klog":
            live["klog_refused"] = answer.detail
        elif kind == "drm":
            if isinstance(value, DrmVersion):
                live["drm"][path] = value.as_json()
        elif kind == "udev":
            self.manifest["udev"][path] = self.json(value if value is not None else answer.detail)
        elif value is None:
            if answer.refusal not in (None, Refusal.ABSENT):
                self.manifest["refused"][f"{kind} {path}"] = [answer.refusal.value, answer.detail]
        elif kind == "read":
            self.files[path] = self._content(path, value)
        elif kind == "again":
            self.files[f"/.rknpu/second{path}"] = self._content(path, value)
            self.manifest["second"].append(path)
        elif kind == "node":
            major, minor = value.rdev or (None, None)
            self.manifest["nodes"][path] = [value.kind, value.mode, value.uid, value.gid, major, minor]
            self.manifest["accessible"][path] = value.accessible
        else:
            table = {"names": "names", "link": "links", "holders": "holders"}[kind]
            self.manifest[table][path] = self.json(list(value) if isinstance(value, tuple) else value)

    def _content(self, path: str, data: bytes) -> bytes:
        return data if self._full else cleaned(path, data, self._who)

    def _log(self, text: str) -> bytes:
        lines = text.splitlines()
        if not self._full:
            lines = [redact_text(line, self._who) for line in lines if worth_keeping(line)]
        return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")

    def json(self, value: Any) -> Any:
        """A JSON value without personal data."""
        return value if self._full else redact({"value": value}, self._who)["value"]


# ---- what of a file is kept -----------------------------------------------------------------------------------------


def _otp(data: bytes) -> bytes:
    """Code and variant of the chip; the lot and wafer bytes behind them identify one chip and become zero."""
    at = data.find(b"RK")
    keep = data[max(at, 0) : at + 9] if at >= 0 else b""
    return bytes(max(at, 0)) + keep + bytes(max(0, len(data) - max(at, 0) - len(keep)))


def _lines(pattern: str) -> Callable[[bytes], bytes]:
    wanted = re.compile(pattern.encode())
    return lambda data: b"".join(line for line in data.splitlines(keepends=True) if wanted.match(line))


def _words(pattern: str) -> Callable[[bytes], bytes]:
    wanted = re.compile(pattern.encode())
    return lambda data: b" ".join(word for word in data.split() if wanted.match(word)) + b"\n"


def _groups(data: bytes) -> bytes:
    rows = (line.split(b":") for line in data.splitlines())
    return b"".join(b":".join([*row[:3], b""]) + b"\n" for row in rows if len(row) >= 3 and row[0] in _GROUPS)


_GROUPS = (b"root", b"video", b"render", b"plugdev", b"users", b"accel")
_KEEP: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    (r"/sys/bus/nvmem/devices/.*", _otp),
    (r"/etc/group", _groups),
    (r"/proc/self/status", _lines(r"(?:Uid|Gid|Groups):")),
    (r"/proc/cpuinfo", _lines(r"(?:processor|CPU \w+|BogoMIPS|\s*$)")),
    (r"/proc/cmdline", _words(r"(?:androidboot\.fwver|cma|mem|maxcpus|swiotlb|iommu\.\w+|coherent_pool)=")),
    (r"/proc/modules", _lines(r"(?:rknpu|rocket)\b")),
    (r"/lib/modules/.*", _lines(r".*(?:rknpu|rocket)\.ko")),
    (r"/etc/modprobe\.d/.*", _lines(r"\s*(?:blacklist|install)\s+(?:rknpu|rocket)\b")),
    (r"/proc/interrupts", _lines(r"(?:\s+CPU0|.*\.npu)")),
    (r"/proc/1/cgroup", _lines(r".*(?:kubepods|docker|libpod|lxc|containerd)")),
    (r"/var/log/dmesg", lambda data: b"".join(line for line in data.splitlines(keepends=True) if _kept_line(line))),
)
"""Of these files only the parts that are parsed go into a capture."""


def _kept_line(line: bytes) -> bool:
    return worth_keeping(line.decode("utf-8", "replace"))


def cleaned(path: str, data: bytes, who: Names) -> bytes:
    """The content of a file as it goes into a capture."""
    for pattern, keep in _KEEP:
        if re.fullmatch(pattern, path):
            data = keep(data)
            break
    vendor = path.startswith(("/proc/device-tree/", "/sys/firmware/devicetree/"))
    if vendor or path.endswith((".gz", "/nvmem")):
        return data  # written by the vendor of the board or the kernel, or cut down to what is impersonal
    text = data.decode("utf-8", "surrogateescape")
    return redact_text(text, who).encode("utf-8", "surrogateescape")


# ---- opening one ----------------------------------------------------------------------------------------------------


def unpack(archive: Path, folder: Path) -> Path:
    """Extract a capture into ``folder`` and return the root in it. Plain files alone; nothing else is made.

    The archive may be gzipped. CaptureError for what is no capture, leads out of the folder, or is too large, and
    where ``folder`` already holds one: two boards in one tree would be a third.
    """
    total = 0
    if (folder / TOP).exists():
        raise CaptureError(f"{folder / TOP} exists already; unpack {archive} into another folder")
    try:
        with tarfile.open(fileobj=io.BytesIO(_unzipped(archive)), mode="r:") as tar:
            for number, member in enumerate(tar):
                if number >= MAX_FILES:
                    raise CaptureError(f"{archive} holds more than {MAX_FILES} files; it is no capture of a board")
                if not member.isreg():
                    continue
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts or path.parts[:1] != (TOP,):
                    raise CaptureError(f"{archive}: {member.name!r} leads out of the capture")
                total += member.size
                if member.size > MAX_FILE_BYTES or total > MAX_TOTAL_BYTES:
                    raise CaptureError(f"{archive}: {member.name!r} is too large for a capture")
                source = tar.extractfile(member)
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read() if source else b"")
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        why = str(error).partition(":")[0]
        raise CaptureError(f"{archive} is no tar file of `python -m probes capture`: {why}") from None
    except OSError as error:
        raise CaptureError(f"{archive} cannot be opened: {error.strerror or error}") from None
    root = folder / TOP
    if not (root / ".rknpu" / "manifest.json").is_file():
        raise CaptureError(f"{archive} has no manifest; make it with: python -m probes capture FILE")
    return root


def _unzipped(archive: Path) -> bytes:
    """The bytes of the tar, at most what the largest capture has: what is larger, or swells to it, is refused."""
    limit = 2 * MAX_TOTAL_BYTES
    if not archive.is_file():
        raise CaptureError(f"{archive} is no file; name one that `python -m probes capture` wrote")
    with archive.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        data = gzip.GzipFile(fileobj=raw).read(limit + 1) if packed else raw.read(limit + 1)
    if len(data) > limit:
        raise CaptureError(f"{archive} is too large for a capture")
    return data


@contextlib.contextmanager
def opened(archive: Path) -> Iterator[System]:
    """The board in a capture, for as long as the block runs."""
    with tempfile.TemporaryDirectory(prefix="rknpu-capture-") as folder:
        yield System(unpack(archive, Path(folder)))
