# SPDX-License-Identifier: Apache-2.0
"""What each NPU pipeline costs a model in quality, beside the range in which a prototype found it.

    python bench/engine_quality.py MODEL [MODEL ...] [--threads 2]

Four texts (bench/texts), the first 129 tokens of each, teacher-forced: 516 tokens. The reference is the same file with
the float back end; all linear weights and the head go through the pipeline. MODEL is a file or a fetched model's name.

The ranges are those of a numpy prototype on other texts of the same length, Gemma 3 270M (Q4_K_M) and SmolLM2 135M
(Q4_1) together; another text moves a mean KL divergence by about a third, so a range is widened by a factor of 1.5, and
a share of same tops by 0.04. With one activation scale for a whole tensor the factor is 2: rows then depend on their
batch, which was 129 rows in the prototype and is at most 64 MB of logits here (64 rows of Gemma; with 129 its KL is
13 % larger). A figure is in its range where its 95 % interval touches it.

Exit status: 0 every figure in its range, 1 one outside, 2 usage, 3 a comparison that failed. All documents go to
build/bench/engine_quality.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this is run as a script too

from reference_engine.commands.options import open_model_file  # noqa: E402
from reference_engine.tokenizer import load_tokenizer  # noqa: E402
from reports.text import table  # noqa: E402

OUT = ROOT / "build" / "bench" / "engine_quality.json"
TEXTS = ROOT / "bench" / "texts"
LENGTH = 129
KL_FACTOR = 1.5
KL_FACTOR_OF_BATCHES = 2.0
TOP_MARGIN = 0.04


@dataclass(frozen=True)
class Expected:
    """A pipeline and what the prototype found: least and greatest mean KL divergence and share of same tops."""

    preset: str
    kl: tuple[float, float]
    same_top: tuple[float, float]

    def places(self, entry: Mapping[str, Any]) -> list[str]:
        """What of a comparison lies outside, in words; empty where nothing does."""
        factor = KL_FACTOR_OF_BATCHES if "per-tensor-both" in self.preset else KL_FACTOR
        kl = (self.kl[0] / factor, self.kl[1] * factor)
        top = (self.same_top[0] - TOP_MARGIN, self.same_top[1] + TOP_MARGIN)
        named = (("KL", entry["kl_mean"], kl), ("same top", entry["same_top"], top))
        return [
            f"{name} {figure['value']:.2g} not in {low:.2g} to {high:.2g}"
            for name, figure, (low, high) in named
            if figure["high"] < low or figure["low"] > high
        ]


EXPECTED = (
    Expected("w8a8-per-channel", (0.040, 0.061), (0.876, 0.893)),
    Expected("w8a8-hadamard", (0.0036, 0.0055), (0.963, 0.969)),
    Expected("w8a8-per-tensor", (0.11, 0.13), (0.818, 0.824)),
    Expected("w8a8-per-tensor-both", (0.27, 0.85), (0.539, 0.723)),
    Expected("w8a8-per-tensor-both,hadamard=block", (0.068, 0.14), (0.816, 0.857)),
    Expected("w4a4", (8.6, 8.7), (0.021, 0.031)),
    Expected("w4a4-hadamard,a_clip=1,b_clip=1", (1.9, 2.6), (0.262, 0.355)),
)


class Failed(RuntimeError):
    """A comparison that could not be made."""


def token_ids(model: str) -> list[int]:
    """The texts in a row, each with what the model puts before a text and cut to the same length."""
    found: list[int] = []
    with open_model_file(model) as file:
        tokenizer = load_tokenizer(file)
        for path in sorted(TEXTS.glob("*.txt")):
            ids = tokenizer.encode(path.read_text(encoding="utf-8"))
            if len(ids) < LENGTH:
                raise Failed(f"{path.name} has {len(ids)} tokens in this vocabulary; {LENGTH} are needed")
            found += ids[:LENGTH]
    return found


def compare(model: str, preset: str, tokens: Sequence[int], threads: int) -> dict[str, Any]:
    """The document of the compare command, float against this pipeline."""
    ids = ",".join(map(str, tokens))
    command = [sys.executable, "-m", "reference_engine", "compare", model, "--tokens", ids, "--ctx", str(LENGTH)]
    command += ["--backends", f"float,npu:{preset}", "--no-floor", "--threads", str(threads), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise Failed(f"compare with {preset} ended with status {done.returncode}: {said[-1] if said else ''}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def row(expected: Expected, entry: Mapping[str, Any]) -> list[str]:
    kl, top, ratio = entry["kl_mean"], entry["same_top"], entry["perplexity_ratio"]
    outside = expected.places(entry)
    return [
        expected.preset,
        f"{kl['value']:.3g} ({kl['low']:.2g} to {kl['high']:.2g})",
        f"{expected.kl[0]:g} to {expected.kl[1]:g}",
        f"{top['value']:.3f} ({top['low']:.3f} to {top['high']:.3f})",
        f"{expected.same_top[0]:g} to {expected.same_top[1]:g}",
        f"{ratio['value']:.3g}",
        "; ".join(outside) or "in range",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    parser.add_argument("--presets", metavar="A;B", help="only these, with semicolons between them")
    parser.add_argument("--json", type=Path, default=OUT, metavar="FILE")
    values = parser.parse_args()
    wanted = None if values.presets is None else set(values.presets.split(";"))
    chosen = [expected for expected in EXPECTED if wanted is None or expected.preset in wanted]
    if not chosen or (wanted and len(chosen) < len(wanted)):
        parser.error("known presets are " + "; ".join(expected.preset for expected in EXPECTED))
    documents: list[dict[str, Any]] = []
    outside = False
    for model in values.models:
        try:
            tokens = token_ids(model)
            made = [compare(model, expected.preset, tokens, values.threads) for expected in chosen]
        except Failed as error:
            print(error, file=sys.stderr)
            return 3
        documents += made
        entries = [document["backends"][1] for document in made]
        rows = [row(expected, entry) for expected, entry in zip(chosen, entries, strict=True)]
        outside = outside or any(cells[-1] != "in range" for cells in rows)
        print(f"{Path(model).name}, {len(tokens)} tokens")
        heads = ("pipeline", "KL (95 %)", "prototype", "same top (95 %)", "prototype", "ppl ratio", "verdict")
        print("\n".join(table(rows, heads, ["left"] * len(heads))))
    values.json.parent.mkdir(parents=True, exist_ok=True)
    values.json.write_text(json.dumps(documents, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
