# SPDX-License-Identifier: Apache-2.0
"""``redact`` takes personal data out of a saved report and changes nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.redact import Names, redact_text
from reports.validate import validate
from tests.reports_diff.made_reports import stored

SECRETS = ("00:1a:2b:3c:4d:5e", "/home/alice/models", "kitchen-board", "a1b2c3d4e5f60718", "alice")


def test_what_is_personal_goes_and_the_rest_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = stored()
    report["redacted"] = False
    report["steps"][0]["covered"] = "eth0 00:1a:2b:3c:4d:5e, files in /home/alice/models"
    report["findings"][0]["evidence"] = "kitchen-board kernel: NPU of alice, unit a1b2c3d4e5f60718"
    file, out = tmp_path / "full.json", tmp_path / "clean.json"
    file.write_text(json.dumps(report))
    names = ("--host", "kitchen-board", "--user", "alice", "--serial", "a1b2c3d4e5f60718")
    assert main(["redact", str(file), "-o", str(out), *names]) == 0
    text = out.read_text()
    assert not [secret for secret in SECRETS if secret in text]
    clean = json.loads(text)
    assert clean["redacted"] is True
    assert clean["measurements"] == report["measurements"]
    assert validate(clean) == []
    capsys.readouterr()
    assert main(["redact", str(out)]) == 0
    assert json.loads(capsys.readouterr().out) == clean


def test_an_existing_file_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps(stored()))
    before = file.read_bytes()
    assert main(["redact", str(file), "-o", str(file)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a@b.cc", "<address>"),
        ("/home/jo", "/home/<user>"),
        ("serial=4f21", "serial=<serial>"),
        ("Serial: 4f21", "Serial: <serial>"),
        ("hostname: x", "hostname: <host>"),
        ("02:00:5e:10:00:01", "<mac>"),
        ("02-00-5e-10-00-01", "<mac>"),
        ("0123456789abcdef" * 2, "<id>"),
        ("01234567-89ab-cdef-0123-456789abcdef", "<uuid>"),
    ],
)
def test_the_shortest_text_of_every_shape_is_seen(text: str, clean: str) -> None:
    assert redact_text(text, Names()) == clean
    assert redact_text("npu.core 0_1", Names()) == "npu.core 0_1"
