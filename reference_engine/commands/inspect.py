# SPDX-License-Identifier: Apache-2.0
"""``inspect MODEL``: what is in a model file, and what is wrong with it."""

from __future__ import annotations

import argparse
import json

from reference_engine import tiny
from reference_engine.commands.options import model_path
from reference_engine.errors import UsageError
from reference_engine.gguf_errors import LARGE, UNREADABLE, Limits
from reference_engine.gguf_inspect import Inspection, inspect
from reference_engine.gguf_page import render
from reference_engine.npu_inspect import PIPELINES
from reference_engine.npu_soc import NPU_SOCS
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_FINDINGS, EXIT_OK

HELP = "what is in a model file, and what is wrong with it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        metavar="MODEL",
        nargs="?",
        default=tiny.DEFAULT,
        help="a GGUF file (any part of a split one), or the name of a fetched model or of one of the kit's own "
        f"(default {tiny.DEFAULT})",
    )
    parser.add_argument("--json", action="store_true", help="the same as one JSON document")
    parser.add_argument(
        "--header-only", action="store_true", help="do not ask for the tensor data: the start of the file is enough"
    )
    parser.add_argument(
        "--large", action="store_true", help="take headers larger than any published today (see NPU-F013)"
    )
    parser.add_argument("--sha256", metavar="HEX", type=_sha256, help="compare with the publisher's hash too")
    parser.add_argument(
        "--pipeline",
        action="append",
        default=[],
        metavar="PRESET[,KEY=VALUE]",
        help="what goes to the NPU by this pipeline; repeatable (default: " + ", ".join(PIPELINES) + ")",
    )
    parser.add_argument(
        "--soc", default="rk3588", metavar="NAME", choices=tuple(NPU_SOCS), help="the NPU meant: " + ", ".join(NPU_SOCS)
    )


def run(values: argparse.Namespace) -> int:
    """Exit code 0 nothing wrong (warnings allowed), 1 errors found, 2 usage, 3 the file cannot be opened."""
    limits = LARGE if values.large else Limits()
    try:
        result = inspect(
            model_path(values.model),
            header_only=values.header_only,
            sha256=values.sha256,
            limits=limits,
            pipelines=values.pipeline or PIPELINES,
            soc=values.soc,
        )
    except ValueError as error:
        raise UsageError(f"--pipeline: {error}") from error
    if values.json:
        print(json.dumps(result.document, indent=2, ensure_ascii=True, allow_nan=False))
    else:
        print(render(result.document), end="")
    return _exit_code(result)


def _sha256(text: str) -> str:
    if len(text) != 64 or set(text.lower()) - set("0123456789abcdef"):
        raise argparse.ArgumentTypeError("a sha256 is 64 hexadecimal digits")
    return text.lower()


def _exit_code(result: Inspection) -> int:
    if any(problem.code == UNREADABLE for problem in result.problems):
        return EXIT_COULD_NOT_RUN
    return EXIT_FINDINGS if any(not problem.is_warning for problem in result.problems) else EXIT_OK
