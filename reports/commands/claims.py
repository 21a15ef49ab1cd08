# SPDX-License-Identifier: Apache-2.0
"""``claims [--report REPORT]``: what is said of this stack, each claim with an experiment and its verdict."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from reports.load import NotAReport, load_report
from reports.text import inert

HELP = "claims about this stack, each tried on the engine or held against a report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--report", type=Path, help="hold the claims about a board's time against its report as well")
    parser.add_argument("--only", metavar="NAMES", help="some of the engine's claims, by name, with commas")
    parser.add_argument("--json", action="store_true", help="the same as one JSON document")


def run(values: argparse.Namespace) -> int:
    """Exit code 0 whatever the verdicts: a claim refuted is no fault. 2 for a report or name that cannot be used."""
    from reference_engine.claims.table import CLAIMS  # noqa: PLC0415  brings numpy and the engine

    names = None if values.only is None else values.only.split(",")
    unknown = sorted(set(names or ()) - {claim.name for claim in CLAIMS})
    if unknown:
        known = ", ".join(claim.name for claim in CLAIMS)
        raise NotAReport(f"there is no claim {inert(unknown[0])}; known are {known}.")
    rows: list[dict[str, Any]] = []
    for claim in CLAIMS:
        if names is None or claim.name in names:
            verdict = claim.test()
            rows.append(
                {"claim": claim.text, "verdict": verdict.word, "reason": verdict.reason, "source": claim.source}
            )
    if values.report is not None:
        rows += _of_report(values.report)
    if values.json:
        print(json.dumps({"format": "rknpu-kit claims", "claims": rows}, indent=2, allow_nan=False))
    else:
        print(render(rows), end="")
    sys.stdout.flush()
    return 0


def _of_report(path: Path) -> list[dict[str, Any]]:
    from reports.page_claims import claim_rows  # noqa: PLC0415  for a report alone

    return [
        {"claim": row.text, "verdict": row.verdict, "reason": row.shown, "source": row.source}
        for row in claim_rows(load_report(path))
    ]


def render(rows: list[dict[str, Any]]) -> str:
    """One block for each claim: verdict and claim, then the reason."""
    width = max(len(row["verdict"]) for row in rows)
    lines = []
    for row in rows:
        lines.append(f"{inert(row['verdict']):<{width}}  {inert(row['claim'])}")
        lines.append(f"{'':<{width}}  {inert(row['reason'], 600)}")
    return "\n".join(lines) + "\n"
