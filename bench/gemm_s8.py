# SPDX-License-Identifier: Apache-2.0
"""Speed of the mock's exact int8 product beside torch, onnxruntime and numpy, in one run on the same cores.

    python bench/gemm_s8.py [--threads 2] [--path avx2] [--python PYTHON_WITH_THE_PEERS]

The peers are no dependency of the kit: `--install-peers` puts them into a virtual environment under build/bench,
where later runs find them. A missing peer is named and the rest goes on.

Bars: (1,4096,4096) at least 1.0 times the fastest of torch._int_mm, onnxruntime MatMulInteger and numpy float32;
(512,4096,4096) at least 1.0 times torch._int_mm held to the same instruction set (ONEDNN_MAX_CPU_ISA). B is
prepared outside the timed region for everyone. Contenders take turns; a turn during which other processes used
the CPU is discarded and repeated. A turn counts as the median of its runs, a contender as the median of its turns.
Raw samples go to build/bench/gemm_s8.json.

Exit status: 0 no measured bar missed, 1 a bar missed or a wrong result, 2 usage, 3 too few quiet turns or the
kernels could not run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this is run as a script too

from reference_engine.foreign_cpu import FOREIGN_SHARE  # noqa: E402

OUT = ROOT / "build" / "bench"
PEERS = OUT / "peers"
PEER_PACKAGES = ("torch==2.13.0", "onnxruntime==1.32.0", "onnx", "numpy")
TURN_S = 0.5
OPERATIONS_PER_ROW = 2 * 4096 * 4096  # a multiply and an add are two
# oneDNN's name of the widest instruction set that a path of ours uses.
ISA_OF_PATH = {"avx512-vnni": "AVX512_CORE_VNNI", "avx-vnni": "AVX2_VNNI", "avx2": "AVX2"}
PLAN: tuple[tuple[str, bool, tuple[int, ...]], ...] = (  # contender, held to our instruction set, its M
    ("kernels", False, (1, 512)),
    ("torch", False, (1, 512)),
    ("torch-t", False, (1, 512)),
    ("torch", True, (512,)),
    ("torch-t", True, (512,)),
    ("ort-u8s8", False, (1, 512)),
    ("ort-s8s8", False, (1,)),
    ("numpy-f32", False, (1, 512)),
    ("numpy-f32-t", False, (1,)),
)
BARS = (  # M, against what, contenders, whether they are the held ones, whether it is a bar
    (1, "the fastest peer", ("torch", "torch-t", "ort-u8s8", "ort-s8s8", "numpy-f32", "numpy-f32-t"), False, True),
    (512, "torch._int_mm held to {isa}", ("torch", "torch-t"), True, True),
    (512, "torch._int_mm without that limit", ("torch", "torch-t"), False, False),
)


@dataclass
class Contender:
    """A child process and what was measured of it."""

    name: str
    held: bool
    process: subprocess.Popen[str]
    shapes: tuple[int, ...]
    about: dict[str, Any] = field(default_factory=dict)
    turns: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    discarded: int = 0

    def answer(self) -> dict[str, Any]:
        """Read one reply; a child that died answers with its exit status."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            return {"error": f"ended with status {self.process.wait()}"}
        reply: dict[str, Any] = json.loads(line)
        return reply

    def turn(self, M: int) -> bool:
        """One turn at M; False when it was discarded because others used the CPU."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # the answer says how it ended
            self.process.stdin.write(json.dumps({"M": M, "seconds": TURN_S}) + "\n")
            self.process.stdin.flush()
        reply = self.answer()
        if "verdict" in reply:
            self.about[f"verdict_M{M}"] = reply["verdict"]
        if "error" in reply:
            self.about[f"error_M{M}"] = reply["error"]
            self.shapes = tuple(m for m in self.shapes if m != M)
            return True
        if reply["foreign_s"] > FOREIGN_SHARE * reply["window_s"] * (os.cpu_count() or 1):
            self.discarded += 1
            return False
        self.turns.setdefault(M, []).append(reply)
        return True

    def medians_us(self, M: int) -> list[float]:
        """The median run of each turn."""
        return [median(turn["samples_us"]) for turn in self.turns.get(M, [])]

    def gops(self, M: int) -> float:
        """10^9 operations a second at M, 0 when nothing was measured."""
        medians = self.medians_us(M)
        return M * OPERATIONS_PER_ROW / median(medians) / 1000 if medians else 0.0


def start(name: str, isa: str | None, shapes: tuple[int, ...], args: argparse.Namespace) -> Contender:
    """Start one contender with its own environment: numpy's BLAS unconstrained, oneDNN held to `isa`."""
    env = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        env[variable] = str(args.threads)
    env["PYTHONPATH"] = str(ROOT)
    if args.path:
        env["RKNN_MOCK_KERNEL"] = args.path
    if isa:
        env["ONEDNN_MAX_CPU_ISA"] = isa
    library = str(OUT / "libgemm_s8.so")
    process = subprocess.Popen(
        [args.python, "-m", "bench.gemm.contenders", name, library, str(args.threads)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT, env=env,
    )  # fmt: skip
    contender = Contender(name, isa is not None, process, shapes)
    contender.about = contender.answer()
    return contender


def measure(contenders: list[Contender], rounds: int, deadline: float) -> None:
    """Take turns, each round beginning with another contender, until all have `rounds` or time is up."""
    for number in range(rounds):
        first = number % len(contenders)
        for contender in contenders[first:] + contenders[:first]:
            for M in contender.shapes:
                while time.monotonic() < deadline and not contender.turn(M):
                    time.sleep(0.5)
                time.sleep(0.05)  # lets the last one's spinning threads come to rest


def table(contenders: list[Contender], isa: str | None) -> list[str]:
    """One line per contender and M, and what went wrong."""
    lines = []
    for c in contenders:
        label = f"{c.name} held to {isa}" if c.held else c.name
        for M in c.shapes:
            lines.append(
                f"{label:32} M={M:<4}{c.gops(M):7.0f} GOPS  {len(c.turns.get(M, []))} turns, "
                f"{c.about.get(f'verdict_M{M}', 'not compared')}, {c.about['note']}"
            )
        lines += [f"{label:32} {key}: {text}" for key, text in c.about.items() if key.startswith("error_M")]
        if c.about["prepare_s"]:
            lines.append(f"{label:32} preparing B once: {c.about['prepare_s'] * 1000:.1f} ms, not timed above")
    lines.append(f"turns discarded because other processes ran: {sum(c.discarded for c in contenders)}")
    return lines


def judge(contenders: list[Contender], isa: str | None, rounds: int, missing: list[str]) -> tuple[list[str], int]:
    """The bars in words, and the exit status."""
    own, lines, status = contenders[0], [], 0
    for M, against, names, held, is_bar in BARS:
        title = f"M={M}: against {against.format(isa=isa)}"
        peers = [c for c in contenders if c.name in names and c.held == held and M in c.shapes]
        absent = [name for name in names if name not in {c.name for c in peers}]
        if not peers:
            lines.append(f"{title}: not measured, missing: {', '.join(absent)}")
            continue
        if any(len(c.turns.get(M, [])) < rounds for c in (own, *peers)):
            lines.append(f"{title}: not measured, too few quiet turns")
            status = status or (3 if is_bar else 0)
            continue
        best = max(peers, key=lambda c: c.gops(M))
        ratio = own.gops(M) / best.gops(M)
        by_round = [theirs / ours for theirs, ours in zip(best.medians_us(M), own.medians_us(M), strict=True)]
        word = ("met" if ratio >= 1.0 else "MISSED") if is_bar else "for information"
        without = f", without {', '.join(absent)}" if absent else ""
        lines.append(
            f"{title} ({best.name}{without}): {ratio:.2f} times, by round {min(by_round):.2f} to "
            f"{max(by_round):.2f}; bar 1.00: {word}"
        )
        status = 1 if is_bar and ratio < 1.0 else status
    if any(own.about[f"verdict_M{M}"] != "exact" for M in own.turns):
        return [*lines, "the kernels' result is wrong"], 1
    return [*missing, *lines], status


def install_peers() -> str:
    """Make the virtual environment of the peers; returns its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
    python = str(PEERS / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *PEER_PACKAGES], check=True)
    return python


def main() -> int:
    """Measure, print, keep the raw samples."""
    installed = PEERS / "bin" / "python"
    parser = argparse.ArgumentParser(description="the exact int8 product of the mock against other libraries")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="quiet turns wanted of each contender")
    parser.add_argument("--minutes", type=float, default=10.0, help="give up waiting for quiet after this")
    parser.add_argument("--python", default=str(installed) if installed.exists() else sys.executable)
    parser.add_argument("--install-peers", action="store_true", help=f"first install {', '.join(PEER_PACKAGES)}")
    parser.add_argument("--path", help="kernel path to measure (default: the best of this CPU)")
    args = parser.parse_args()
    if args.threads < 1 or args.rounds < 1:
        parser.error("--threads and --rounds take a number from 1 on")
    OUT.mkdir(parents=True, exist_ok=True)
    if args.install_peers:
        args.python = install_peers()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.threads])
    started = [start("kernels", None, PLAN[0][2], args)]
    if "error" in started[0].about:
        print(f"the kernels cannot run: {started[0].about['error']}")
        return 3
    isa = ISA_OF_PATH.get(started[0].about["note"].removeprefix("path "))
    started += [start(name, isa if held else None, shapes, args) for name, held, shapes in PLAN[1:] if isa or not held]
    missing = [f"peer missing: {c.name}: {c.about['error']}" for c in started if "error" in c.about]
    running = [c for c in started if "error" not in c.about]
    measure(running, args.rounds, time.monotonic() + 60 * args.minutes)
    bars, status = judge(running, isa, args.rounds, missing)
    lines = table(running, isa) + bars
    for contender in started:
        contender.process.terminate()
        contender.process.communicate()
    raw = {"machine": platform.machine(), "cpus": os.cpu_count(), "threads": args.threads, "lines": lines}
    keys = ("name", "held", "about", "discarded", "turns")
    raw["contenders"] = [{key: getattr(c, key) for key in keys} for c in started]
    (OUT / "gemm_s8.json").write_text(json.dumps(raw), encoding="utf-8")
    print("\n".join([*lines, f"raw samples: {(OUT / 'gemm_s8.json').relative_to(ROOT)}"]))
    return status


if __name__ == "__main__":
    sys.exit(main())
