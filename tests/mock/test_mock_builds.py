# SPDX-License-Identifier: Apache-2.0
"""C clients against other builds of the mock: installed, with sanitizers, by another compiler, for Arm."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mock.mock_cases import write_cases
from tests.mock.mock_client import ROOT

CLIENTS = Path(__file__).resolve().parent / "clients"
BUILDS = ROOT / "build" / "test-mock"
WARNINGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread"]


def run(command: Sequence[str | Path], **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-6000:]}"
    return done.stdout


def need(*tools: str) -> None:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def install(name: str, *, cc: str = "cc", flags: str = "") -> Path:
    """Builds and installs the mock; the prefix. Nothing is built again when nothing changed."""
    folder = BUILDS / name
    make = [
        "make",
        "-s",
        "-j2",
        "-C",
        str(ROOT / "c_probes" / "mock"),
        f"BUILD={folder}",
        f"PREFIX={folder / 'prefix'}",
    ]
    run([*make, f"CC={cc}", f"CFLAGS_EXTRA={flags}", "install"])
    return folder / "prefix"


def client(name: str, prefix: Path, *, cc: str = "cc", flags: str = "") -> Path:
    """Compiles one client against an installed mock, as any project would."""
    out = prefix / name
    command = [cc, *WARNINGS, *flags.split(), str(CLIENTS / f"{name}.c"), f"-I{prefix / 'include'}"]
    run([*command, "-o", out, f"-L{prefix / 'lib'}", "-lrknnrt"])
    return out


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cases") / "cases.bin"
    assert write_cases(path) == 13 * 4 * 3
    return path


def libraries(prefix: Path) -> dict[str, str]:
    return {"LD_LIBRARY_PATH": str(prefix / "lib"), "RKNN_MOCK_PERSONA": "any"}


def test_a_client_of_the_public_headers_builds_with_pkg_config_and_runs(cases: Path) -> None:
    need("pkg-config")
    prefix = install("plain")
    assert sorted(path.name for path in (prefix / "include").iterdir()) == [
        "rknn_abi.h",
        "rknn_api.h",
        "rknn_matmul_api.h",
        "rknn_mock.h",
    ]
    words = run(["pkg-config", "--cflags", "--libs", "librknnrt"], PKG_CONFIG_PATH=str(prefix / "lib" / "pkgconfig"))
    program = prefix / "pkg-client"
    run(["cc", *WARNINGS, CLIENTS / "replay_cases.c", "-o", program, *words.split()])
    assert "156 cases, 0 wrong" in run([program, cases], **libraries(prefix))


@pytest.mark.parametrize("standard", ["c++98", "c++11", "c++20"])
def test_the_headers_are_good_cxx(tmp_path: Path, standard: str) -> None:
    need("c++")
    prefix = install("plain")
    source = tmp_path / "client.cpp"
    source.write_text(
        '#include "rknn_api.h"\n#include "rknn_matmul_api.h"\n#include "rknn_mock.h"\n'
        "#include <string>\n"
        "int main() {\n"
        "  rknn_matmul_ctx ctx = 0;\n"
        '  bool names = get_type_string(RKNN_TENSOR_BFLOAT16) == std::string("BF16") &&\n'
        '    get_matmul_type_string(RKNN_INT8_MM_INT4_TO_INT32) == std::string("RKNN_INT8_MM_INT4_TO_INT32") &&\n'
        '    get_matmul_type_string(RKNN_INT8_MM_INT4_TO_FLOAT16) == std::string("UNKNOW");\n'
        "  return names && rknn_matmul_run(ctx) == RKNN_ERR_CTX_INVALID ? 0 : 1;\n"
        "}\n"
    )
    out = tmp_path / "client"
    command = ["c++", f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{prefix / 'include'}"]
    run([*command, source, "-o", out, f"-L{prefix / 'lib'}", "-lrknnrt"])
    run([out], **libraries(prefix))


def test_a_client_finds_a_wrong_result(cases: Path) -> None:
    prefix = install("plain")
    program = client("replay_cases", prefix)
    done = subprocess.run(
        [program, cases],
        env={**os.environ, **libraries(prefix), "RKNN_MOCK_FAULTS": "off-by-one:type=11"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "156 cases, 12 wrong" in done.stdout


def test_clang_builds_the_same_mock_without_a_warning(cases: Path) -> None:
    need("clang")
    prefix = install("clang", cc="clang")
    assert "156 cases, 0 wrong" in run([client("replay_cases", prefix, cc="clang"), cases], **libraries(prefix))


ASAN = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
TSAN = "-O1 -g -fsanitize=thread"


def test_address_and_undefined_behaviour_sanitizers_find_nothing(cases: Path) -> None:
    prefix = install("asan", flags=ASAN)
    options = {**libraries(prefix), "ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
    assert "156 cases, 0 wrong" in run([client("replay_cases", prefix, flags=ASAN), cases], **options)
    assert "0 wrong" in run([client("stress", prefix, flags=ASAN), "30"], **options)
    assert "0 wrong" in run([client("stress", prefix, flags=ASAN), "10"], RKNN_MOCK_TIMING="campaign", **options)


def test_thread_sanitizer_finds_nothing(cases: Path) -> None:
    prefix = install("tsan", flags=TSAN)
    options = {**libraries(prefix), "TSAN_OPTIONS": "halt_on_error=1", "RKNN_MOCK_THREADS": "3"}
    assert "156 cases, 0 wrong" in run([client("replay_cases", prefix, flags=TSAN), cases], **options)
    assert "0 wrong" in run([client("stress", prefix, flags=TSAN), "30"], **options)
    assert "0 wrong" in run([client("stress", prefix, flags=TSAN), "10"], RKNN_MOCK_TIMING="campaign", **options)


def test_a_fork_among_working_threads_leaves_the_child_a_library_that_works() -> None:
    prefix = install("plain")
    program = client("fork_threads", prefix)
    assert "0 wrong" in run([program, "300"], **libraries(prefix))
    assert "0 wrong" in run([program, "60"], RKNN_MOCK_TIMING="fixed_us=20", **libraries(prefix))


def test_the_sanitizer_build_does_see_an_overrun() -> None:
    """The fault that writes past C, with C in memory of the client's own, is caught: the runs above can fail."""
    prefix = install("asan", flags=ASAN)
    program = client("overrun", prefix, flags=ASAN)
    done = subprocess.run(
        [program],
        env={**os.environ, **libraries(prefix), "RKNN_MOCK_FAULTS": "oob-write:bytes=4"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr
    assert run([program], **libraries(prefix)) == "done\n"


LP64 = "context 8 tensor_mem 40 info 64 io_attr 996 quant_params 288"
ILP32 = "context 4 tensor_mem 40 info 64 io_attr 996 quant_params 272"
ARM = [
    ("arm64", "aarch64-linux-gnu", "qemu-aarch64", "cortex-a76", LP64),
    ("arm64", "aarch64-linux-gnu", "qemu-aarch64", "cortex-a72", LP64),
    ("armhf", "arm-linux-gnueabihf", "qemu-arm", "max", ILP32),
]


@pytest.mark.arm
@pytest.mark.parametrize(("name", "triple", "qemu", "cpu", "sizes"), ARM)
def test_the_mock_gives_the_same_bytes_on_arm(
    cases: Path, *, name: str, triple: str, qemu: str, cpu: str, sizes: str
) -> None:
    need(f"{triple}-gcc", qemu)
    cc = f"{triple}-gcc"
    prefix = install(name, cc=cc)
    command = [qemu, "-cpu", cpu, "-L", f"/usr/{triple}", "-E", f"LD_LIBRARY_PATH={prefix / 'lib'}"]
    command += ["-E", "RKNN_MOCK_PERSONA=any"]
    text = run([*command, client("replay_cases", prefix, cc=cc), cases])
    assert "156 cases, 0 wrong" in text
    assert sizes in text
    assert "0 wrong" in run([*command, client("stress", prefix, cc=cc), "6"])
