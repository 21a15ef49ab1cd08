# SPDX-License-Identifier: Apache-2.0
"""Whether the conditions of a row allow its number to be used. Pure: samples in, verdict with reasons out.

Each reason begins with a stable word: ``throttled``, ``clock low``, ``clock unknown``, ``background load``,
``swap activity``, ``cold first run``, ``noisy``. The figures follow it. Thresholds come from reports of
boards: an NPU left at 200 MHz is 7.6 times slower than at 800 MHz with nothing else to see (tgoskits pull
1908), a first cold run reads 15 % low, and a throttling board falls from 346 to 278 tokens/s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from probes.conditions.rules import Rules
from probes.conditions.sample import Phase, Ranges, Sample
from probes.conditions.stop import STOP_C
from reports.contract import Validity

Samples = Sequence[Sample]
_Clock = tuple[str, str, "int | None", Callable[[Sample], "int | None"]]

SLOWING_DEVICES = (
    "thermal-cpufreq",
    "cpufreq-",
    "thermal-devfreq",
    "devfreq-",
    "thermal-idle",
    "idle-",
    "Processor",
)
"""Cooling device types that take speed away. Fans (``pwm-fan``) cool without doing so."""

_MHZ = 1e6
_FEWEST_FOR_SPREAD = 3
_FEWEST_FOR_TREND = 6
_STEADY = 0.8  # share of ordered pairs less share of disordered ones; 1 is strictly monotonic
_LEAST_FOREIGN_S = 0.05  # five ticks: below, the kernel's tick is all that is seen


def judge(samples: Samples, row_samples: Sequence[float], rules: Rules | None = None) -> Validity:
    """The verdict on a row: ``samples`` of its conditions in order of time, ``row_samples`` its raw results.

    With no ``row_samples`` (a row that is not a speed) the reasons that need them are not looked for.
    """
    rules = rules or Rules()
    reasons: list[str] = []
    if not rules.simulated:
        reasons += _throttled(samples)
        reasons += _clocks(samples, rules)
    reasons += _background(samples, rules)
    reasons += _swapped(samples)
    reasons += _cold(row_samples, rules)
    reasons += _noisy(row_samples, rules)
    return Validity(valid=not reasons, reasons=tuple(reasons))


def foreign_cpus(samples: Samples) -> float | None:
    """How many CPUs everything but this process and its descendants kept busy, on average over the window."""
    looks = [(sample.at_s, sample.load) for sample in samples if sample.load is not None]
    if len(looks) < 2 or looks[-1][0] <= looks[0][0]:
        return None
    (start_s, first), (end_s, last) = looks[0], looks[-1]
    if first is None or last is None:
        return None
    foreign_s = (last.all_s - first.all_s) - (last.own_s - first.own_s)
    return max(0.0, foreign_s) / (end_s - start_s)


def _during(samples: Samples) -> list[Sample]:
    return [sample for sample in samples if sample.phase is Phase.DURING]


def _throttled(samples: Samples) -> Iterator[str]:
    found = [
        *(f"{kind} at state {state}" for kind, state in _slowing(samples)),
        *_limits_lowered(samples),
        *_slowed_by_heat(samples),
    ]
    if found:
        yield "throttled: " + "; ".join(found)


def _slowing(samples: Samples) -> Iterator[tuple[str, int]]:
    kinds = {kind for sample in samples for kind in sample.cooling}
    for kind in sorted(kinds):
        state = max(sample.cooling.get(kind, 0) for sample in samples)
        if state > 0 and kind.startswith(SLOWING_DEVICES) and not kind.endswith(".gpu"):
            yield kind, state


def _limits_lowered(samples: Samples) -> Iterator[str]:
    """A limit that falls while the row runs was lowered by the kernel; one that was low all the time is a
    user's."""
    limits: dict[str, list[int]] = {}
    for sample in samples:
        for name, limit in [
            ("npu", sample.npu_limit_hz),
            ("ddr", sample.ddr_limit_hz),
            *sample.cpu_limit_hz.items(),
        ]:
            if limit is not None:
                limits.setdefault(name, []).append(limit)
    for name, values in limits.items():
        if min(values) < values[0]:
            yield f"limit of {name} fell from {values[0] / _MHZ:.0f} to {min(values) / _MHZ:.0f} MHz"


def _slowed_by_heat(samples: Samples) -> Iterator[str]:
    """The rknpu driver caps the clock above 85 degrees without a cooling device or a lower ``max_freq`` to
    show for it."""
    clocks = [sample.npu_hz for sample in _during(samples) if sample.npu_hz is not None]
    if not clocks or min(clocks) >= max(clocks):
        return
    highest_first = clocks.index(max(clocks))
    fallen = min(clocks[highest_first:])
    hottest = max(
        ((degrees, zone) for sample in samples for zone, degrees in sample.temperature_c.items()),
        default=None,
    )
    if fallen < max(clocks) and hottest and hottest[0] >= STOP_C:
        yield (
            f"npu clock fell from {max(clocks) / _MHZ:.0f} to {fallen / _MHZ:.0f} MHz "
            f"with {hottest[1]} at {hottest[0]:.1f} C"
        )


def _clocks(samples: Samples, rules: Rules) -> Iterator[str]:
    during = _during(samples)
    low, unknown = [], []
    for name, kind, highest, read in _judged_clocks(samples, rules):
        clocks = [clock for clock in map(read, during) if clock is not None]
        if highest is None or not clocks:
            if kind in rules.needed:
                unknown.append(f"{name}, {_why_unknown(samples, during, highest)}")
            continue
        wanted = rules.clock_share * highest
        slow = sum(clock < wanted for clock in clocks)
        if kind in rules.clocks and slow > rules.low_samples_share * len(clocks):
            low.append(
                f"{name} {median(clocks) / _MHZ:.0f} MHz (lowest {min(clocks) / _MHZ:.0f}, maximum "
                f"{highest / _MHZ:.0f}), below {rules.clock_share:.0%} in {slow} of {len(clocks)} samples"
            )
    if low:
        yield "clock low: " + "; ".join(low)
    if unknown:
        yield "clock unknown: " + "; ".join(unknown)


def _judged_clocks(samples: Samples, rules: Rules) -> Iterator[_Clock]:
    """(name, kind, highest clock, how to read it) of every clock the rules speak of."""
    asked = rules.clocks | rules.needed
    ranges = samples[0].ranges if samples else Ranges()
    if "npu" in asked:
        yield "npu", "npu", ranges.npu_max_hz, lambda sample: sample.npu_hz
    if "ddr" in asked:
        yield "ddr", "ddr", ranges.ddr_max_hz, lambda sample: sample.ddr_hz
    if "cpu" in asked:
        used = [name for name, each in ranges.policies.items() if rules.cpus is None or each.cpus & rules.cpus]
        for name in used:
            yield name, "cpu", ranges.policies[name].max_hz, _cpu_reader(name)
        if not used:
            yield "cpu", "cpu", None, lambda _: None


def _cpu_reader(policy: str) -> Callable[[Sample], int | None]:
    return lambda sample: sample.cpu_hz.get(policy)


def _why_unknown(samples: Samples, during: Samples, highest: int | None) -> str:
    if not samples:
        return "conditions were not sampled"
    if highest is None:
        return "no devfreq or cpufreq entry shows it"
    return "its file could not be read" if during else "no sample fell into the row, it was too short"


def _background(samples: Samples, rules: Rules) -> Iterator[str]:
    foreign = foreign_cpus(samples)
    if foreign is None:
        yield "background load: unknown, /proc/stat was not read before and after the row"
        return
    cpus = samples[0].ranges.cpus
    looks = [sample.at_s for sample in samples if sample.load is not None]
    wall_s = looks[-1] - looks[0]
    if foreign > max(rules.least_foreign_cpus, rules.foreign_share * cpus) and foreign * wall_s >= _LEAST_FOREIGN_S:
        yield f"background load: other processes kept {foreign:.2f} of {cpus} CPUs busy over {wall_s:.1f} s"


def _swapped(samples: Samples) -> Iterator[str]:
    looks = [
        (sample.swap_in_pages, sample.swap_out_pages)
        for sample in samples
        if sample.swap_in_pages is not None and sample.swap_out_pages is not None
    ]
    if len(looks) < 2:
        return
    (first_in, first_out), (last_in, last_out) = looks[0], looks[-1]
    if last_in > first_in or last_out > first_out:
        yield f"swap activity: {last_in - first_in} pages in, {last_out - first_out} pages out"


def _cold(row_samples: Sequence[float], rules: Rules) -> Iterator[str]:
    if len(row_samples) < _FEWEST_FOR_SPREAD:
        return
    first, rest = row_samples[0], median(row_samples[1:])
    worse = _worse_by(first, rest, rules)
    spread = median(abs(sample - rest) for sample in row_samples[1:])
    if worse > rules.cold_share and abs(first - rest) > 5 * spread:
        yield f"cold first run: the first sample is {worse:.0%} slower than the median of the others"


def _noisy(row_samples: Sequence[float], rules: Rules) -> Iterator[str]:
    count = len(row_samples)
    if count == 0:
        return
    if count < _FEWEST_FOR_SPREAD:
        yield f"noisy: {count} of at least {_FEWEST_FOR_SPREAD} samples, the spread is unknown"
        return
    middle = median(row_samples)
    deviation = median(abs(sample - middle) for sample in row_samples)
    if middle <= 0 or deviation > rules.noise_share * middle:
        share = f"{deviation / middle:.1%}" if middle > 0 else "unbounded"
        yield f"noisy: MAD is {share} of the median, {rules.noise_share:.0%} allowed ({count} samples)"
        return
    third = count // 3
    early, late = median(row_samples[:third] or row_samples), median(row_samples[-third:] or row_samples)
    worse = _worse_by(late, early, rules)
    falls = worse > rules.noise_share and abs(_monotony(row_samples)) >= _STEADY
    if count >= _FEWEST_FOR_TREND and falls:
        yield f"noisy: speed falls steadily, last third {worse:.1%} slower than the first ({count} samples)"


def _worse_by(value: float, reference: float, rules: Rules) -> float:
    """By which share ``value`` is slower than ``reference``; negative when it is faster."""
    if reference <= 0 or value <= 0:
        return 0.0
    return 1 - value / reference if rules.higher_is_better else value / reference - 1


def _monotony(values: Sequence[float]) -> float:
    """Kendall's tau of the values against their order: 1 rises all the way, -1 falls all the way, near 0 is
    noise."""
    pairs = [(values[i], values[j]) for i in range(len(values)) for j in range(i + 1, len(values))]
    return sum((later > earlier) - (later < earlier) for earlier, later in pairs) / len(pairs) if pairs else 0.0
