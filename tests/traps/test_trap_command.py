# SPDX-License-Identifier: Apache-2.0
"""python -m conformance.traps: what a user with another engine sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.traps import trap_names, write_trap
from conformance.traps.__main__ import main


def test_write_tells_for_each_file_prompt_and_right_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--write", str(tmp_path / "new" / "folder")]) == 0
    printed = capsys.readouterr().out
    assert len(list((tmp_path / "new" / "folder").iterdir())) == len(trap_names())
    for name in trap_names():
        trap = write_trap(name, tmp_path / "new" / "folder")
        assert f"{trap.path}\n" in printed
        assert f"prompt: {trap.prompt_text}\n" in printed
        assert f"right answer: {trap.text}\n" in printed
        assert " ".join(map(str, trap.tokens)) in printed


def test_check_tells_a_right_answer_from_a_wrong_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = " ".join(map(str, write_trap("w4a4", tmp_path).tokens))
    assert main(["--check", "w4a4", right]) == 0
    assert "right, all 16 tokens" in capsys.readouterr().out
    assert main(["--check", "w4a4", right.replace(" ", ", ")]) == 0
    capsys.readouterr()
    assert main(["--check", "w4a4", "13 13 13"]) == 1
    assert "cut to 4 bits" in capsys.readouterr().out
    assert main(["--check", "w4a4", "0 0"]) == 1
    assert "gave nothing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--check", "nosuch", "1 2"], "no trap 'nosuch'; there are w4a4"),
        (["--check", "w4a4", "1 two"], "no list of token ids"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert not printed.out


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["--write", str(tmp_path / "file" / "folder")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_nothing_asked_for_is_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert "--write" in capsys.readouterr().err
