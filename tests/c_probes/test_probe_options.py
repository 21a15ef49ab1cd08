# SPDX-License-Identifier: Apache-2.0
"""The command line and the library argument of all three probes."""

from __future__ import annotations

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


def test_the_default_library_is_looked_for_by_the_loader(probes: Probes, stand_in: StandIn, tmp_path: Path) -> None:
    arguments = ("mm_peak", "--json", "--shape", "1x32x32", "--seconds", "0.001")
    missing = probes.run(*arguments, env={"LD_LIBRARY_PATH": str(tmp_path)})
    if missing.code == 3:  # a machine that has a librknnrt of its own goes another way
        assert missing.of("error")[0]["kind"] == "no-library"
        assert "--library PATH" in missing.err
    (tmp_path / "librknnrt.so").write_bytes(stand_in().read_bytes())
    found = probes.run(*arguments, env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert found.code == 0
    assert found.of("header")[0]["library"] == str(tmp_path / "librknnrt.so")
    assert found.of("header")[0]["library_version"] == "2.3.2 (stand-in for tests)"


def test_type_names_and_codes_are_the_same_types(probes: Probes, stand_in: StandIn) -> None:
    arguments = ("--json", "--shape", "1x32x32", "--seconds", "0.001", "--type")
    run = probes.run("mm_peak", *arguments, "int8_int8_int32,2,1", library=stand_in())
    assert [row["parameters"]["type_name"] for row in run.rows] == ["int8_int8_int32", "float16_float16_float32"]
