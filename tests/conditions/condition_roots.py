# SPDX-License-Identifier: Apache-2.0
"""Fake roots with the files the sampler reads. Values of boards are those of public boot logs and board
probes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SELF = 4242
"""The process that measures, in the fake roots."""

BOARD = {
    "sys/class/devfreq/fdab0000.npu/cur_freq": "1000000000\n",
    "sys/class/devfreq/fdab0000.npu/max_freq": "1000000000\n",
    "sys/class/devfreq/fdab0000.npu/governor": "rknpu_ondemand\n",
    "sys/class/devfreq/fdab0000.npu/load": "100@1000000000Hz\n",
    "sys/class/devfreq/fdab0000.npu/available_frequencies": (
        "300000000 400000000 500000000 600000000 700000000 800000000 900000000 1000000000\n"
    ),
    "sys/class/devfreq/fb000000.gpu/cur_freq": "300000000\n",
    "sys/class/devfreq/dmc/cur_freq": "2400000000\n",
    "sys/class/devfreq/dmc/max_freq": "2400000000\n",
    "sys/class/devfreq/dmc/governor": "dmc_ondemand\n",
    "sys/class/devfreq/dmc/available_frequencies": "534000000 1320000000 1968000000 2400000000\n",
    "sys/devices/system/cpu/cpufreq/policy0/related_cpus": "0 1 2 3\n",
    "sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq": "1800000\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq": "1800000\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq": "1800000\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "ondemand\n",
    "sys/devices/system/cpu/cpufreq/policy4/related_cpus": "4 5\n",
    "sys/devices/system/cpu/cpufreq/policy4/cpuinfo_max_freq": "2304000\n",
    "sys/devices/system/cpu/cpufreq/policy4/scaling_max_freq": "2304000\n",
    "sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq": "2304000\n",
    "sys/devices/system/cpu/cpufreq/policy4/scaling_governor": "ondemand\n",
    "sys/class/thermal/thermal_zone0/type": "soc-thermal\n",
    "sys/class/thermal/thermal_zone0/temp": "40692\n",
    "sys/class/thermal/thermal_zone0/trip_point_0_type": "passive\n",
    "sys/class/thermal/thermal_zone0/trip_point_0_temp": "75000\n",
    "sys/class/thermal/thermal_zone0/trip_point_1_type": "passive\n",
    "sys/class/thermal/thermal_zone0/trip_point_1_temp": "85000\n",
    "sys/class/thermal/thermal_zone0/trip_point_2_type": "critical\n",
    "sys/class/thermal/thermal_zone0/trip_point_2_temp": "115000\n",
    "sys/class/thermal/thermal_zone6/type": "npu-thermal\n",
    "sys/class/thermal/thermal_zone6/temp": "39800\n",
    "sys/class/thermal/thermal_zone6/trip_point_0_type": "critical\n",
    "sys/class/thermal/thermal_zone6/trip_point_0_temp": "115000\n",
    "sys/class/thermal/cooling_device0/type": "thermal-cpufreq-0\n",
    "sys/class/thermal/cooling_device0/cur_state": "0\n",
    "sys/class/thermal/cooling_device1/type": "thermal-devfreq-0\n",
    "sys/class/thermal/cooling_device1/cur_state": "0\n",
    "sys/class/thermal/cooling_device2/type": "pwm-fan\n",
    "sys/class/thermal/cooling_device2/cur_state": "3\n",
    "proc/vmstat": "nr_free_pages 1000\npswpin 10\npswpout 20\n",
}


def proc_stat(busy_ticks: int, cpus: int = 8) -> str:
    """A ``/proc/stat`` with ``busy_ticks`` in all, of which one each in irq, softirq and steal."""
    lines = [f"cpu  {busy_ticks - 3} 0 0 99999 777 1 1 1 0 0"]
    lines += [f"cpu{number} {busy_ticks // cpus} 0 0 12500 97 0 0 0 0 0" for number in range(cpus)]
    return "\n".join([*lines, "intr 12345 0 0", "ctxt 1", ""])


def process_stat(pid: int, parent: int, ticks: tuple[int, int, int, int], name: str = "python3") -> str:
    """A ``/proc/PID/stat``: utime, stime, cutime, cstime as given."""
    return f"{pid} ({name}) S {parent} 1 1 0 -1 4194560 1 2 3 4 " + " ".join(map(str, ticks)) + " 20 0 1 0 99\n"


@dataclass(frozen=True)
class FakeRoot:
    path: Path

    def set(self, name: str, text: str) -> None:
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def npu(self, name: str, text: str) -> None:
        self.set(f"sys/class/devfreq/fdab0000.npu/{name}", text)

    def process(self, pid: int, parent: int, ticks: tuple[int, int, int, int], name: str = "python3") -> None:
        self.set(f"proc/{pid}/stat", process_stat(pid, parent, ticks, name))

    def busy(self, ticks: int) -> None:
        self.set("proc/stat", proc_stat(ticks))
