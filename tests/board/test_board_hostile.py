# SPDX-License-Identifier: Apache-2.0
"""Trees from strangers and trees with holes: each bad file costs its own fact, never the report."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from probes.facts import FactSheet, collect
from probes.findings import judge
from probes.system import System
from tests.board import samples
from tests.board.tree import build


def _garbage(file: Path) -> None:
    file.write_bytes(random.Random(str(file.name)).randbytes(3000))


def _invalid_utf8(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\xc3\x28 12 \xed\xa0\x80\n")


def _huge_numbers(file: Path) -> None:
    file.write_text("99999999999999999999999999 -1 1e400 0x7fffffffffffffffffff\n", encoding="utf-8")


def _hundred_mib(file: Path) -> None:
    with file.open("r+b") as handle:
        handle.truncate(100 * 1024 * 1024)


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _one_long_line(file: Path) -> None:
    file.write_text("7" * 200_000, encoding="utf-8")


def _gone(file: Path) -> None:
    file.unlink()


def _loop(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


def _fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _escape(file: Path) -> None:
    file.unlink()
    file.symlink_to("/etc/hostname")


HARMS: tuple[Callable[[Path], None], ...] = (
    *(_garbage, _invalid_utf8, _huge_numbers, _hundred_mib, _empty, _one_long_line, _gone, _loop, _fifo, _directory),
    _escape,
)


def plain_files(root: Path) -> list[Path]:
    """Every plain file of the tree except the manifest, which stands for the board's calls."""
    return sorted(
        path for path in root.rglob("*") if path.is_file() and not path.is_symlink() and path.name != "manifest.json"
    )


def look(root: Path) -> FactSheet:
    return collect(System(root), lambda event: None)


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__.strip("_"))
@pytest.mark.parametrize("table", [samples.ROCK5B_61, samples.ROCKET], ids=["vendor", "rocket"])
def test_every_file_at_once_may_be_bad(harm: Callable[[Path], None], table: str, tmp_path: Path) -> None:
    root = build(tmp_path / "root", table)
    for file in plain_files(root):
        harm(file)
    started = time.monotonic()
    sheet = look(root)
    assert time.monotonic() - started < 60
    assert not [key for key in sheet if key.startswith("probe.")], [
        sheet.reason(key) for key in sheet if key.startswith("probe.")
    ]
    judge(sheet)
    assert all(fact.reason for fact in sheet.values() if fact.value is None)


def test_one_bad_file_costs_its_own_facts_alone(tmp_path: Path) -> None:
    whole = build(tmp_path / "whole", samples.ROCK5B_61)
    good = {key: fact.value for key, fact in look(whole).items()}
    leans_on = {
        "sys/class/devfreq/fdab0000.npu/cur_freq": {"npu.clock_now_hz"},
        "sys/class/devfreq/fdab0000.npu/governor": {"npu.governor"},
        "sys/class/devfreq/dmc/available_frequencies": {
            *("ddr.available_hz", "ddr.clock_max_hz", "ddr.type", "ddr.rate_mtps", "ddr.theoretical_gbps")
        },
        "sys/class/thermal/thermal_zone0/temp": {"thermal.zones", "thermal.npu_c", "thermal.max_c"},
        "proc/meminfo": {key for key in good if key.startswith("memory.")},
        "proc/self/limits": {key for key in good if key.startswith("limits.")},
        "etc/os-release": {"os.name", "os.id", "os.version"},
        "etc/group": {"npu.device_nodes"},
        "proc/config.gz": {"kernel.npu_options", "iommu.windows_sure", "kernel.flavour"},
        "sys/module/rknpu/version": {"npu.driver_version", "npu.driver_version_routes", "npu.driver_routes_agree"},
    }
    for number, (name, own) in enumerate(leans_on.items()):
        for harm in (_garbage, _fifo):
            root = tmp_path / f"root{number}{harm.__name__}"
            shutil.copytree(whole, root, symlinks=True)
            harm(root / name)
            changed = {key for key, fact in look(root).items() if fact.value != good[key]}
            assert changed <= own, (name, harm.__name__, changed - own)


def test_binary_garbage_in_the_compatible_list_makes_no_rk3588(tmp_path: Path) -> None:
    root = build(tmp_path / "root", samples.ROCK5B_61)
    (root / "proc/device-tree/compatible").write_bytes(b"\x00\xffrockchip\x01,rk3588\xfe\x00")
    sheet = look(root)
    assert sheet.value("soc.name") is None
    assert sheet.value("npu.cores") is None
    assert sheet.value("npu.rated_tops") is None
    assert sheet.value("ddr.width_bits") is None


def test_a_container_without_its_sources_keeps_every_other_fact(tmp_path: Path) -> None:
    sources = ("/sys/kernel/debug", "/run/udev", "/proc/device-tree")
    whole = look(build(tmp_path / "whole", samples.ROCK5B_61, "/.dockerenv dir"))
    for source in sources:
        cut = look(build(tmp_path / source.replace("/", "_"), samples.ROCK5B_61, "/.dockerenv dir", f"- {source}"))
        lost = {key for key, fact in cut.items() if fact.value is None and whole[key].value is not None}
        allowed = ("board.", "soc.", "npu.dt_nodes", "npu.cores", "npu.rated_tops", "iommu.dma_mask", "ddr.", "probe.")
        assert all(key.startswith(allowed) for key in lost), (source, lost)
        if source != "/proc/device-tree":
            assert not lost, (source, lost)
        assert cut.value("npu.stack") == "vendor-drm"
        assert cut.value("npu.driver_version") == "0.9.8"


def test_thousands_of_entries_are_bounded(tmp_path: Path) -> None:
    root = build(tmp_path / "root", samples.ROCK5B_61)
    for number in range(4200):
        (root / f"sys/class/regulator/r{number}").mkdir(parents=True)
    sheet = look(root)
    assert sheet.value("soc.name") == "RK3588"
    assert not [key for key in sheet if key.startswith("probe.")]


def test_reads_that_hang_cost_their_facts_and_seconds_not_minutes(tmp_path: Path) -> None:
    root = build(tmp_path / "root", samples.ROCK5B_61)

    def stuck(path: str, size: int) -> bytes:
        if "/regulator/" in path or "/devfreq/" in path:
            time.sleep(5)
        return Path(path).read_bytes()[:size]

    started = time.monotonic()
    sheet = collect(System(root, read_file=stuck, file_seconds=0.1), lambda event: None)
    assert time.monotonic() - started < 60
    assert sheet.value("npu.clock_now_hz") is None
    assert "did not answer in time" in sheet.reason("npu.clock_now_hz")
    assert sheet.value("soc.name") == "RK3588"
    assert sheet.value("npu.stack") == "vendor-drm"
