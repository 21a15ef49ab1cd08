# SPDX-License-Identifier: Apache-2.0
"""Container or not, and which sources a container hides."""

from __future__ import annotations

import re

from probes.facts.sheet import Pen

_CGROUP_WORDS = (
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("lxc", "lxc"),
    ("containerd", "containerd"),
)
_SOURCES = ("/proc/device-tree", "/sys/kernel/debug", "/run/udev", "/sys/class/drm", "/dev/dri")


def collect(pen: Pen) -> None:
    """``container.kind`` (``none`` on a host) and ``container.hidden`` (sources that are absent or empty)."""
    kind, evidence = _kind(pen)
    pen.put("container.kind", kind, evidence)
    hidden = [path for path in _SOURCES if not pen.system.names(path).value]
    pen.put("container.hidden", hidden, "listings")


def _kind(pen: Pen) -> tuple[str, str]:
    system = pen.system
    environ = system.live.environ
    if "KUBERNETES_SERVICE_HOST" in environ or system.exists("/run/secrets/kubernetes.io"):
        return "kubernetes", "environment KUBERNETES_SERVICE_HOST"
    for path, name in (("/.dockerenv", "docker"), ("/run/.containerenv", "podman")):
        if system.exists(path):
            return name, path
    declared = system.text("/run/systemd/container").value or environ.get("container")
    if declared and re.fullmatch(r"[a-z0-9-]{1,32}", declared):
        return declared, "/run/systemd/container"
    cgroup = system.text("/proc/1/cgroup").value or ""
    for word, name in _CGROUP_WORDS:
        if re.search(rf"/{word}[/.:-]|/{word}\b", cgroup):
            return name, "/proc/1/cgroup"
    return "none", "no sign of a container"
