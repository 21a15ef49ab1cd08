# SPDX-License-Identifier: Apache-2.0
"""``python -m reports``: every command is described, only the one asked for is loaded, and errors are one sentence."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from reports.__main__ import COMMANDS, main
from tests.reports_diff.made_reports import stored

CHECKOUT = Path(__file__).resolve().parents[2]


def test_every_command_module_is_in_the_list_and_has_its_parts(capsys: pytest.CaptureFixture[str]) -> None:
    files = {path.stem for path in (CHECKOUT / "reports/commands").glob("*.py")} - {"__init__"}
    assert files == set(COMMANDS)
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for name in COMMANDS:
        module = importlib.import_module(f"reports.commands.{name}")
        assert " ".join(module.HELP.split()) in text


@pytest.mark.parametrize("line", [[], ["nonsense"], ["diff"], ["export", "x.json"], ["show", "x.json", "--never"]])
def test_usage_errors_end_with_2(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line)
    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["show", "validate", "export"])
def test_what_a_command_does_not_need_is_not_loaded(name: str, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps(stored()))
    argv = [name, str(file), *(["--ktap"] if name == "export" else [])]
    code = (
        f"import sys; from reports.__main__ import main; code = main({argv!r}); "
        "heavy = {'numpy', 'matplotlib', 'jinja2', 'jsonschema'} & set(sys.modules); "
        "print(sorted(heavy), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip() == "[]"


def test_a_reader_that_leaves_is_no_traceback(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps(stored()))
    command = f"{sys.executable} -m reports redact {file} | head -c 10"
    done = subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 3)


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in (["diff", str(tmp_path), str(tmp_path)], ["validate", str(tmp_path / "none.json")]):
        assert main(line) == 2
        err = capsys.readouterr().err
        assert err.startswith("rknpu-report: cannot read")
        assert err.count("\n") == 1
