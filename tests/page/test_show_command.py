# SPDX-License-Identifier: Apache-2.0
"""``reports show`` with ``--html`` and ``--markdown``: what it writes, what it refuses, what it can do without."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.markdown import render_markdown
from tests.page.html_oracle import Taken
from tests.page.sample_reports import board_report, mock_report

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    file = tmp_path / "report.json"
    file.write_text(json.dumps(board_report()), encoding="utf-8")
    return file


def without(package: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in an interpreter that cannot import ``package``."""
    code = (
        f"import sys; sys.modules[{package!r}] = None; from reports.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], check=False, cwd=ROOT, capture_output=True, text=True, timeout=120
    )


def test_html_writes_one_file_and_names_it(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "out" / "page.html"
    assert main(["show", str(saved), "--html", str(page)]) == 0
    assert capsys.readouterr().out == f"Page: {page}\n"
    assert Taken(page.read_text(encoding="ascii")).problems == []
    assert [path.name for path in page.parent.iterdir()] == ["page.html"]


def test_an_existing_file_is_written_over_only_when_told(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    page.write_text("mine", encoding="utf-8")
    assert main(["show", str(saved), "--html", str(page)]) == 2
    assert "--force" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == "mine"
    assert main(["show", str(saved), "--html", str(page), "--force"]) == 0
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_markdown_goes_to_the_terminal(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(saved), "--markdown"]) == 0
    assert capsys.readouterr().out == render_markdown(board_report())


@pytest.mark.parametrize("options", [["--model", "x.gguf"], ["--force"], ["--markdown", "--model", "x.gguf"]])
def test_options_of_the_html_page_need_it(saved: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(saved), *options]) == 2
    assert capsys.readouterr().err == "rknpu-report: --model and --force go with --html FILE.\n"


def test_two_forms_at_once_are_refused(saved: Path) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["show", str(saved), "--markdown", "--paste"])
    assert stop.value.code == 2


def test_a_file_that_is_no_model_is_refused_in_one_sentence(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGML" + bytes(60))
    assert main(["show", str(saved), "--html", str(tmp_path / "p.html"), "--model", str(model)]) == 2
    err = capsys.readouterr().err
    assert "NPU-F016" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "p.html").exists()


def test_without_jinja2_the_page_could_not_be_made_and_the_command_says_how(saved: Path, tmp_path: Path) -> None:
    done = without("jinja2", "show", str(saved), "--html", str(tmp_path / "p.html"))
    assert done.returncode == 3
    assert "in the checkout: pip install '.[report]'" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("package", ["matplotlib", "numpy"])
def test_without_matplotlib_the_page_has_everything_but_plots(package: str, saved: Path, tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    done = without(package, "show", str(saved), "--html", str(page))
    assert (done.returncode, done.stderr) == (0, "")
    text = page.read_text(encoding="ascii")
    assert "<svg" not in text
    assert text.count("<strong>not drawn:</strong>") == 6
    assert "pip install &#39;.[report]&#39;" in text
    assert Taken(text).problems == []


@pytest.mark.parametrize("package", ["jinja2", "matplotlib", "numpy", "cffi", "gguf"])
def test_markdown_and_terminal_need_no_package(package: str, saved: Path) -> None:
    for form in ([], ["--markdown"], ["--paste"]):
        done = without(package, "show", str(saved), *form)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_page_of_a_run_is_there_in_seconds(tmp_path: Path) -> None:
    """A guard against a page that grows slow. The figure itself is measured by the benchmark, on a quiet machine."""
    report = mock_report()
    report["measurements"] = report["measurements"] * 4
    file = tmp_path / "report.json"
    file.write_text(json.dumps(report), encoding="utf-8")
    begin = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "reports", "show", str(file), "--html", str(tmp_path / "p.html")],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    assert time.monotonic() - begin < 60
