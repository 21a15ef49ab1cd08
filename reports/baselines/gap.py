# SPDX-License-Identifier: Apache-2.0
"""The gap budget: which conditions of a run explain that it is slower than a published figure, and by how much.

Each effect is one somebody measured; its factor is what was left of the speed. Where nobody measured it alone the
factor is unknown, and unknown it stays: it is named and not reckoned with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Facts = dict[str, Any]
Row = dict[str, Any]

HOT_C = 75.0
SLOW_GOVERNORS = frozenset({"powersave", "ondemand", "schedutil", "conservative", "interactive", "simple_ondemand"})
NPU = frozenset({"npu_compute", "npu_memory", "llm"})
MEMORY = frozenset({"npu_memory", "cpu_memory", "llm"})
CPU = frozenset({"cpu_memory", "call_cost", "llm"})


@dataclass(frozen=True)
class Explanation:
    """A condition of this run. ``factor`` is the share of speed that it leaves, lowest and highest; None if unknown."""

    condition: str
    factor: tuple[float, float] | None
    source: str

    @property
    def leaves(self) -> str:
        """The factor in words."""
        if self.factor is None:
            return "effect unknown"
        low, high = self.factor
        return f"leaves {low:.0%}" if low == high else f"leaves {low:.0%} to {high:.0%}"


def explanations(report: dict[str, Any], row: Row, measures: str) -> list[Explanation]:
    """The conditions in ``report`` and ``row`` that can slow what ``measures`` names, the strongest first."""
    facts = report.get("facts") or {}
    found = [each for rule in _RULES for each in rule(report, facts, row, measures)]
    return sorted(found, key=lambda each: (each.factor is None, each.factor[0] if each.factor else 1.0))


def _fact(facts: Facts, key: str) -> Any:
    return (facts.get(key) or {}).get("value")


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else None


def _condition(row: Row, key: str, part: str = "median") -> float | None:
    conditions = (row.get("evidence") or {}).get("conditions")
    value = conditions.get(key) if isinstance(conditions, dict) else None
    return _number(value.get(part) if isinstance(value, dict) else value)


def _spreads(row: Row, key: str) -> dict[str, Any]:
    conditions = (row.get("evidence") or {}).get("conditions")
    value = conditions.get(key) if isinstance(conditions, dict) else None
    return value if isinstance(value, dict) else {}


Found = Iterator[Explanation]


def _npu_clock(_report: Any, facts: Facts, row: Row, measures: str) -> Found:
    now = _condition(row, "npu_clock_hz")
    most = _condition(row, "npu_clock_max_hz") or _number(_fact(facts, "npu.clock_max_hz"))
    if measures in NPU and now and most and now < 0.97 * most:
        share = now / most
        yield Explanation(
            f"the NPU ran at {now / 1e6:.0f} of {most / 1e6:.0f} MHz (governor {_fact(facts, 'npu.governor')})",
            (share, share if measures == "npu_compute" else 1.0),
            "rcore-os/tgoskits pull request 1908: one network 96.4 ms at 200 MHz, 12.65 ms at 800 MHz",
        )


def _ddr_clock(_report: Any, facts: Facts, row: Row, measures: str) -> Found:
    if measures not in MEMORY:
        return
    now = _condition(row, "ddr_clock_hz") or _number(_fact(facts, "ddr.clock_now_hz"))
    most = _condition(row, "ddr_clock_max_hz") or _number(_fact(facts, "ddr.clock_max_hz"))
    governor = _fact(facts, "ddr.governor")
    if now and most and now < 0.97 * most:
        text = f"the memory ran at {now / 1e6:.0f} of {most / 1e6:.0f} MHz (governor {governor})"
        yield Explanation(text, (now / most, 1.0), "bandwidth goes with the memory clock at most")
    elif governor in SLOW_GOVERNORS and not now:
        text = f"the memory clock is governed by {governor}, and was not readable while this ran"
        yield Explanation(text, None, "airockchip/rknn-llm issue 532")
    elif _fact(facts, "ddr.devfreq_present") is False:
        text = "there is no devfreq for the memory: its clock is what the boot firmware set, unknown to this kit"
        yield Explanation(text, None, "airockchip/rknn-llm issue 532, edk2-porting/edk2-rk3588 issue 205")


def _cpu_governor(_report: Any, facts: Facts, row: Row, measures: str) -> Found:
    names = _fact(facts, "cpu.governors")
    governors = {str(name) for name in names} if isinstance(names, list) else set()
    governors |= {str(word) for name, word in _spreads(row, "governors").items() if "cpu" in str(name)}
    if measures not in CPU or not governors & SLOW_GOVERNORS:
        return
    words = ", ".join(sorted(governors & SLOW_GOVERNORS))
    if "powersave" in governors:
        source = "airockchip/rknn-llm issues 27 and 29: 12 against 21 tokens per second until all governors were set"
        yield Explanation(f"CPU governor {words}", (12 / 21, 0.95), source)
    else:
        yield Explanation(f"CPU governor {words}", (0.92, 0.95), "airockchip/rknn-llm issue 532: 5 to 8 percent")


def _pinning(report: Any, _facts: Facts, _row: Row, measures: str) -> Found:
    if measures not in ("call_cost", "llm"):
        return
    for row in report.get("measurements") or []:
        gain = _number(row.get("median")) if row.get("name") == "cpu_pinning" else None
        if gain and gain > 1.03 and (row.get("validity") or {}).get("valid"):
            cpus = (row.get("parameters") or {}).get("cpus")
            yield Explanation(
                f"work that is not pinned to CPUs {cpus}", (1 / gain, 1.0), "measured on this board, row cpu_pinning"
            )
            return


def _cores(report: Any, facts: Facts, row: Row, _measures: str) -> Found:
    contexts = (row.get("parameters") or {}).get("contexts")
    if not isinstance(contexts, int) or isinstance(contexts, bool) or contexts < 2:
        return
    cores = _fact(facts, "npu.cores")
    if isinstance(cores, int) and 0 < cores < contexts:
        share = cores / contexts
        yield Explanation(f"this NPU has {cores} cores", (share, share), "fact npu.cores of this report")
    rates = {
        (each.get("parameters") or {}).get("contexts"): _number(each.get("median"))
        for each in report.get("measurements") or []
        if each.get("name") == row.get("name")
    }
    one, many = rates.get(1), rates.get(contexts)
    if one and many and many < 1.2 * one:
        share = many / (contexts * one)
        text = f"{contexts} contexts together are {many / one:.2f} times one: the cores do not work side by side"
        yield Explanation(text, (share, share), "measured on this board")


def _heat(_report: Any, facts: Facts, row: Row, _measures: str) -> Found:
    highest = [
        _number(spread.get("max")) for spread in _spreads(row, "temperature_c").values() if isinstance(spread, dict)
    ]
    cooled = [
        _number(spread.get("max")) for spread in _spreads(row, "cooling_state").values() if isinstance(spread, dict)
    ]
    degrees = max([value for value in highest if value] or [_number(_fact(facts, "thermal.max_c")) or 0.0])
    if degrees >= HOT_C or any(cooled):
        text = f"{degrees:.0f} C at the hottest zone" + (", and a cooling device was active" if any(cooled) else "")
        source = "pty819/rk-llama.cpp docs: 346 to 278 tokens per second when throttled at 75 to 80 C"
        yield Explanation(text, (278 / 346, 1.0), source)


def _cold(_report: Any, _facts: Facts, row: Row, _measures: str) -> Found:
    reasons = (row.get("validity") or {}).get("reasons") or []
    if any(str(reason).startswith("cold first run") for reason in reasons):
        yield Explanation("the first run was cold", (0.85, 1.0), "gregordinary/rockchip-npu-notes: 15 percent")


def _load(_report: Any, facts: Facts, row: Row, _measures: str) -> Found:
    foreign = _condition(row, "foreign_cpus")
    if foreign and foreign >= 0.2:
        yield Explanation(f"other processes used {foreign:.1f} CPUs", None, "conditions of this row")
    tenants = _fact(facts, "tenants")
    if isinstance(tenants, list) and tenants:
        yield Explanation(f"{len(tenants)} other users of the NPU were seen", None, "fact tenants of this report")


Rule = Callable[[dict[str, Any], Facts, Row, str], Found]
_RULES: tuple[Rule, ...] = (_npu_clock, _ddr_clock, _cpu_governor, _pinning, _cores, _heat, _cold, _load)
