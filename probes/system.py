# SPDX-License-Identifier: Apache-2.0
"""The only door to the file system of the board: bounded, read-only, and on a list.

A :class:`System` is a root directory, ``/`` by default. Any other root is a picture of a board: a tree built by a test
or a capture sent in by a user. The same code reads both.

* Paths are absolute inside the root; symbolic links, absolute ones too, never lead out of it.
* Each read has a byte limit and a time limit; nothing but plain files is opened, and never for writing.
* Failures are values (:class:`Answer` with a :class:`Refusal`), never exceptions. Asking for a path that is not in
  ``probes.paths`` is a programming error and does raise.
* Every answer is kept in ``answers``: the privilege note and the capture are made from it.

A picture may hold ``/.rknpu/manifest.json`` (see :mod:`probes.manifest`), which answers what plain files cannot:
device nodes, files that refuse to be read, and calls.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from probes import paths
from probes.answers import Answer, Node, Refusal, Refused, kind_of, printable, read_plain, why
from probes.live import DrmVersion, Live, live_here
from probes.manifest import Manifest, load_manifest
from probes.worker import Worker

DEFAULT_LIMIT = 256 * 1024
MAX_LIST = 4096
MAX_LINKS = 40
FILE_SECONDS = 1.0
PATIENCE_SECONDS = 4.0
T = TypeVar("T")


class PathNotListed(ValueError):
    """The program asked for a path that ``probes.paths`` does not list: add it there, with its purpose."""


class System:
    """A board as files. ``live`` is what only calls can tell; it is taken from the machine for root ``/`` alone."""

    def __init__(
        self,
        root: Path | str = "/",
        *,
        live: Live | None = None,
        file_seconds: float = FILE_SECONDS,
        read_file: Callable[[str, int], bytes] | None = None,
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self.is_live = str(self.root) == "/"
        self.manifest: Manifest = Manifest() if self.is_live else load_manifest(self.root)
        self.live: Live = live or (live_here() if self.is_live else self.manifest.live())
        self.answers: dict[tuple[str, str], Answer[Any]] = {}
        self._read_file = read_file or read_plain
        self._file_seconds = file_seconds
        self._patience = PATIENCE_SECONDS
        self._worker = Worker()

    # ---- what the probes ask -----------------------------------------------------------------------------------

    def read(self, path: str, *, limit: int = DEFAULT_LIMIT, again: bool = False) -> Answer[bytes]:
        """The bytes of a plain file, at most ``limit``. ``again`` asks anew where an answer is already known."""
        if not paths.may_read(path):
            raise PathNotListed(f"{path} is not in probes/paths.py; list it there before it is read")
        kind = "again" if again else "read"
        return self._ask(kind, path, lambda: self._bytes(path, limit, again=again))

    def text(self, path: str, *, limit: int = DEFAULT_LIMIT, again: bool = False) -> Answer[str]:
        """The text of a file: UTF-8 with replacement, trailing NUL and white space dropped."""
        answer = self.read(path, limit=limit, again=again)
        if answer.value is None:
            return Answer(path, None, answer.refusal, answer.detail)
        text = answer.value.decode("utf-8", "replace").rstrip("\0 \t\r\n")
        if not printable(text):
            return Answer(path, None, Refusal.NOT_TEXT, f"{len(answer.value)} bytes")
        return Answer(path, text)

    def strings(self, path: str) -> Answer[list[str]]:
        """A device-tree string list: entries end with NUL."""
        answer = self.read(path, limit=8192)
        if answer.value is None:
            return Answer(path, None, answer.refusal, answer.detail)
        entries = [part.decode("utf-8", "replace") for part in answer.value.split(b"\0") if part.strip()]
        if not entries or not all(printable(entry) for entry in entries):
            return Answer(path, None, Refusal.NOT_TEXT, f"{len(answer.value)} bytes")
        return Answer(path, [entry.strip() for entry in entries])

    def names(self, path: str) -> Answer[list[str]]:
        """Names in a directory, sorted, at most ``MAX_LIST``."""
        self._check_look(path)
        return self._ask("names", path, lambda: self._names(path))

    def node(self, path: str) -> Answer[Node]:
        """Metadata of what ``path`` leads to. Nothing is opened."""
        self._check_look(path)
        return self._ask("node", path, lambda: self._node(path))

    def link(self, path: str) -> Answer[str]:
        """The text of a symbolic link; refused with NOT_A_FILE where ``path`` is something else."""
        self._check_look(path)
        return self._ask("link", path, lambda: self._link(path))

    def exists(self, path: str) -> bool:
        return self.node(path).value is not None

    def holders(self, path: str, nodes: Mapping[str, tuple[int, int] | None]) -> Answer[tuple[str | None, int]]:
        """Which of ``nodes`` (path -> device number) is open in ``/proc/<pid>/fd``, and how many files there are.

        Device numbers are compared where they can be taken: a process in another mount namespace has other names.
        """
        self._check_look(path)
        return self._ask("holders", path, lambda: self._holders(path, nodes))

    def drm_version(self, path: str) -> DrmVersion | None:
        """Who drives the node, by DRM_IOCTL_VERSION: the only call on a device at level quick. Wakes nothing."""
        self._check_look(path)
        return self._ask("drm", path, lambda: self.live.drm_version(path)).value

    def udev(self, path: str) -> Answer[dict[str, str]]:
        """Properties of a device node in the udev database; the detail of the answer says why there are none."""
        self._check_look(path)

        def take() -> dict[str, str]:
            properties, reason = self.live.udev(path)
            if properties is None:
                raise Refused(Refusal.ABSENT, reason)
            return properties

        return self._ask("udev", path, take)

    def klog(self) -> Answer[str]:
        """The kernel's ring buffer."""

        def take() -> str:
            text, reason = self.live.klog()
            if text is None:
                denied = any(word in reason.lower() for word in ("permitted", "denied"))
                raise Refused(Refusal.PERMISSION if denied else Refusal.ABSENT, reason)
            return text

        return self._ask("klog", "kernel ring buffer", take)

    # ---- how it is answered ------------------------------------------------------------------------------------

    def _check_look(self, path: str) -> None:
        if not paths.may_look(path):
            raise PathNotListed(f"{path} is not in probes/paths.py; list it there before it is looked at")

    def _ask(self, kind: str, path: str, job: Callable[[], T]) -> Answer[T]:
        known = self.answers.get((kind, path))
        if known is not None:
            return known
        refused = self.manifest.refusal(kind, path)
        if refused is not None:
            answer: Answer[T] = Answer(path, None, Refusal(refused[0]), refused[1])
        else:
            answer = self._timed(path, job)
        self.answers[(kind, path)] = answer
        return answer

    def _timed(self, path: str, job: Callable[[], T]) -> Answer[T]:
        seconds = max(0.05, min(self._file_seconds, self._patience))
        started = time.monotonic()
        try:
            return Answer(path, self._worker.call(job, seconds))
        except TimeoutError:
            self._patience -= time.monotonic() - started
            return Answer(path, None, Refusal.TIMED_OUT, f"{seconds:.2g} s")
        except OSError as error:
            return Answer(path, None, *why(error))
        except ValueError as error:
            return Answer(path, None, Refusal.FAILED, str(error))

    def _bytes(self, path: str, limit: int, *, again: bool) -> bytes:
        if again and not self.is_live:
            second = self.manifest.second_read(path)
            path = second or path
        inside, metadata = self._resolve(path)
        if paths.never_read(inside):
            raise PermissionError(errno.EPERM, "never read by this kit")
        if not stat.S_ISREG(metadata.st_mode):
            raise Refused(Refusal.NOT_A_FILE, kind_of(metadata.st_mode))
        data = self._read_file(self._outside(inside), limit + 1)
        if len(data) > limit:
            raise Refused(Refusal.TOO_LARGE, f"limit {limit} bytes")
        return data

    def _names(self, path: str) -> list[str]:
        recorded = self.manifest.names(path)
        if recorded is not None:
            return recorded
        inside, metadata = self._resolve(path)
        if not stat.S_ISDIR(metadata.st_mode):
            raise Refused(Refusal.NOT_A_FILE, kind_of(metadata.st_mode))
        names: list[str] = []
        with os.scandir(self._outside(inside)) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) >= MAX_LIST:
                    break
        return sorted(set(names) | set(self.manifest.children(path)))

    def _node(self, path: str) -> Node:
        known = self.manifest.node(path)
        if known is None and not self.is_live:
            inside = self._resolve_name(path)
            known = self.manifest.node(inside)
        if known is not None:
            node = Node(known.kind, known.mode, known.uid, known.gid, known.rdev)
            return Node(node.kind, node.mode, node.uid, node.gid, node.rdev, self._allowed(path, node))
        inside, metadata = self._resolve(path)
        device = stat.S_ISCHR(metadata.st_mode) or stat.S_ISBLK(metadata.st_mode)
        rdev = (os.major(metadata.st_rdev), os.minor(metadata.st_rdev)) if device else None
        mode = stat.S_IMODE(metadata.st_mode)
        node = Node(kind_of(metadata.st_mode), mode, metadata.st_uid, metadata.st_gid, rdev)
        return Node(node.kind, mode, node.uid, node.gid, rdev, self._allowed(inside, node))

    def _allowed(self, inside: str, node: Node) -> bool | None:
        """Whether this process may open the node for reading and writing."""
        if self.is_live:
            return os.access(inside, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids)
        recorded = self.manifest.accessible(inside)
        if recorded is not None or self.live.uid is None:
            return recorded
        if self.live.uid == 0:
            return True
        shift = 6 if self.live.uid == node.uid else 3 if node.gid in self.live.gids else 0
        return (node.mode >> shift) & 6 == 6

    def _link(self, path: str) -> str:
        recorded = self.manifest.link(path)
        if recorded is not None:
            return recorded
        parent, _, name = path.rstrip("/").rpartition("/")
        inside, _ = self._resolve(parent or "/")
        outside = self._outside(f"{inside.rstrip('/')}/{name}")
        if not stat.S_ISLNK(os.lstat(outside).st_mode):
            raise Refused(Refusal.NOT_A_FILE, "no symbolic link")
        return str(Path(outside).readlink())

    def _holders(self, path: str, nodes: Mapping[str, tuple[int, int] | None]) -> tuple[str | None, int]:
        recorded = self.manifest.holder(path)
        if recorded is not None:
            return recorded
        numbers = {rdev: name for name, rdev in nodes.items() if rdev is not None}
        names = self._names(path)
        for name in names:
            try:
                target = self._link(f"{path}/{name}")
                if target in nodes:
                    return target, len(names)
                if self.is_live and target.startswith("/dev/"):
                    rdev = Path(f"{path}/{name}").stat().st_rdev
                    if (held := numbers.get((os.major(rdev), os.minor(rdev)))) is not None:
                        return held, len(names)
            except OSError:
                continue  # closed meanwhile
        return None, len(names)

    # ---- paths -------------------------------------------------------------------------------------------------

    def _outside(self, inside: str) -> str:
        return inside if self.is_live else str(self.root) + inside

    def _resolve_name(self, path: str) -> str:
        """As ``_resolve``, but the last component may be missing (it may stand in the manifest alone)."""
        try:
            return self._resolve(path)[0]
        except FileNotFoundError:
            parent, _, name = path.rstrip("/").rpartition("/")
            return f"{self._resolve(parent or '/')[0].rstrip('/')}/{name}"

    def _resolve(self, path: str) -> tuple[str, os.stat_result]:
        """Follow links inside the root. ``..`` stops at the root, as after chroot."""
        todo = [part for part in reversed(path.split("/")) if part not in ("", ".")]
        done: list[str] = []
        links = 0
        metadata = os.lstat(self._outside("/"))
        while todo:
            part = todo.pop()
            if part == "..":
                done = done[:-1]
                metadata = os.lstat(self._outside("/" + "/".join(done)))
                continue
            here = "/" + "/".join([*done, part])
            target = None if self.manifest.flat else self.manifest.link(here)
            if target is None:
                metadata = os.lstat(self._outside(here))
                if not stat.S_ISLNK(metadata.st_mode):
                    done.append(part)
                    continue
                target = str(Path(self._outside(here)).readlink())
            links += 1
            if links > MAX_LINKS:
                raise Refused(Refusal.LOOP, f"more than {MAX_LINKS} links")
            if target.startswith("/"):
                done = []
            todo.extend(step for step in reversed(target.split("/")) if step not in ("", "."))
        return "/" + "/".join(done), metadata
