# SPDX-License-Identifier: Apache-2.0
"""A Python with NumPy and cffi for aarch64 and for 32-bit Arm, unpacked into the build folder and run by qemu-user.

Nothing is installed on this machine: apt-get resolves and downloads with a state of its own, and the packages are
unpacked, not configured. aarch64 takes NumPy and cffi as wheels, the newest that there are; 32-bit Arm, for which
there are no wheels, takes those of the distribution.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.mock.mock_client import BUILD, ROOT

RECIPE = "1"  # change it and every system is made anew
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")


class NoSystem(Exception):
    """The system cannot be had here; the message says what is missing."""


@dataclass(frozen=True)
class Machine:
    """An architecture of the distribution with its cross compiler and its qemu."""

    architecture: str
    compiler: str
    qemu: str
    packages: tuple[str, ...]
    wheels: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return Path(BUILD) / "arm-root" / self.architecture

    @property
    def root(self) -> Path:
        return self.folder / "root"


AARCH64 = Machine(
    "arm64",
    "aarch64-linux-gnu-gcc",
    "qemu-aarch64",
    ("python3-minimal", "libpython3-stdlib", "libstdc++6"),
    ("numpy", "cffi", "pycparser"),
)
ARMHF = Machine("armhf", "arm-linux-gnueabihf-gcc", "qemu-arm", ("python3-minimal", "python3-numpy", "python3-cffi"))


def run(command: Sequence[str | Path], timeout: float = 600) -> str:
    """The command's standard output. NoSystem with the end of its errors when it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise NoSystem(f"{command[0]} failed: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def unpack_packages(machine: Machine) -> None:
    apt = machine.folder / "apt"
    for part in ("lists/partial", "archives/partial"):
        (apt / part).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    options = {
        "APT::Architecture": machine.architecture,
        "APT::Architectures": machine.architecture,
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "true",
        "Dir::State": str(apt),
        "Dir::State::status": str(apt / "status"),
        "Dir::Cache": str(apt),
        "Acquire::Retries": "1",
    }
    apt_get = ["apt-get", "-q", "-y", *(f"-o{key}={value}" for key, value in options.items())]
    # A mirror in the middle of its own update serves most lists; what is missing then shows in the next step.
    with suppress(NoSystem):
        run([*apt_get, "update"])
    run([*apt_get, "--download-only", "install", *machine.packages])
    for package in sorted((apt / "archives").glob("*.deb")):
        run(["dpkg", "-x", package, machine.root])
    shutil.rmtree(apt)


def unpack_wheels(machine: Machine) -> None:
    version = interpreter(machine).name.removeprefix("python")
    platforms = [f"--platform={name}" for name in PLATFORMS]
    wheels = machine.folder / "wheels"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    kind = [f"--python-version={version}", f"--abi=cp{version.replace('.', '')}", "--implementation=cp"]
    run([*pip, "--only-binary=:all:", "--dest", wheels, *kind, *platforms, *machine.wheels])
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(machine.root / "usr/lib/python3/dist-packages")
    shutil.rmtree(wheels)


def interpreter(machine: Machine) -> Path:
    """The system's ``python3.N``."""
    found = sorted((machine.root / "usr/bin").glob("python3.[0-9]*"))
    if not found:
        raise NoSystem(f"no Python among the packages {machine.packages} of {machine.architecture}")
    return found[0]


def prepare(machine: Machine) -> None:
    """Makes the system once. NoSystem when a tool or the network is missing."""
    for tool in (machine.compiler, machine.qemu, "apt-get", "dpkg"):
        if not shutil.which(tool):
            raise NoSystem(f"{tool} is not installed")
    recipe = " ".join((RECIPE, *machine.packages, *machine.wheels))
    ready = machine.folder / "ready"
    with locked(machine.folder):
        if ready.exists() and ready.read_text(encoding="utf-8") == recipe:
            return
        ready.unlink(missing_ok=True)
        for part in (machine.root, machine.folder / "apt", machine.folder / "wheels"):
            shutil.rmtree(part, ignore_errors=True)
        unpack_packages(machine)
        if machine.wheels:
            unpack_wheels(machine)
        ready.write_text(recipe, encoding="utf-8")


def build_kernels(machine: Machine) -> Path:
    """The build folder with the engine's kernels for that machine."""
    build = machine.folder / "build"
    run(["make", "-s", "-C", ROOT / "reference_engine" / "kernels", f"BUILD={build}", f"CC={machine.compiler}"])
    return build


def python(machine: Machine, cpu: str, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """What the machine's Python prints, run from the top of this tree on that CPU of qemu."""
    root = machine.root
    libraries = [
        str(path.parent)
        for path in sorted(root.glob("usr/lib/*/*/lib*.so.3"))
        if path.parent.name in ("blas", "lapack")
    ]
    inside = {
        "PYTHONPATH": str(root / "usr/lib/python3/dist-packages"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": ":".join(libraries),
        **(env or {}),
    }
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "LD_", "RKNPU_KIT"))}
    settings = [part for key, value in inside.items() for part in ("-E", f"{key}={value}")]
    done = subprocess.run(
        [machine.qemu, "-cpu", cpu, "-L", str(root), *settings, str(interpreter(machine)), *arguments],
        cwd=ROOT,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
