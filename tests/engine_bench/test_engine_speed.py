# SPDX-License-Identifier: Apache-2.0
"""Which rounds count, what their ratios say, and what a contender that fails costs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench.engine_speed import ChildFailed, Round, Turn, first_token, play_round, result_of, run_child, turn, verdicts

FAST, SLOW = {"pp512": [200.0, 220.0], "tg64": [50.0]}, {"pp512": [100.0], "tg64": [100.0]}
START = {"memory_ratio": 1.2, "best_first_token_s": 1.0, "first_token_s": [1.0, 1.1]}


def played(engine: dict[str, list[float]], peer: dict[str, list[float]], disturbed: bool = False) -> Round:
    return Round(Turn(engine, 0.0, 1.0, False), Turn(peer, 0.0, 1.0, disturbed))


def test_a_round_is_clean_where_nobody_took_part_and_nobody_failed() -> None:
    assert played(FAST, SLOW).clean
    assert not played(FAST, SLOW, disturbed=True).clean
    assert not played({"pp512": [], "tg64": [1.0]}, SLOW).clean


def test_the_result_is_the_median_of_the_rounds_ratios() -> None:
    rounds = [
        played(FAST, SLOW),
        played({"pp512": [100.0], "tg64": [1.0]}, SLOW),
        played(SLOW, {"pp512": [25.0]} | {"tg64": []}),
    ]
    result = result_of(rounds, "pp512")
    assert (result["least"], result["ratio"], result["greatest"]) == (1.0, 2.1, 4.0)
    assert result["rounds"] == 3
    assert result_of(rounds, "tg64")["rounds"] == 2
    assert result_of([], "pp512") == {"test": "pp512", "rounds": 0}


def test_a_bar_is_missed_below_it_and_held_at_it() -> None:
    even = result_of([played(SLOW, SLOW)], "pp512")
    slower = result_of([played({"pp512": [99.0], "tg64": [1.0]}, SLOW)], "pp512")
    assert [missed for _, _, missed in verdicts([even], START)] == [False, False, False]
    assert [missed for _, _, missed in verdicts([slower], START)] == [True, False, False]
    assert [missed for _, _, missed in verdicts([], START | {"memory_ratio": 1.31})] == [True, False]
    assert [missed for _, _, missed in verdicts([], START | {"best_first_token_s": 1.51})] == [False, True]


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_rows_of_llama_bench_become_samples_by_test() -> None:
    rows = [
        {"n_prompt": 512, "n_gen": 0, "samples_ts": [3.0, 4.0]},
        {"n_prompt": 0, "n_gen": 64, "samples_ts": [5.0]},
    ]
    found = turn(python(f"print({json.dumps(rows)!r})"), "peer", ["pp512", "tg64"])
    assert found.samples_ts == {"pp512": [3.0, 4.0], "tg64": [5.0]}
    assert found.window_s > 0


def test_who_begins_changes_from_round_to_round(tmp_path: Path) -> None:
    log = tmp_path / "log"
    commands = {name: python(f"open({str(log)!r}, 'a').write({name[0]!r}); print('[]')") for name in ("engine", "peer")}
    for number in range(3):
        play_round(number, commands, ["pp512"])
    assert log.read_text() == "eppeep"


def test_a_contender_that_fails_is_named_with_what_it_said_last() -> None:
    with pytest.raises(ChildFailed, match="peer ended with status 7: no such file"):
        run_child(python("import sys; sys.stderr.write('hm\\nno such file\\n'); sys.exit(7)"), "peer")
    with pytest.raises(ChildFailed, match="peer cannot be started"):
        run_child(["/nowhere/llama-bench"], "peer")
    with pytest.raises(ChildFailed, match="peer ended with status -9: it said nothing"):
        run_child(python("import os; os.kill(os.getpid(), 9)"), "peer")


def test_output_of_any_length_is_read_to_its_end() -> None:
    done = run_child(python("import sys; sys.stdout.write('x' * 300_000); sys.stderr.write('y' * 300_000)"), "engine")
    assert len(done.output) == 300_000
    assert done.peak_rss_bytes > 1 << 20


def test_memory_is_over_the_size_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(bytes(1 << 20))
    start = first_token(python("print('text')"), file, runs=2)
    assert len(start["first_token_s"]) == 2
    assert start["memory_ratio"] == start["peak_rss_bytes"] / (1 << 20)
