# SPDX-License-Identifier: Apache-2.0
"""``forecast MODEL --report REPORT``: what a model will do on a measured board."""

from __future__ import annotations

import argparse
from pathlib import Path

from reports.load import load_report

HELP = "what a GGUF model will do on a measured board: does it fit, how fast, what would pay"
MAX_CONTEXT = 1 << 24


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="a GGUF file; its header is enough")
    parser.add_argument("--report", type=Path, required=True, help="the board's report.json (level medium or long)")
    parser.add_argument("--soc", help="rk3588, rk3576, ...: where the report does not know")
    parser.add_argument("--pipeline", metavar="NAMES", help="pipelines by ';' (default: w8a8, w4a4, w16a16, rkllm)")
    parser.add_argument("--context", type=_context, default=8192, help="tokens of context that must fit (8192)")
    parser.add_argument("--kv", choices=("f32", "f16", "q8_0", "q4_0"), default="f16", help="type of the cache (f16)")
    parser.add_argument("--draft", type=Path, metavar="GGUF", help="a draft model or MTP head, for the table of drafts")
    parser.add_argument(
        "--llama-bench",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="llama-bench -o json or jsonl of this board with -d 0,8192: brings the cost of attention",
    )
    parser.add_argument("--json", action="store_true", help="the same as one JSON document")


def run(values: argparse.Namespace) -> int:
    """Exit code 0, 2 for a request that cannot be answered, 3 for a model that cannot be read."""
    from reports.forecast.asked import forecast_of, tell  # noqa: PLC0415  read where it is needed
    from reports.forecast.page import render  # noqa: PLC0415

    return tell(values, load_report(values.report), forecast_of, render)


def _context(text: str) -> int:
    value = int(text)
    if not 1 <= value <= MAX_CONTEXT:
        raise argparse.ArgumentTypeError(f"a context has 1 to {MAX_CONTEXT} tokens")
    return value
