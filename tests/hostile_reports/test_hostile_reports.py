# SPDX-License-Identifier: Apache-2.0
"""Ten thousand damaged reports: each is refused in one sentence, or shown without doing anything."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import COMMANDS, main
from reports.load import NotAReport, load_report
from reports.shape import misshapen
from tests.hostile_reports import inert
from tests.hostile_reports.mutations import NUMBERS, OTHERS, TEXTS, mutated, paths, replaced
from tests.hostile_reports.renderers import RENDERERS, SLOW

COUNT = 10_000
EACH = 1
"""Renderers that each readable report goes through, in turns: each renderer sees some 200 reports."""
CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def quick_file(tmp_path: Path) -> Iterator[Path]:
    """A file in memory where there is such a place: ten thousand writes to a disk take minutes on some machines."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path / "report.json"
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder) / "report.json"


def show(report: dict[str, Any], good: dict[str, Any], name: str, what: object) -> None:
    renderer, check = (RENDERERS | SLOW)[name]
    try:
        check(renderer(report, good))
    except Exception as error:
        raise AssertionError(f"{name} on {what}: {type(error).__name__}: {error}") from error


def test_ten_thousand_damaged_reports_are_refused_or_shown_inert(quick_file: Path, good: dict[str, Any]) -> None:
    file, turns, base = quick_file, itertools.cycle(RENDERERS), json.dumps(good)
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for seed in range(COUNT):
        file.write_bytes(mutated(base, seed))
        started = time.process_time()
        try:
            report = load_report(file)
        except NotAReport as error:
            inert.terminal(str(error))
            assert len(str(error)) < 1000
            outcomes["refused"] += 1
            continue
        outcomes["read"] += 1
        for name in itertools.islice(turns, EACH):
            show(report, good, name, f"seed {seed}")
            outcomes[name] += 1
        slowest = max(slowest, time.process_time() - started)
    assert outcomes["read"] + outcomes["refused"] == COUNT
    assert outcomes["read"] > COUNT / 4, outcomes
    assert outcomes["refused"] > COUNT / 4, outcomes
    assert min(outcomes[name] for name in RENDERERS) > 180, outcomes
    assert slowest < 10


def test_the_html_page_of_damaged_reports_is_inert(tmp_path: Path, good: dict[str, Any]) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    file, shown = tmp_path / "report.json", 0
    base = json.dumps({**good, "measurements": good["measurements"][:2]})
    for seed in itertools.count(50_000):
        file.write_bytes(mutated(base, seed))
        try:
            report = load_report(file)
        except NotAReport:
            continue
        show(report, good, "html", f"seed {seed}")
        shown += 1
        if shown == 30:
            break


def test_a_wrong_type_in_any_field_is_refused_or_shown_inert(good: dict[str, Any]) -> None:
    """Every place of the report, in turns with a text, a number, and something else."""
    turns, kinds = itertools.cycle(RENDERERS), itertools.cycle((*TEXTS[:4], *OTHERS, *NUMBERS))
    small = {**good, "measurements": good["measurements"][:3]}
    read = 0
    for at in list(paths(small))[1:]:
        for value in itertools.islice(kinds, 4):
            report = replaced(small, at, value)
            if misshapen(report) is None:
                show(report, good, next(turns), f"{at} = {value!r}")
                read += 1
    assert read > 500


@pytest.mark.parametrize("text", TEXTS)
def test_a_hostile_text_in_every_field_at_once_is_shown_inert(good: dict[str, Any], text: str) -> None:
    def poison(value: Any) -> Any:
        if isinstance(value, str):
            return text
        if isinstance(value, dict):
            return {key: poison(item) for key, item in value.items()}
        return [poison(item) for item in value] if isinstance(value, list) else value

    report = {**poison(good), "format": good["format"]}
    assert misshapen(report) is None
    for name in RENDERERS:
        show(report, good, name, ascii(text[:20]))


def test_every_command_ends_with_a_code_and_no_traceback(
    tmp_path: Path, good: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    file, fine, out = tmp_path / "in/report.json", tmp_path / "good.json", str(tmp_path / "out")
    fine.write_text(json.dumps(good))
    lines = {
        "show": [["show", str(file)], ["show", str(file), "--paste"], ["show", str(file), "--markdown"]],
        "diff": [["diff", str(file), str(fine), "--mixed"], ["diff", str(fine), str(file), "--json"]],
        "validate": [["validate", str(file)], ["validate", str(file), "--json"]],
        "redact": [["redact", str(file)]],
        "merge": [["merge", str(file), str(fine), "-o", out, "--force"]],
        "fleet": [["fleet", str(tmp_path / "in")], ["fleet", str(tmp_path / "in"), "--csv"]],
        "export": [["export", str(file), "--ktap"], ["export", str(file), "--prom", out + ".prom"]],
    }
    assert set(lines) <= set(COMMANDS)
    turns = itertools.cycle([line for command in lines.values() for line in command])
    codes: Counter[int] = Counter()
    base = json.dumps(good)
    for seed in range(100_000, 100_700):
        file.write_bytes(mutated(base, seed))
        code = main(next(turns))
        said = capsys.readouterr()
        assert code in (0, 1, 2, 3)
        inert.terminal(said.err)
        if code == 2:
            assert said.err.count("\n") == 1, said.err
        codes[code] += 1
    assert codes[0] > 100
    assert codes[2] > 100


def limited(code: str, file: Path, mebibytes: int) -> subprocess.CompletedProcess[str]:
    code = f"import resource\nresource.setrlimit(resource.RLIMIT_AS, ({mebibytes} << 20,) * 2)\n{code}"
    command = [sys.executable, "-c", code, str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=CHECKOUT, check=False)


LOAD = """
import sys
from pathlib import Path
from reports.load import NotAReport, load_report
try:
    load_report(Path(sys.argv[1]))
except NotAReport as error:
    print(str(error)[-120:])
"""


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ((b'{"format": "', b"A", 100_000_000, b'"}'), "larger than"),
        ((b"[", b"[],", 10_000_000, b"[]]"), "holds more than"),
        ((b"[", b"{},", 1_900_000, b"[]]"), "holds more than"),
        ((b"", b"[", 900_000, b""), "not JSON"),
        ((b"", b'{"a":', 400_000, b""), "not JSON"),
        ((b'{"format": "', b"\\ud800", 5_000_000, b'"}'), "no capability report"),
        ((b"[" * 500, b"", 0, b"]" * 500), "nested deeper"),
        ((b"", b"9", 1_000_000, b""), "digits"),
        ((b"0.", b"9", 30_000_000, b""), "no capability report"),
    ],
)
def test_giant_files_are_refused_within_bounded_memory(
    tmp_path: Path, content: tuple[bytes, bytes, int, bytes], word: str
) -> None:
    file = tmp_path / "giant.json"
    head, part, count, tail = content
    file.write_bytes(head + part * count + tail)
    done = limited(LOAD, file, 768)
    assert done.returncode == 0, done.stderr[-500:]
    assert word in done.stdout, done.stdout
    assert not done.stderr


def test_a_renderer_that_passes_text_through_is_caught(good: dict[str, Any]) -> None:
    """The checks themselves: each says no to what it is there for."""
    for check, text in (
        (inert.terminal, "\x1b[31m"),
        (inert.markdown, "a <script>alert(1)</script>"),
        (inert.prometheus, 'rknpu_probe_x{a="b"c"} 1\n'),
        (inert.prometheus, "rknpu_probe_x 1\nrknpu_probe_x 2\n"),
        (inert.ktap, "KTAP version 1\n1..2\nok 1 a\n"),
        (inert.ktap, "KTAP version 1\n1..1\nok 1 a # SKIP b # c\n"),
        (inert.junit, "<?xml?>\n<testsuites><script/></testsuites>"),
        (inert.csv_table, "a,b\r\n=1+1,2\r\n"),
        (inert.json_lines, '{"a": 1}\n{"a": "1"}\n'),
        (inert.json_document, "[NaN]"),
        (inert.html, "<p><script>alert(1)</script>"),
    ):
        with pytest.raises((AssertionError, ValueError, ZeroDivisionError)):
            check(text)
