# SPDX-License-Identifier: Apache-2.0
"""Finds every librknnrt and librkllmrt of a system and tells which one dlopen takes. Loads nothing.

An old copy in /usr/lib that wins over the new one is among the commonest faults (rknn-toolkit2 issues 233,
254, 281, 405, 465), and so is a copy in a directory that the loader does not search. Order of the search:
ld.so(8), and Debian's multiarch directories, which search paths written by hand tend to miss
(aerospike-client-c issue 4).
"""

from __future__ import annotations

import os
import platform
import posixpath
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from c_probes.ld_cache import CacheError, parse_cache, parse_conf
from c_probes.library_file import LibraryFile, describe_library, kind_of
from c_probes.rooted import glob_in_root, read_in_root, resolve_in_root

LIBRARY_NAMES = ("librknnrt.so", "librkllmrt.so")

DEFAULT_DIRECTORIES = (
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/arm-linux-gnueabihf",
    "/usr/lib/arm-linux-gnueabihf",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)
"""Built into the loader (Debian and Fedora flavours). A library for another machine there is passed over."""

WELL_KNOWN = (
    "/usr/local/lib",
    "/usr/local/lib64",
    "/oem/usr/lib",
    "/oem/lib",
    "/vendor/lib64",
    "/vendor/lib",
    "/opt/rknn*/lib",
    "/usr/lib/python3*/dist-packages/rknnlite/api",
    "/usr/lib/python3*/site-packages/rknnlite/api",
    "/usr/local/lib/python3*/dist-packages/rknnlite/api",
    "/usr/local/lib/python3*/site-packages/rknnlite/api",
    "/usr/local/lib/python3*/*-packages/rknpu.libs",
)
"""Places where installers and wheels leave a copy that dlopen by name does not find by itself."""

_CACHE = "/etc/ld.so.cache"
_CONF = "/etc/ld.so.conf"
_MAX_CACHE_BYTES = 32 << 20
_MAX_CONF_BYTES = 1 << 20
_MAX_CONF_FILES = 256
_MAX_DIRECTORIES = 1024
_OTHER_NAMES = ("librknnrt*.so*", "librkllmrt*.so*")


@dataclass(frozen=True)
class _Candidate:
    path: str
    found_by: str
    on_loader_path: bool


def find_libraries(
    root: Path = Path("/"), env: Mapping[str, str] | None = None, *, machine: str | None = None
) -> list[LibraryFile]:
    """Every library file below ``root``, in the loader's order, each inode once; then those off the loader
    path.

    ``env`` is the environment of the program that would load it (LD_PRELOAD, LD_LIBRARY_PATH); None means
    this process's own for the root ``/`` and none for any other. ``machine`` is what ``uname -m`` says
    there; with None it is asked on ``/``, and on other roots any machine's library counts.

    LD_LIBRARY_PATH subdirectories for hardware capabilities (glibc-hwcaps) are not looked into: no release
    ships a librknnrt there.
    """
    live = root == Path("/")
    environment: Mapping[str, str] = (os.environ if live else {}) if env is None else env
    host = _family(machine or (platform.machine() if live else None))
    seen: set[tuple[int, int]] = set()
    found: list[LibraryFile] = []
    for candidate in _candidates(root, environment, live, host):
        inside = resolve_in_root(root, candidate.path)
        if inside is None:
            continue
        try:
            status = inside.stat()
        except OSError:
            continue
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        record = describe_library(inside, shown_as=candidate.path, kind=kind_of(Path(candidate.path).name))
        found.append(
            replace(
                record,
                real_path="/" + str(inside.relative_to(root)) if not live else str(inside),
                found_by=candidate.found_by,
                on_loader_path=candidate.on_loader_path,
            )
        )
    return _mark_taken(found, host)


def loadable_here(library: LibraryFile) -> bool:
    """Whether this very process could load the file, by its machine and class."""
    host = _family(platform.machine())
    if struct.calcsize("P") == 4:
        host = {"aarch64": "arm", "x86_64": "i386"}.get(host or "", host)
    return _loads(library, host)


def _mark_taken(found: list[LibraryFile], host: str | None) -> list[LibraryFile]:
    """Marks, for each kind, the first one the loader would accept and the ones it hides."""
    marked = list(found)
    for kind in {library.kind for library in found}:
        places = [i for i, f in enumerate(found) if f.kind == kind and f.on_loader_path and _loads(f, host)]
        if not places:
            continue
        winner = marked[places[0]] = replace(found[places[0]], taken=True)
        for place in places[1:]:
            marked[place] = replace(found[place], shadowed_by=winner.path)
    return marked


def _loads(library: LibraryFile, host: str | None) -> bool:
    """Whether the loader stops here. It passes over files of another machine, but not over broken ones."""
    if library.elf_machine is None:
        return not (library.problem or "").startswith("cannot be opened")
    return host is None or (_family(library.elf_machine) == host and _bits_fit(library, host))


def _bits_fit(library: LibraryFile, host: str) -> bool:
    return library.elf_class == (32 if host in ("arm", "i386") else 64)


def _family(machine: str | None) -> str | None:
    """The ELF machine that a ``uname -m`` name stands for: armv7l and armv8l are both 32-bit ``arm``."""
    if machine in ("arm64", "aarch64"):
        return "aarch64"
    if machine in ("i486", "i586", "i686"):
        return "i386"
    return "arm" if machine is not None and machine.startswith("arm") else machine


def _candidates(root: Path, env: Mapping[str, str], live: bool, host: str | None) -> Iterator[_Candidate]:
    for entry in env.get("LD_PRELOAD", "").replace(":", " ").split()[:64]:
        if posixpath.basename(entry) in LIBRARY_NAMES and entry.startswith("/"):
            yield _Candidate(entry, "LD_PRELOAD", True)
    for directory in _library_path(env.get("LD_LIBRARY_PATH", ""), live):
        yield from _in_directory(root, directory, "LD_LIBRARY_PATH")
    cached = _cached(root, host)
    for path in cached or ():
        yield _Candidate(path, "ld.so.cache", True)
    configured = list(_configured(root))
    if cached is None:
        for directory in configured:
            yield from _in_directory(root, directory, "ld.so.conf (no cache to read)")
    for directory in DEFAULT_DIRECTORIES:
        yield from _in_directory(root, directory, "default directory")
    if cached is not None:
        # Only ldconfig reads these, so a copy that it was not run for is invisible to dlopen.
        for directory in configured:
            yield from _in_directory(root, directory, "ld.so.conf, not in the cache: run ldconfig", False)
    yield from _off_the_path(root, configured)


def _in_directory(root: Path, directory: str, found_by: str, on_path: bool = True) -> Iterator[_Candidate]:
    for name in LIBRARY_NAMES:
        path = posixpath.join(directory, name)
        if resolve_in_root(root, path) is not None:
            yield _Candidate(path, found_by, on_path)


def _off_the_path(root: Path, configured: list[str]) -> Iterator[_Candidate]:
    """Copies under other names in the loader's directories, then the well-known places."""
    for directory in [*configured, *DEFAULT_DIRECTORIES]:
        for pattern in _OTHER_NAMES:
            for path in glob_in_root(root, posixpath.join(directory, pattern)):
                yield _Candidate(path, "other name", False)
    for place in WELL_KNOWN:
        for pattern in _OTHER_NAMES:
            for path in glob_in_root(root, posixpath.join(place, pattern)):
                yield _Candidate(path, "well-known place", False)


def _library_path(text: str, live: bool) -> list[str]:
    """Directories of LD_LIBRARY_PATH. An empty or relative entry is the working directory, known only on
    ``/``.
    """
    if not text:
        return []
    directories = []
    for entry in text.replace(";", ":").split(":")[:_MAX_DIRECTORIES]:
        if entry.startswith("/"):
            directories.append(entry)
        elif live and "$" not in entry:
            directories.append(str(Path.cwd() / entry))
    return directories


def _cached(root: Path, host: str | None) -> list[str] | None:
    """Paths that the loader cache holds for our names, in its order; None when there is no readable
    cache.
    """
    data = read_in_root(root, _CACHE, _MAX_CACHE_BYTES)
    if data is None:
        return None
    try:
        entries = list(parse_cache(data))
    except CacheError:
        return None
    return [
        entry.path
        for entry in entries
        if entry.soname in LIBRARY_NAMES
        and entry.path.startswith("/")
        and (host is None or entry.abi in ("any", host) or entry.abi.startswith("flags"))
    ]


def _configured(root: Path) -> Iterator[str]:
    """Directories of ld.so.conf and its includes, each once, in the order in which ldconfig meets them."""
    waiting = [_CONF]
    files: set[str] = set()
    directories: set[str] = set()
    while waiting:
        name = waiting.pop(0)
        if name in files or len(files) >= _MAX_CONF_FILES:
            continue
        files.add(name)
        data = read_in_root(root, name, _MAX_CONF_BYTES)
        if data is None:
            continue
        included: list[str] = []
        for kind, value in parse_conf(data.decode("utf-8", "surrogateescape")):
            if kind == "include":
                pattern = posixpath.normpath(posixpath.join(posixpath.dirname(name), value))
                included += glob_in_root(root, pattern)
            elif value not in directories and len(directories) < _MAX_DIRECTORIES:
                directories.add(value)
                yield value
        waiting = included + waiting
