# SPDX-License-Identifier: Apache-2.0
"""How the tests build and run the probes."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
BUILD = ROOT / "build" / "tests-c-probes"
# Instrumented code sets off warnings that plain builds do not (gcc's -Wformat-truncation); plain builds judge them.
SANITIZE = "-g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -Wno-error"


def make(folder: str, build: Path, *targets: str, **variables: str) -> None:
    """Run one of the Makefiles; the test fails with the compiler's words when it does."""
    command = ["make", "-C", str(ROOT / folder), f"BUILD={build}", *targets]
    command += [f"{name}={value}" for name, value in variables.items()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


@dataclass(frozen=True)
class Run:
    """One finished probe: its exit code, its two outputs, and the JSON records of the first."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["record"] == kind]

    @property
    def rows(self) -> list[dict[str, Any]]:
        return self.of("row")


@dataclass(frozen=True)
class Probes:
    """The built programs of one build folder."""

    build: Path

    def run(
        self,
        program: str,
        *arguments: str,
        library: Path | None = None,
        timeout: float = 120,
        env: dict[str, str] | None = None,
    ) -> Run:
        command = [str(self.build / "bin" / program), *arguments]
        if library is not None:
            command += ["--library", str(library)]
        clean = {key: value for key, value in os.environ.items() if not key.startswith("RKNN_MOCK_")}
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            env={**clean, **(env or {})},
            check=False,
        )
        return Run(done.returncode, done.stdout, done.stderr)
