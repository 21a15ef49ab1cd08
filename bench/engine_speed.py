# SPDX-License-Identifier: Apache-2.0
"""Speed of the reference engine beside llama.cpp on the same cores, and its memory and time to the first token.

    python bench/engine_speed.py MODEL --llama-bench PATH --peer-model Q8_0_FILE [--threads 2] [--rounds 5]

MODEL is the engine's file, Q8_0_FILE what llama-bench is given (llama-quantize --allow-requantize MODEL OUT Q8_0).
The two take turns, each turn a process of its own, and the one that begins changes from round to round. A round in
which other processes used the CPUs is discarded and made anew, until `--rounds` are clean or `--most` were tried. A
round's ratio is the median of the engine's samples over the median of llama-bench's; the result is the median of the
ratios, with the least and the greatest. Without a clean round nothing is called measured; the disturbed ones are shown
as such.

Bars (--backend npu:w8a8-per-channel against Q8_0): prefill and decode at least 1.0 times llama.cpp, peak memory at most
1.3 times the file, first token after 1.5 s. Raw samples go to build/bench/engine_speed.json (--json).

Exit status: 0 no measured bar missed, 1 a bar missed, 2 usage, 3 no clean round or a process that failed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this is run as a script too

from reference_engine.foreign_cpu import CpuWatch  # noqa: E402

TURN = ROOT / "bench" / "engine_turn.py"
OUT = ROOT / "build" / "bench" / "engine_speed.json"
PROMPT = "The capital of France is"
FIRST_TOKEN_S = 1.5
MEMORY_RATIO = 1.3
SPEED_RATIO = 1.0
CHILD_DEADLINE_S = 600.0
PAUSE_S = 1.0


class ChildFailed(RuntimeError):
    """A contender that did not end well; the message names it and says what it wrote last."""


@dataclass(frozen=True)
class Turn:
    """One contender in one round: tokens per second by test ("pp512", "tg64"), its memory, who else used the CPUs."""

    samples_ts: Mapping[str, Sequence[float]]
    foreign_s: float | None
    window_s: float
    disturbed: bool
    peak_rss_bytes: int = 0


@dataclass(frozen=True)
class Round:
    """``clean``: no other process took part, and both have samples of every test."""

    engine: Turn
    peer: Turn

    @property
    def clean(self) -> bool:
        turns = (self.engine, self.peer)
        return not any(turn.disturbed or not all(turn.samples_ts.values()) for turn in turns)

    def ratio(self, test: str) -> float | None:
        """Engine over peer; None where either has no sample."""
        engine, peer = self.engine.samples_ts[test], self.peer.samples_ts[test]
        return median(engine) / median(peer) if engine and peer else None


@dataclass(frozen=True)
class Process:
    """``first_byte_s`` from its start to its first output, ``peak_rss_bytes`` with mapped pages of files."""

    output: bytes
    first_byte_s: float
    peak_rss_bytes: int


def run_child(command: Sequence[str], name: str) -> Process:
    """ChildFailed where it cannot be started or ends with another status than 0."""
    # what it says goes to a file: a pipe that nobody reads would stop it
    with tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        try:
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors)
        except OSError as error:
            raise ChildFailed(f"{name} cannot be started: {error}") from error
        assert process.stdout is not None
        deadline = threading.Timer(CHILD_DEADLINE_S, process.kill)
        deadline.start()
        with process.stdout as pipe:
            first = os.read(pipe.fileno(), 1 << 16)
            first_byte_s = time.perf_counter() - started
            output = first + pipe.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        deadline.cancel()
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
    if process.returncode != 0:
        raise ChildFailed(f"{name} ended with status {process.returncode}: {said[-1] if said else 'it said nothing'}")
    return Process(output, first_byte_s, usage.ru_maxrss * 1024)


def turn(command: Sequence[str], name: str, tests: Sequence[str]) -> Turn:
    """One contender's samples of every test, out of rows as llama-bench -o json writes them."""
    watch = CpuWatch()
    done = run_child(command, name)
    use = watch.stop()
    samples: dict[str, list[float]] = {test: [] for test in tests}
    for row in json.loads(done.output):
        test = f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}"
        samples[test] += row["samples_ts"]
    return Turn(samples, use.foreign_s, use.window_s, use.disturbed, done.peak_rss_bytes)


def play_round(number: int, commands: Mapping[str, Sequence[str]], tests: Sequence[str]) -> Round:
    """Both contenders once; who begins changes from round to round."""
    order = ("engine", "peer") if number % 2 == 0 else ("peer", "engine")
    turns = {name: turn(commands[name], name, tests) for name in order}
    return Round(turns["engine"], turns["peer"])


def result_of(rounds: Sequence[Round], test: str) -> dict[str, Any]:
    """Median speeds and ratio over these rounds, with the least and the greatest ratio."""
    ratios = [ratio for ratio in (played.ratio(test) for played in rounds) if ratio is not None]
    if not ratios:
        return {"test": test, "rounds": 0}
    engine = [sample for played in rounds for sample in played.engine.samples_ts[test]]
    peer = [sample for played in rounds for sample in played.peer.samples_ts[test]]
    return {
        "test": test,
        "rounds": len(ratios),
        "engine_ts": median(engine),
        "peer_ts": median(peer),
        "ratio": median(ratios),
        "least": min(ratios),
        "greatest": max(ratios),
    }


def first_token(command: Sequence[str], model: Path, runs: int) -> dict[str, Any]:
    """Seconds from the start of the process to the first text, and peak memory over the size of the file."""
    done = [run_child(command, "the engine's run command") for _ in range(runs)]
    peak = max(process.peak_rss_bytes for process in done)
    return {
        "first_token_s": [process.first_byte_s for process in done],
        "best_first_token_s": min(process.first_byte_s for process in done),
        "peak_rss_bytes": peak,
        "file_bytes": model.stat().st_size,
        "memory_ratio": peak / model.stat().st_size,
    }


def verdicts(results: Sequence[Mapping[str, Any]], start: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """What is measured, what the bar is, whether it is missed."""
    found = []
    for result in results:
        if result["rounds"]:
            text = (
                f"{result['test']}: {result['engine_ts']:.1f} tokens/s, {result['ratio']:.2f} times llama.cpp's "
                f"{result['peer_ts']:.1f} ({result['least']:.2f} to {result['greatest']:.2f} in {result['rounds']} "
                "rounds)"
            )
            found.append((text, f"at least {SPEED_RATIO:.1f}", result["ratio"] < SPEED_RATIO))
    memory, first = start["memory_ratio"], start["best_first_token_s"]
    found.append((f"peak memory: {memory:.2f} times the file", f"at most {MEMORY_RATIO}", memory > MEMORY_RATIO))
    text = f"first token: {first:.2f} s after the start, the best of {len(start['first_token_s'])}"
    found.append((text, f"at most {FIRST_TOKEN_S} s", first > FIRST_TOKEN_S))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("--llama-bench", type=Path, required=True, metavar="PATH")
    parser.add_argument("--peer-model", type=Path, required=True, metavar="FILE", help="its Q8_0 file")
    parser.add_argument("--backend", default="npu:w8a8-per-channel", metavar="NAME")
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    parser.add_argument("-p", "--n-prompt", type=int, default=512, metavar="N")
    parser.add_argument("-n", "--n-gen", type=int, default=64, metavar="N")
    parser.add_argument("-r", "--repetitions", type=int, default=2, metavar="N", help="of each test in a turn (2)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="clean ones wanted (5)")
    parser.add_argument("--most", type=int, default=20, metavar="N", help="rounds tried at most (20)")
    parser.add_argument("--json", type=Path, default=OUT, metavar="FILE")
    values = parser.parse_args()
    for path in (values.model, values.llama_bench, values.peer_model):
        if not path.is_file():
            parser.error(f"{path} is no file")
    try:
        return measure(values)
    except ChildFailed as error:
        print(error, file=sys.stderr)
        return 3


def measure(values: argparse.Namespace) -> int:
    """Play the rounds, keep everything, and print what they say."""
    tests = [f"pp{values.n_prompt}", f"tg{values.n_gen}"]
    model, threads, repetitions = str(values.model.resolve()), str(values.threads), str(values.repetitions)
    sizes = [str(values.n_prompt), str(values.n_gen)]
    # llama-bench keeps its KV cache in f16, as the engine does
    peer = [str(values.llama_bench.resolve()), "-m", str(values.peer_model.resolve()), "-t", threads, "-o", "json"]
    commands = {
        "engine": [sys.executable, str(TURN), model, values.backend, threads, *sizes, repetitions],
        "peer": [*peer, "-p", sizes[0], "-n", sizes[1], "-r", repetitions],
    }
    run = [sys.executable, "-m", "reference_engine", "run", model, "--backend", values.backend, "--threads", threads]
    start = first_token([*run, "-p", PROMPT, "-n", "16"], values.model, runs=3)
    rounds: list[Round] = []
    while len(rounds) < values.most and sum(played.clean for played in rounds) < values.rounds:
        if rounds and not rounds[-1].clean:
            time.sleep(PAUSE_S)
        rounds.append(play_round(len(rounds), commands, tests))
    clean = [played for played in rounds if played.clean]
    results = [result_of(clean, test) for test in tests]
    kept = {
        "commands": {name: [Path(part).name if "/" in part else part for part in c] for name, c in commands.items()},
        "machine": platform.machine(),
        "clean_rounds": len(clean),
        "rounds": [asdict(played) | {"clean": played.clean} for played in rounds],
        "results": results,
        "start": start,
    }
    values.json.parent.mkdir(parents=True, exist_ok=True)
    values.json.write_text(json.dumps(kept, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    for text, bar, missed in (found := verdicts(results, start)):
        print(f"{text}; {bar}: {'MISSED' if missed else 'held'}")
    if not clean:
        print(f"speed: not measured, other processes used the CPUs in all of {len(rounds)} rounds")
        for test in tests:
            disturbed = result_of(rounds, test)
            if disturbed["rounds"]:
                print(f"  disturbed, no result: {test} ratio {disturbed['least']:.2f} to {disturbed['greatest']:.2f}")
    engine_mb, peer_mb = (max(getattr(p, name).peak_rss_bytes for p in rounds) / 1e6 for name in ("engine", "peer"))
    print(f"peak memory in these rounds: engine {engine_mb:.0f} MB, llama-bench {peer_mb:.0f} MB")
    print(f"{len(clean)} of {len(rounds)} rounds were clean; every sample is in {values.json}")
    if any(missed for _, _, missed in found):
        return 1
    return 0 if clean else 3


if __name__ == "__main__":
    sys.exit(main())
