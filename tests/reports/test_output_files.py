# SPDX-License-Identifier: Apache-2.0
"""Files are written whole, and never over one that is there unless asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reports.files import OutputError, check_output, write_text

NOT_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


def test_a_new_file_is_written_with_its_folders(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "report.json"
    write_text(target, "text", force=False)
    assert target.read_text() == "text"
    assert [path.name for path in target.parent.iterdir()] == ["report.json"]


def test_an_existing_file_stays_without_force(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("precious")
    with pytest.raises(OutputError, match=r"exists already\. Use --force"):
        write_text(target, "new", force=False)
    assert target.read_text() == "precious"
    write_text(target, "new", force=True)
    assert target.read_text() == "new"


def test_a_dangling_link_counts_as_an_existing_file(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="exists already"):
        write_text(target, "new", force=False)
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_appears_between_check_and_write_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.json"

    def raced(path: Path, *, force: bool) -> None:
        check_output(path, force=force)
        path.write_text("the other one")

    monkeypatch.setattr("reports.files.check_output", raced)
    with pytest.raises(OutputError, match="exists already"):
        write_text(target, "new", force=False)
    assert target.read_text() == "the other one"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is a directory"):
        check_output(tmp_path, force=True)


def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot make the directory"):
        check_output(tmp_path / "file" / "report.json", force=False)


@NOT_ROOT
def test_a_folder_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="permission denied"):
        check_output(tmp_path / "report.json", force=False)
    tmp_path.chmod(0o700)
