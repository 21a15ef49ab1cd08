# SPDX-License-Identifier: Apache-2.0
"""Reads files of ``llama-bench -o json`` and ``-o jsonl``: what is used of each row, checked; anything else refused.

Field names and meanings: llama.cpp b11434, tools/llama-bench. A row with a prompt and tokens to generate (``-pg``)
mixes both and is kept, but answers no question here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from reports.load import NotAReport
from reports.text import inert

MAX_BYTES = 16 * 1024 * 1024
MAX_ROWS = 20_000
MAX_COUNT = 1 << 31
"""Of tokens and threads. A count beyond it is no count of a benchmark."""

MAX_SAMPLES = 1000
MAX_RATE = 1e9


@dataclass(frozen=True)
class BenchRow:
    """One test: rates in tokens per second. ``flash_attn`` None: chosen by the program (auto).

    ``backends`` are those the program was built with, ``devices`` what was asked for: ``none`` (-dev none) is the CPU.
    """

    model: str
    model_size: int
    n_params: int
    backends: str
    n_threads: int
    cpu_mask: str
    n_ubatch: int
    type_k: str
    type_v: str
    flash_attn: bool | None
    n_prompt: int
    n_gen: int
    n_depth: int
    avg_ts: float
    samples_ts: tuple[float, ...]
    devices: str = "auto"

    @property
    def is_prefill(self) -> bool:
        return self.n_prompt > 0 and self.n_gen == 0

    @property
    def is_decode(self) -> bool:
        return self.n_gen > 0 and self.n_prompt == 0

    @property
    def on_npu(self) -> bool:
        return "rknpu" in self.backends.lower() and not self._no_device

    @property
    def cpu_only(self) -> bool:
        return self._no_device or {part.strip().lower() for part in self.backends.split(",")} <= {"cpu", "blas", ""}

    @property
    def _no_device(self) -> bool:
        return self.devices == "none"

    @property
    def label(self) -> str:
        """``llama-bench tg128 @ d8192, f16/f16, fa 0, 4 threads, RKNPU``."""
        test = f"pp{self.n_prompt}" if self.is_prefill else f"tg{self.n_gen}"
        depth = f" @ d{self.n_depth}" if self.n_depth else ""
        flash = {None: "auto", True: "1", False: "0"}[self.flash_attn]
        return inert(
            f"llama-bench {test}{depth}, {self.type_k}/{self.type_v}, fa {flash}, {self.n_threads} threads, "
            f"{self.backends or 'CPU'}",
            120,
        )


class NotABench(NotAReport):
    """A file that holds no llama-bench rows. The text is fit for the user."""


def read_llama_bench(path: Path) -> list[BenchRow]:
    """All rows of the file. NotABench, with the reason, for a file that is none or has a row that cannot be."""
    text = _text(path)
    try:
        records = _records(text)
    except (ValueError, RecursionError) as error:
        raise NotABench(
            f"{path} is neither JSON nor JSON lines: {inert(error, 160)}; make it with llama-bench -o json."
        ) from error
    if len(records) > MAX_ROWS:
        raise NotABench(f"{path} has {len(records)} rows; more than {MAX_ROWS} are not read.")
    if not records:
        raise NotABench(f"{path} has no rows.")
    rows = []
    for number, record in enumerate(records, 1):
        try:
            rows.append(_row(record))
        except ValueError as error:
            raise NotABench(f"{path}, row {number}: {inert(error, 160)}; is it of llama-bench -o json?") from error
    return rows


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise NotABench(f"cannot read {path}: {error.strerror}.") from error
    if len(data) > MAX_BYTES:
        raise NotABench(f"{path} is larger than {MAX_BYTES // 2**20} MiB: no llama-bench file is.")
    try:
        return data.decode("utf-8-sig")
    except ValueError as error:
        raise NotABench(f"{path} is no text: {inert(error, 100)}.") from error


def _records(text: str) -> list[Any]:
    """The objects of a JSON array, or one of each line. ValueError where it is neither."""
    if text.lstrip().startswith("["):
        found = _parsed(text)
        return found if isinstance(found, list) else []
    return [_parsed(line) for line in text.splitlines() if line.strip()]


def _parsed(text: str) -> Any:
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _row(record: Any) -> BenchRow:
    if not isinstance(record, dict):
        raise ValueError(f"{type(record).__name__} in place of an object")  # noqa: TRY004  one error for a bad file
    average = _number(record, "avg_ts", MAX_RATE)
    if average <= 0:
        raise ValueError("avg_ts is not positive")
    return BenchRow(
        model=inert(PurePosixPath(_word(record, "model_filename")).name, 120),
        model_size=_count(record, "model_size", 1 << 50, 0),
        n_params=_count(record, "model_n_params", 1 << 50, 0),
        backends=_word(record, "backends"),
        n_threads=_count(record, "n_threads", MAX_COUNT, 0),
        cpu_mask=_word(record, "cpu_mask"),
        n_ubatch=_count(record, "n_ubatch", MAX_COUNT, 512),
        type_k=_word(record, "type_k", "f16"),
        type_v=_word(record, "type_v", "f16"),
        flash_attn=_flag(record.get("flash_attn")),
        n_prompt=_count(record, "n_prompt", MAX_COUNT),
        n_gen=_count(record, "n_gen", MAX_COUNT),
        n_depth=_count(record, "n_depth", MAX_COUNT, 0),
        avg_ts=average,
        samples_ts=_samples(record.get("samples_ts")),
        devices=_word(record, "devices", "auto"),
    )


def _word(record: dict[str, Any], key: str, default: str = "") -> str:
    value = record.get(key, default)
    if not isinstance(value, str):
        raise ValueError(f"{key} is no text")  # noqa: TRY004
    return inert(value, 200)


def _count(record: dict[str, Any], key: str, most: int, default: int | None = None) -> int:
    value = record.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"{key} is no count")
    return value


def _number(record: dict[str, Any], key: str, most: float) -> float:
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        raise ValueError(f"{key} is no rate")
    return float(value)


def _flag(value: Any) -> bool | None:
    """llama-bench writes false and true, 0 and 1, or in newer versions -1 for auto."""
    if value in (0, 1):
        return bool(value)
    if value in (None, -1, "auto"):
        return None
    raise ValueError("flash_attn is neither on nor off")


def _samples(value: Any) -> tuple[float, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_SAMPLES:
        raise ValueError("samples_ts is no list of rates")
    for item in value:
        if isinstance(item, bool) or not isinstance(item, (int, float)) or not math.isfinite(item) or item < 0:
            raise ValueError("samples_ts has an item that is no rate")
    return tuple(float(item) for item in value)


def pick(rows: Sequence[BenchRow], wanted: Callable[[BenchRow], bool]) -> list[BenchRow]:
    """Rows that ``wanted`` holds for, longest test first: its figure is the steadiest."""
    return sorted(filter(wanted, rows), key=lambda row: -(row.n_prompt + row.n_gen))
