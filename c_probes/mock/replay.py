# SPDX-License-Identifier: Apache-2.0
"""From a saved capability report to a configuration of the mock: same type table, limits and speeds.

Only rows whose output was right and whose conditions were valid carry a speed over. What the report does not hold stays
as the persona has it, and the configuration says so in comments.
"""

from __future__ import annotations

import re
from typing import Any

from c_probes.mock import Persona, replay_costs
from c_probes.mock.replay_rows import BadReport, measurements, parameter, positive, usable, whole, without_validity

__all__ = ["BadReport", "configuration", "left_out", "persona_of"]

_MAX_SHAPES = 256
_SOC = re.compile(r"rk3588|rk3576|rk3562|rk3566|rk3568|rv1126b", re.IGNORECASE)


def persona_of(report: Any, personas: list[Persona]) -> str | None:
    """The persona of a simulated run, else the one that the report's facts name, or None."""
    names = {persona.name for persona in personas}
    simulation = report.get("simulation") if isinstance(report, dict) else None
    simulated = simulation.get("persona") if isinstance(simulation, dict) else None
    found = _SOC.search(simulated) if isinstance(simulated, str) else None
    if found and found.group().lower() in names:
        return found.group().lower()
    facts = report.get("facts") if isinstance(report, dict) else None
    if not isinstance(facts, dict):
        return None
    for key in sorted(facts):
        value = facts[key].get("value") if isinstance(facts[key], dict) else None
        found = _SOC.search(value) if isinstance(value, str) and "soc" in key.lower() else None
        if found and found.group().lower() in names:
            return found.group().lower()
    return None


def type_codes(report: Any) -> list[int]:
    """Type codes that the board accepted, whether or not the results were right: the table is about refusing."""
    accepted: dict[int, bool] = {}
    for row in measurements(report, "dtype_support"):
        code = whole(parameter(row, "type"))
        if code is not None and row.get("verdict") in ("passed", "failed", "crashed", "timed-out", "unsupported"):
            accepted[code] = accepted.get(code, False) or row.get("verdict") != "unsupported"
    return sorted(code for code, yes in accepted.items() if yes)


def wrong_types(report: Any) -> list[tuple[int, str]]:
    """Type codes that ended in a wrong result, a crash or a hang, with the verdict."""
    return sorted(
        (code, str(row["verdict"]))
        for row in measurements(report, "dtype_support")
        if (code := whole(parameter(row, "type"))) is not None
        and row.get("verdict") in ("failed", "crashed", "timed-out")
    )


def shapes(report: Any) -> list[str]:
    """The measured shapes on one core as ``type,M,K,N,layout,tops`` lines."""
    lines = []
    for row in measurements(report, "gemm_rate"):
        numbers = [whole(parameter(row, key)) for key in ("type", "M", "K", "N")]
        layout, tops = parameter(row, "AC_layout"), positive(row.get("median"))
        if usable(row) and None not in numbers and layout in ("norm", "native") and row.get("unit") == "tops":
            lines.append(f"{','.join(str(n) for n in numbers)},{layout},{tops:.6g}")
    return lines[:_MAX_SHAPES]


def left_out(report: Any) -> int:
    """How many measured shapes are right but carry no speed over, because the conditions were bad."""
    return len(shapes(without_validity(report))) - len(shapes(report))


def shares(report: Any) -> dict[int, float]:
    """Speed of each of two or three contexts that run together, relative to one alone, at most 1."""
    totals: dict[int, float] = {}
    for row in measurements(report, "core_scaling"):
        contexts, tops = whole(parameter(row, "contexts")), positive(row.get("median"))
        if usable(row) and contexts is not None and tops is not None:
            totals[contexts] = tops
    alone = totals.get(1)
    return {n: total / n / alone for n, total in totals.items() if alone and n in (2, 3)}


def configuration(report: Any, personas: list[Persona], persona: str | None = None) -> str:
    """The text of an RKNN_MOCK_CONFIG file. Raises BadReport when the report says nothing that can be replayed."""
    points = shapes(report)
    name = persona or persona_of(report, personas)
    if name is None:
        known = ", ".join(entry.name for entry in personas)
        raise BadReport(f"its facts name no known chip; say which with --persona ({known})")
    known_codes = {code for entry in personas if entry.name == "any" for code in entry.types}
    codes = [code for code in type_codes(report) if code in known_codes]
    if not codes and not points:
        raise BadReport("it holds neither dtype_support nor usable gemm_rate rows; run the probes at level medium")
    lines = ["# Made from a capability report. Read by the mock through RKNN_MOCK_CONFIG.", f"persona = {name}"]
    lines += (
        [f"limits.types = {','.join(map(str, codes))}"] if codes else ["# no dtype_support rows: types as the persona"]
    )
    lines += [f"# type {code} on the board: {verdict}" for code, verdict in wrong_types(report)]
    missed = left_out(report)
    lines += [f"# {missed} gemm_rate rows left out: right, but measured under bad conditions"] if missed else []
    lines += ["timing = on"] if points else ["# no usable gemm_rate rows: no timing"]
    lines += [f"timing.share{n} = {share:.6g}" for n, share in sorted(shares(report).items())] if points else []
    lines += [*replay_costs.call_costs(report), *replay_costs.bandwidth(report)] if points else []
    lines += [f"timing.gemm = {point}" for point in points]
    lines += replay_costs.size_limits(report)
    return "\n".join(lines) + "\n"
