# SPDX-License-Identifier: Apache-2.0
"""``make probe`` on a machine that lacks something: one line that names the package, and the rest goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reports.version import VERSION

CHECKOUT = Path(__file__).resolve().parents[2]

WRAPPER = """#!/bin/sh
# A python3 as Debian ships it without python3-venv: everything works but making an environment.
case "$*" in *"import venv"*) exit 1;; esac
exec {python} "$@"
"""


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", "--no-print-directory", "-C", str(CHECKOUT), *arguments],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    wrapper = tmp_path / "python3"
    wrapper.write_text(WRAPPER.format(python=sys.executable))
    wrapper.chmod(0o755)
    return wrapper


def test_without_a_compiler_one_line_names_the_package_and_the_facts_still_come(
    tmp_path: Path, bare_python: Path
) -> None:
    done = make(
        "probe", "LEVEL=quick", "ARGS=--output -", "CC=/no/such/cc", f"VENV={tmp_path}/v", f"PYTHON={bare_python}"
    )
    assert done.returncode == 0, done.stderr
    assert "no C compiler (/no/such/cc): apt-get install gcc libc6-dev\n" in done.stderr
    assert "***" not in done.stderr  # no noise of make around it
    assert "Verdict:" in done.stdout


def test_without_the_venv_module_one_line_names_the_package_and_the_facts_still_come(
    tmp_path: Path, bare_python: Path
) -> None:
    done = make("probe", "LEVEL=quick", "ARGS=--output -", f"VENV={tmp_path}/v", f"PYTHON={bare_python}")
    assert done.returncode == 0, done.stderr
    assert "no venv module: apt-get install python3-venv\n" in done.stderr
    assert "***" not in done.stderr
    assert "Verdict:" in done.stdout
    assert not (tmp_path / "v").exists()


@pytest.mark.parametrize(("target", "extra"), [("build", "CC=/no/such/cc"), ("mock", "CC=/no/such/cc")])
def test_a_target_that_needs_a_compiler_fails_with_one_line(target: str, extra: str) -> None:
    done = make(target, extra)
    assert done.returncode != 0
    assert "no C compiler (/no/such/cc): apt-get install gcc libc6-dev" in done.stderr


def test_a_compiler_without_the_headers_of_the_c_library_is_told(tmp_path: Path, bare_python: Path) -> None:
    """As apt-get install --no-install-recommends gcc leaves it."""
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\nexit 1\n")
    compiler.chmod(0o755)
    arguments = ("LEVEL=quick", "ARGS=--output -", f"CC={compiler}", f"VENV={tmp_path}/v", f"PYTHON={bare_python}")
    done = make("probe", *arguments)
    assert done.returncode == 0, done.stderr
    assert f"no headers of the C library for {compiler}: apt-get install libc6-dev\n" in done.stderr
    assert "***" not in done.stderr
    assert make("build", f"CC={compiler}").returncode != 0


def test_a_build_folder_that_cannot_be_made_is_named(bare_python: Path, tmp_path: Path) -> None:
    arguments = ("BUILD=/proc/nowhere", f"VENV={tmp_path}/v", f"PYTHON={bare_python}")
    done = make("probe", "LEVEL=quick", "ARGS=--output -", *arguments)
    assert done.returncode == 0, done.stderr
    assert "cannot write /proc/nowhere: copy the kit to a folder of yours\n" in done.stderr
    assert "***" not in done.stderr


def test_a_python_that_is_too_old_is_told(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = make("probe", f"PYTHON={old}", f"VENV={tmp_path}/v")
    assert done.returncode != 0
    assert "older than 3.10" in done.stderr


def test_make_alone_explains_itself() -> None:
    done = make()
    assert done.returncode == 0
    assert "make probe" in done.stdout
    assert "make test" in done.stdout


SOURCES = "*.py *.c *.h *.sh Makefile .ci/run *.yml"


def test_every_source_names_its_licence() -> None:
    listed = subprocess.run(
        ["git", "-C", str(CHECKOUT), "ls-files", "--", *SOURCES.split()], capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    bare = [
        name
        for name in listed.stdout.split()
        if "SPDX-License-Identifier: Apache-2.0" not in (CHECKOUT / name).read_text(encoding="utf-8")[:400]
    ]
    assert bare == []


# Quoted: a comment may say why it is not touched. Cut in two: this file holds none of them either.
NEVER_OPENED = ('"/dev/' + "mem", "'/dev/" + "mem")
REGISTRIES = ("pypi" + ".org", "files.python" + "hosted")


def test_no_source_names_what_the_kit_never_touches() -> None:
    """SECURITY.md promises it: no register mapping; and no registry's host name stands in the tree."""
    listed = subprocess.run(["git", "-C", str(CHECKOUT), "ls-files"], capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    hits = []
    for name in listed.stdout.split("\n"):
        path = CHECKOUT / name
        if not name or not path.is_file() or name in ("SECURITY.md", "LICENSE"):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        # Tests name it to see it refused.
        words = REGISTRIES if name.startswith("tests/") else (*NEVER_OPENED, *REGISTRIES)
        hits += [f"{name}: {word}" for word in words if word in text]
    assert hits == []


def test_the_version_is_the_same_everywhere() -> None:
    assert f'version = "{VERSION}"' in (CHECKOUT / "pyproject.toml").read_text()
