# SPDX-License-Identifier: Apache-2.0
"""The record that bench/server_real.py writes: runs of parts add up, and an unexpected outcome fails the run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench import server_real
from bench.server_real import Bench, Case, Row
from conformance.runner import Outcome
from reports.contract import Verdict

FAKE = """#!{python}
import sys, time
sys.path.insert(0, {root!r})
from tests.server import fake_server as fake
from http.server import ThreadingHTTPServer
port = int(sys.argv[sys.argv.index("--port") + 1])
drafts = "--spec-type" in sys.argv
class Fixed(ThreadingHTTPServer):
    def __init__(self, address, handler):
        super().__init__((address[0], port), handler)
fake.ThreadingHTTPServer = Fixed
wrong = {{"flip_at": 6, "gap": 5.0}} if "--spec-synth-len" in sys.argv else {{}}
fake.FakeServer(fake.Behaviour(draft=(9, 6) if drafts else None, **{{"gap": 5.0, **wrong}}))
time.sleep(300)
"""


def row(name: str, check: str, verdict: Verdict, told: str) -> Row:
    case = Case(name, Path("/somewhere/model.gguf"), ("--spec-type", "x"), (check,))
    outcome = Outcome(check, verdict, 1.25, told if verdict is Verdict.PASSED else None, told)
    return Row(case, outcome, disturbed=False)


def test_runs_of_parts_add_up_and_a_newer_row_replaces_the_older(tmp_path: Path) -> None:
    for rows in (
        [row("b", "one", Verdict.PASSED, "old"), row("a", "one", Verdict.PASSED, "kept")],
        [row("b", "one", Verdict.FAILED, "new | with a bar")],
    ):
        bench = Bench(Path("llama-server"), 1, "quick", 1)
        bench.rows = rows
        server_real.write(bench, tmp_path, "version: 1")
    record = json.loads((tmp_path / "real.json").read_text("utf-8"))
    assert [(entry["configuration"], entry["told"]) for entry in record["rows"]] == [
        ("a", "kept"),
        ("b", "new | with a bar"),
    ]
    assert not record["rows"][1]["as_expected"]
    page = (tmp_path / "REAL.md").read_text("utf-8")
    assert "new / with a bar" in page
    assert "/somewhere" not in page + json.dumps(record)


@pytest.mark.parametrize(("only", "code", "verdict"), [("ngram-simple", 0, "passed"), ("synthetic", 0, "failed")])
def test_a_service_is_started_judged_and_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], only: str, code: int, verdict: str
) -> None:
    program = tmp_path / "llama-server"
    program.write_text(FAKE.format(python=sys.executable, root=str(Path(__file__).resolve().parents[2])))
    program.chmod(0o755)
    arguments = ["--llama-server", str(program), "--model", str(tmp_path / "m.gguf"), "--only", f"quantised, {only}"]
    assert server_real.main(arguments) == code
    said = capsys.readouterr().out
    assert f"speculation_changes_nothing    {verdict}" in said
    assert "0 not as expected" in said
