# SPDX-License-Identifier: Apache-2.0
"""``python -m conformance.goldens`` says which goldens are no longer what the engine gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conformance.goldens import __main__ as command
from conformance.goldens.manifest import Entry, read, write
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_FINDINGS, EXIT_OK

ONE = Entry("m", "a" * 64, "float", "prose", "b" * 64, 1, "c" * 64, (0.25,), "python -m conformance.goldens --write")
TWO = replace(ONE, prompt="copy")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "engine.json"
    monkeypatch.setattr(command, "GOLDENS", path)
    monkeypatch.setattr(command, "made", lambda: iter([ONE, TWO]))
    return path


def test_what_was_written_is_what_the_engine_gives(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--write"]) == EXIT_OK
    assert {entry.key for entry in read(kept)} == {ONE.key, TWO.key}
    assert command.main([]) == EXIT_OK
    assert capsys.readouterr().out.endswith("2 of 2 goldens are what this engine gives\n")


@pytest.mark.parametrize(
    "change", [{"token_ids_sha256": "d" * 64}, {"model_sha256": "d" * 64}, {"pipeline": "npu:w4a4"}]
)
def test_another_golden_is_named(kept: Path, capsys: pytest.CaptureFixture[str], change: dict[str, str]) -> None:
    write(kept, [replace(ONE, **change), TWO])  # type: ignore[arg-type]
    assert command.main([]) == EXIT_FINDINGS
    assert "m / float / prose: changed" in capsys.readouterr().out


def test_without_a_manifest_nothing_can_be_compared(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == EXIT_COULD_NOT_RUN
    assert "cannot be read as a manifest" in capsys.readouterr().err
