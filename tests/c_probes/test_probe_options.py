# SPDX-License-Identifier: Apache-2.0
"""The command line and the library argument of all three probes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.c_probes.probe_runs import Probes

PROGRAMS = ("mm_peak", "mm_concurrent", "mm_dtypes")
StandIn = Callable[..., Path]


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_names_every_exit_code_and_needs_no_library(probes: Probes, program: str) -> None:
    run = probes.run(program, "--help")
    assert run.code == 0
    assert run.err == ""
    assert "usage: " + program in run.out and "--library" in run.out and "exit codes: 0" in run.out


@pytest.mark.parametrize(
    ("program", "arguments", "words"),
    [
        ("mm_peak", ["--frobnicate"], "--frobnicate is no option"),
        ("mm_peak", ["4096"], "4096 is not expected"),
        ("mm_peak", ["--shape"], "--shape needs a value"),
        ("mm_peak", ["--shape", "1x2"], "must be MxKxN"),
        ("mm_peak", ["--shape", "0x32x32"], "must be MxKxN"),
        ("mm_peak", ["--shape", "-1x32x32"], "must be MxKxN"),
        ("mm_peak", ["--shape", "65536x65536x65536"], "4 GiB"),
        ("mm_peak", ["--type", "21"], "type codes 0 to 20"),
        ("mm_peak", ["--type", "2,,3"], "without empty places"),
        ("mm_peak", ["--type", "int9"], "type codes 0 to 20"),
        ("mm_peak", ["--seconds", "0"], "number of seconds"),
        ("mm_peak", ["--seconds", "nan"], "number of seconds"),
        ("mm_peak", ["--layout", "sideways"], "norm, native or both"),
        ("mm_peak", ["--quant", "per_pixel"], "per_layer, per_channel or both"),
        ("mm_peak", ["--seed", "-1"], "integer from 0"),
        ("mm_peak", ["--core-mask", "x"], "integer from 0"),
        ("mm_peak", ["--json=yes"], "takes no value"),
        ("mm_peak", ["--cores", "2"], "--cores is no option"),
        ("mm_concurrent", ["--masks", "1,3"], "single-bit masks"),
        ("mm_concurrent", ["--masks", "1,1"], "names a core twice"),
        ("mm_concurrent", ["--cores", "9"], "1 to 8"),
        ("mm_dtypes", ["--shape", "1x2x3"], "--shape is no option"),
        ("mm_dtypes", ["--deadline", "soon"], "number of seconds"),
    ],
)
def test_bad_usage_is_one_sentence_and_exit_2(probes: Probes, program: str, arguments: list[str], words: str) -> None:
    run = probes.run(program, *arguments)
    assert run.code == 2
    assert run.out == ""
    assert words in run.err
    assert run.err.startswith(program + ": error: ") and run.err.count("\n") == 1


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("json_lines", [False, True])
def test_what_is_no_usable_library_is_one_sentence_and_exit_3(
    probes: Probes, stand_in: StandIn, tmp_path: Path, program: str, json_lines: bool
) -> None:
    text = tmp_path / "librknnrt.so"
    text.write_text("this is no library\n" * 50)
    foreign = tmp_path / "foreign.so"
    elf = bytearray(stand_in().read_bytes())
    elf[18] = 0xF3  # e_machine: RISC-V
    foreign.write_bytes(elf)
    broken = tmp_path / "broken.so"
    broken.write_bytes(stand_in().read_bytes()[:4096])
    cases = {
        tmp_path / "absent.so": ("no-library", "does not exist"),
        tmp_path: ("not-a-library", "is no shared library"),
        text: ("not-a-library", "is no shared library"),
        foreign: ("wrong-architecture", "for another machine"),
        broken: ("not-a-library", "is cut short"),
        probes.build / "bin" / "mm_peak": ("not-loadable", "cannot be loaded"),
        stand_in(source="no_matmul.c"): ("missing-symbols", "rknn_matmul_create"),
    }
    for library, (kind, words) in cases.items():
        run = probes.run(program, *(["--json"] if json_lines else []), library=library)
        assert run.code == 3, (library, run)
        assert words in run.err and run.err.count("\n") == 1
        if json_lines:
            assert run.of("error")[0]["kind"] == kind
            assert run.records[-1] == {"record": "end", "exit_code": 3}
        else:
            assert run.out == ""


MOCK_VERSION = b"2.3.2 (mock     for tests)"
"""As long as the stand-in's own, which it replaces in the file."""


@pytest.mark.skipif(Path("/dev/rknpu").exists(), reason="this machine has an NPU")
@pytest.mark.parametrize("program", ["mm_peak", "mm_dtypes"])
def test_without_an_npu_only_a_mock_is_loaded_unnamed(
    probes: Probes, stand_in: StandIn, tmp_path: Path, program: str
) -> None:
    """The vendor's runtime would make device nodes. The stand-in does not call itself a mock."""
    own = (tmp_path / "librknnrt.so", {"LD_LIBRARY_PATH": f"/nowhere::{tmp_path}"})
    vendor_like = stand_in("EXIT_IN_LOAD").read_bytes()
    own[0].write_bytes(vendor_like)
    refused = probes.run(program, "--json", env=own[1])
    assert refused.code == 3
    assert [error["kind"] for error in refused.of("error")] == ["no-device"]
    assert "--library PATH" in refused.err
    named = probes.run(program, "--json", "--library", "librknnrt.so", env=own[1])
    assert [error["kind"] for error in named.of("error")] != ["no-device"]


def test_the_default_library_is_looked_for_by_the_loader(probes: Probes, stand_in: StandIn, tmp_path: Path) -> None:
    arguments = ("mm_peak", "--json", "--shape", "1x32x32", "--seconds", "0.001")
    data = stand_in().read_bytes()
    assert data.count(b"2.3.2 (stand-in for tests)") == 1
    (tmp_path / "librknnrt.so").write_bytes(data.replace(b"2.3.2 (stand-in for tests)", MOCK_VERSION))
    found = probes.run(*arguments, env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert found.code == 0
    assert found.of("header")[0]["library"] == str(tmp_path / "librknnrt.so")
    assert found.of("header")[0]["library_version"] == MOCK_VERSION.decode()


def test_a_name_that_the_loader_does_not_know_is_told(probes: Probes) -> None:
    missing = probes.run("mm_peak", "--json", "--library", "librknnrt-of-nobody.so")
    assert missing.code == 3
    assert missing.of("error")[0]["kind"] == "no-library"
    assert "--library PATH" in missing.err


DRM = "sys/class/drm/renderD129"


@pytest.mark.parametrize(
    ("files", "present"),
    [
        ({}, False),
        ({"dev/rknpu": ""}, True),
        ({f"{DRM}/device/uevent": "DRIVER=RKNPU\nOF_NAME=npu\n", "dev/dri/renderD129": ""}, True),
        ({f"{DRM}/device/uevent": "OF_NAME=npu\nDRIVER=RKNPU\n", "dev/dri/renderD129": ""}, True),
        ({f"{DRM}/device/uevent": "DRIVER=RKNPU\n"}, False),  # the driver without its node
        ({f"{DRM}/device/uevent": "DRIVER=panthor\n", "dev/dri/renderD129": ""}, False),
        ({f"{DRM}/device/uevent": "DRIVER=RKNPU\n", "dev/dri/renderD128": ""}, False),  # the node of the GPU
    ],
)
def test_a_node_of_the_npu_is_known_by_its_driver(
    parts_library: Path, tmp_path: Path, files: dict[str, str], present: bool
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    look = ctypes.CDLL(str(parts_library)).npu_node_present
    look.restype = ctypes.c_bool
    assert look(str(tmp_path).encode()) is present


@pytest.mark.parametrize(("device", "present"), [("fdab0000.npu", True), ("rknpu", True), ("fb000000.gpu", False)])
def test_where_the_driver_is_not_told_the_name_of_the_device_counts(
    parts_library: Path, tmp_path: Path, device: str, present: bool
) -> None:
    (tmp_path / DRM).mkdir(parents=True)
    (tmp_path / DRM / "device").symlink_to(f"../../../devices/platform/{device}")
    (tmp_path / "dev/dri").mkdir(parents=True)
    (tmp_path / "dev/dri/renderD129").touch()
    look = ctypes.CDLL(str(parts_library)).npu_node_present
    look.restype = ctypes.c_bool
    assert look(str(tmp_path).encode()) is present


def test_type_names_and_codes_are_the_same_types(probes: Probes, stand_in: StandIn) -> None:
    arguments = ("--json", "--shape", "1x32x32", "--seconds", "0.001", "--type")
    run = probes.run("mm_peak", *arguments, "int8_int8_int32,2,1", library=stand_in())
    assert [row["parameters"]["type_name"] for row in run.rows] == ["int8_int8_int32", "float16_float16_float32"]
