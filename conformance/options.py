# SPDX-License-Identifier: Apache-2.0
"""The options of ``pytest conformance``, read into one record and checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.bench import LEVELS
from conformance.subjects import EngineSubject, ServerSubject, Subject
from conformance.target import choose_target

ENGINES = ("npu", "device")
KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")

DEADLINE_FACTOR = {"quick": 1.0, "medium": 4.0, "long": 30.0}


class UnusableOption(ValueError):
    """An option that cannot be served; the message says why."""


@dataclass(frozen=True)
class Options:
    """``deadline_s`` holds for each check; None takes the check's own, times the factor of the level."""

    library: Path | None
    engine: str | None
    server: str | None
    server_off: str | None
    server_kv: str | None
    model: Path | None
    level: str
    seed: int
    report: Path | None
    deadline_s: float | None

    def deadline_for(self, own_s: float) -> float:
        """Seconds that a check may take."""
        return self.deadline_s if self.deadline_s is not None else own_s * DEADLINE_FACTOR[self.level]

    def subjects(self) -> dict[str, Subject]:
        """What is judged, by suite. Raises :class:`conformance.target.NoTarget`."""
        found: dict[str, Subject] = {}
        if self.engine is not None:
            library = choose_target(self.library) if self.engine == "device" else None
            found["engine"] = EngineSubject(self.engine, self.model, library)
        if self.server is not None:
            found["server"] = ServerSubject(self.server, self.server_off, self.model, self.server_kv)
        return found or {"runtime": choose_target(self.library)}


def add_options(parser: pytest.Parser) -> None:
    """Declares the options."""
    group = parser.getgroup("conformance", "rknpu-kit conformance")
    group.addoption("--library", metavar="PATH", help="librknnrt to judge (default: the board's own, else the mock)")
    group.addoption("--engine", choices=ENGINES, help="judge this kit's engine: its NPU emulation, or on a librknnrt")
    group.addoption("--server", metavar="URL", help="judge a llama-server compatible service")
    group.addoption("--server-off", metavar="URL", help="the same model there without speculation, or without the NPU")
    group.addoption("--server-kv", metavar="TYPE", help="type of its KV cache, f32 and so on: no service tells it")
    group.addoption("--model", metavar="GGUF", help="the model to judge with (engine: the kit's tiny models)")
    group.addoption("--level", default="quick", choices=LEVELS, help="how much is tried (default: quick)")
    group.addoption("--seed", type=int, default=1, help="seed of all operands (default: 1)")
    group.addoption("--deadline", type=float, metavar="SECONDS", help="deadline of each check (default: by level)")
    group.addoption("--report", metavar="FILE", help="write the section 'conformance' into this capability report")


def read_options(config: pytest.Config) -> Options:
    """The record. Raises :class:`UnusableOption` for what cannot be done."""
    engine, server = config.getoption("engine"), config.getoption("server")
    server_off, server_kv = config.getoption("server_off"), config.getoption("server_kv")
    library, report = _file(config, "library"), config.getoption("report")
    model = _file(config, "model")
    for name, url in (("--server", server), ("--server-off", server_off)):
        if url is not None and not url.startswith(("http://", "https://")):
            raise UnusableOption(f"{name} {url}: it has to be an address such as http://localhost:8080.")
    for name, value in (("--server-off", server_off), ("--server-kv", server_kv)):
        if value is not None and server is None:
            raise UnusableOption(f"{name} goes with --server, the service that is judged.")
    if server_kv is not None and server_kv not in KV_TYPES:
        raise UnusableOption(
            f"--server-kv {server_kv}: one of {', '.join(KV_TYPES)}, as -ctk and -ctv of llama-server."
        )
    if model is not None and engine is None and server is None:
        raise UnusableOption("--model goes with --engine or --server: a librknnrt is judged without a model.")
    if library is not None and server is not None and engine is None:
        raise UnusableOption("--library and --server name two things to judge: run the suite once for each.")
    if library is not None and engine == "npu":
        raise UnusableOption("--engine npu uses no library: --engine device runs on the one named by --library.")
    seed, deadline = config.getoption("seed"), config.getoption("deadline")
    if seed < 0:
        raise UnusableOption(f"--seed {seed}: it has to be 0 or more.")
    if deadline is not None and deadline <= 0:
        raise UnusableOption(f"--deadline {deadline:g}: it has to be more than 0 seconds.")
    return Options(
        library,
        engine,
        server,
        server_off,
        server_kv,
        model,
        config.getoption("level"),
        seed,
        None if report is None else Path(report),
        deadline,
    )


def _file(config: pytest.Config, name: str) -> Path | None:
    path = config.getoption(name)
    if path is not None and not Path(path).is_file():
        raise UnusableOption(f"--{name} {path}: there is no such file.")
    return None if path is None else Path(path)
