# SPDX-License-Identifier: Apache-2.0
"""``/.rknpu/manifest.json`` of a pictured board: what its tree of plain files cannot hold.

Fields, all optional: ``nodes`` (path -> [kind, mode, uid, gid, major, minor]; major and minor null for no device),
``links`` (path -> target), ``names`` (path -> list), ``refused`` (path -> [refusal, detail], or "kind path" for one way
of asking), ``accessible`` (path -> bool), ``holders`` (``/proc/<pid>/fd`` -> [node or null, files]), ``second`` (paths
whose second reading lies under ``/.rknpu/second``), ``udev`` (path -> properties, or why there are none), ``flat``
(true in a capture: links are not followed), and ``live`` (what calls answered: see :class:`probes.live.Live`).
A manifest that is damaged counts as absent: a tree from a stranger must not stop the probe.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from probes.live import DrmVersion, Live

MANIFEST = ".rknpu/manifest.json"
DMESG = ".rknpu/dmesg"
MAX_MANIFEST = 16 * 1024 * 1024
REFUSALS = frozenset(
    {
        "absent",
        "permission denied",
        "larger than the limit",
        "not text",
        "not a plain file",
        "did not answer in time",
        "loop of symbolic links",
        "read failed",
    }
)


class NodeRow(NamedTuple):
    kind: str
    mode: int
    uid: int
    gid: int
    rdev: tuple[int, int] | None


@dataclass(frozen=True)
class Manifest:
    """The parsed manifest; every lookup of something that is not there, or not well formed, is None."""

    data: dict[str, Any] = field(default_factory=dict)
    dmesg: str | None = None

    def _table(self, name: str) -> dict[str, Any]:
        table = self.data.get(name)
        return table if isinstance(table, dict) else {}

    def refusal(self, kind: str, path: str) -> tuple[str, str] | None:
        table = self._table("refused")
        row = table.get(f"{kind} {path}", table.get(path) if kind == "read" else None)
        if isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and row[0] in REFUSALS:
            return row[0], str(row[1])
        return None

    def names(self, path: str) -> list[str] | None:
        row = self._table("names").get(path)
        if isinstance(row, list) and all(isinstance(name, str) and "/" not in name for name in row):
            return sorted(row)
        return None

    def children(self, path: str) -> list[str]:
        """Names that nodes and links of the manifest add to a directory of the tree."""
        prefix = path.rstrip("/") + "/"
        rows = [*self._table("nodes"), *self._table("links")]
        return [row[len(prefix) :] for row in rows if row.startswith(prefix) and "/" not in row[len(prefix) :]]

    def node(self, path: str) -> NodeRow | None:
        row = self._table("nodes").get(path)
        if not isinstance(row, list) or len(row) != 6 or not isinstance(row[0], str):
            return None
        if not all(isinstance(part, int) for part in row[1:4]):
            return None
        device = isinstance(row[4], int) and isinstance(row[5], int)
        return NodeRow(row[0], row[1] & 0o7777, row[2], row[3], (row[4], row[5]) if device else None)

    @property
    def flat(self) -> bool:
        """Whether every file lies under the path it was asked for, links followed already: a capture."""
        return self.data.get("flat") is True

    def link(self, path: str) -> str | None:
        row = self._table("links").get(path)
        return row if isinstance(row, str) else None

    def accessible(self, path: str) -> bool | None:
        row = self._table("accessible").get(path)
        return row if isinstance(row, bool) else None

    def holder(self, path: str) -> tuple[str | None, int] | None:
        row = self._table("holders").get(path)
        if isinstance(row, list) and len(row) == 2 and isinstance(row[1], int):
            return (row[0] if isinstance(row[0], str) else None), row[1]
        return None

    def second_read(self, path: str) -> str | None:
        rows = self.data.get("second")
        return f"/.rknpu/second{path}" if isinstance(rows, list) and path in rows else None

    def _udev(self, path: str) -> tuple[dict[str, str] | None, str]:
        row = self._table("udev").get(path)
        if isinstance(row, dict):
            return {str(name): str(text) for name, text in row.items()}, ""
        return None, "the picture holds no udev database" if row is None else str(row)

    def live(self) -> Live:
        """What calls answered on the pictured board. Nothing of the machine that looks at the picture."""
        row = self._table("live")
        uid = row.get("uid")
        gids = row.get("gids")
        environ = row.get("environ")
        drm = row.get("drm")
        versions = {}
        for path, entry in (drm if isinstance(drm, dict) else {}).items():
            version = DrmVersion.from_json(entry)
            if version is not None:
                versions[str(path)] = version
        libraries = row.get("libraries")
        klog_why = row.get("klog_refused")
        return Live(
            machine=row["machine"] if isinstance(row.get("machine"), str) else None,
            uid=uid if isinstance(uid, int) else None,
            gids=tuple(gid for gid in gids if isinstance(gid, int)) if isinstance(gids, list) else (),
            pid=None,
            environ={str(k): str(v) for k, v in environ.items()} if isinstance(environ, dict) else {},
            klog=lambda: (self.dmesg, klog_why if isinstance(klog_why, str) else "no kernel log in the picture"),
            drm_version=versions.get,
            udev=self._udev,
            libraries=[row for row in libraries if _is_library(row)] if isinstance(libraries, list) else None,
        )


_LIBRARY_TEXTS = ("real_path", "sha256", "version", "version_text", "elf_machine", "shadowed_by", "problem")


def _is_library(row: object) -> bool:
    """Whether ``row`` is a row of a recorded library search: texts are texts, and it has a path."""
    if not isinstance(row, dict) or not isinstance(row.get("path"), str):
        return False
    return all(row.get(name) is None or isinstance(row[name], str) for name in _LIBRARY_TEXTS)


def load_manifest(root: Path) -> Manifest:
    """Read the manifest and the kernel log of a picture; absent or damaged parts are left out."""
    data: dict[str, Any] = {}
    text = _plain_text(root / MANIFEST)
    if text is not None:
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, dict):
            data = parsed
    return Manifest(data, _plain_text(root / DMESG))


def _plain_text(path: Path) -> str | None:
    try:
        if path.is_symlink() or path.parent.is_symlink() or not path.is_file() or path.stat().st_size > MAX_MANIFEST:
            return None
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return None
