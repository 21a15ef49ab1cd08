# SPDX-License-Identifier: Apache-2.0
"""The cffi binding against stand-in libraries with one fault each."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c_probes.librknnrt import (
    Disagreement,
    Layout,
    LibraryUnavailable,
    Librknnrt,
    MatmulType,
    MissingSymbol,
    QuantType,
    RknnError,
    UnsupportedByRuntime,
    open_library,
)
from probes.child import call_in_child

I8 = MatmulType.INT8_MM_INT8_TO_INT32
Build = Callable[..., Path]
REPOSITORY = Path(__file__).resolve().parents[2]


class Stand:
    """One opened stand-in, with a look at what it was called with."""

    def __init__(self, path: Path) -> None:
        self.library: Librknnrt = open_library(path)
        self.raw = ctypes.CDLL(str(path))
        self.raw.stand_in_calls.restype = ctypes.c_char_p
        self.raw.stand_in_scale.restype = ctypes.c_float
        self.raw.stand_in_info.restype = ctypes.POINTER(ctypes.c_ubyte * 64)
        self.raw.stand_in_tail.restype = ctypes.POINTER(ctypes.c_ubyte * 40)
        self._seen = len(self.raw.stand_in_calls())

    def calls(self) -> list[str]:
        """Names of the calls since the stand-in was opened."""
        text: bytes = self.raw.stand_in_calls()[self._seen :]
        return text.decode().split()

    def info(self) -> bytes:
        """The 64 bytes of rknn_matmul_info that the last create got."""
        return bytes(self.raw.stand_in_info().contents)


def operands(M: int, K: int, N: int) -> tuple[Any, Any]:
    random = np.random.default_rng(M * K + N)
    a = random.integers(-128, 128, (M, K), dtype=np.int8)
    return a, random.integers(-128, 128, (K, N), dtype=np.int8)


def test_a_matmul_gives_the_product_of_its_operands(build_library: Build) -> None:
    stand = Stand(build_library())
    a, b = operands(5, 64, 32)
    with stand.library.matmul(5, 64, 32, I8, core_mask=1) as matmul:
        matmul.C[...] = 12345
        matmul.load(A=a, B=b)
        matmul.run()
        assert np.array_equal(matmul.result(), a.astype(np.int64) @ b.astype(np.int64))
        assert matmul.C.dtype == np.int32
        assert matmul.C.shape == (5, 32)
        assert matmul.sdk_version() == ("2.3.2", "0.9.8")
    assert stand.library.remarks == []


def test_everything_is_released_in_reverse_order(build_library: Build) -> None:
    stand = Stand(build_library())
    with stand.library.matmul(2, 32, 32, I8) as matmul:
        matmul.run()
    assert stand.calls() == [
        *("create", "create_mem", "bind_A", "create_mem", "bind_B", "create_mem", "bind_C", "run"),
        *("destroy_mem", "destroy_mem", "destroy_mem", "destroy"),
    ]


def test_everything_is_released_after_an_error_in_the_body(build_library: Build) -> None:
    stand = Stand(build_library())
    with pytest.raises(KeyError), stand.library.matmul(2, 32, 32, I8) as matmul:
        assert matmul.A.size == 64
        raise KeyError
    assert stand.calls() == ["create", "create_mem", "destroy_mem", "destroy"]


def test_a_refused_core_mask_releases_the_context_and_is_named(build_library: Build) -> None:
    stand = Stand(build_library())
    with pytest.raises(RknnError, match=r"rknn_matmul_set_core_mask returned -1 \(RKNN_ERR_FAIL\)"):
        stand.library.matmul(2, 32, 32, I8, core_mask=3)
    assert stand.calls() == ["create", "mask", "destroy"]


def test_release_goes_on_after_a_failing_release(build_library: Build) -> None:
    stand = Stand(build_library("FAIL_DESTROY_MEM"))
    matmul = stand.library.matmul(2, 32, 32, I8)
    matmul.bind()
    with pytest.raises(RknnError, match="rknn_destroy_mem returned -1"):
        matmul.close()
    assert stand.calls()[-4:] == ["destroy_mem", "destroy_mem", "destroy_mem", "destroy"]
    matmul.close()
    assert stand.calls().count("destroy") == 1


def test_a_failing_release_does_not_hide_the_error_on_its_way(build_library: Build) -> None:
    stand = Stand(build_library("FAIL_DESTROY_MEM"))
    with pytest.raises(ZeroDivisionError), stand.library.matmul(2, 32, 32, I8) as matmul:
        matmul.bind("A")
        raise ZeroDivisionError
    assert any("rknn_destroy_mem returned -1" in remark for remark in stand.library.remarks)


def test_a_refusal_carries_function_code_name_and_log_lines(
    build_library: Build, capfd: pytest.CaptureFixture[str]
) -> None:
    library = open_library(build_library("REFUSE_CREATE"))
    with pytest.raises(RknnError) as caught:
        library.matmul(2, 32, 32, I8)
    error = caught.value
    assert (error.function, error.code, error.code_name) == (
        "rknn_matmul_create",
        -5,
        "RKNN_ERR_PARAM_INVALID",
    )
    assert sorted(error.log) == [
        "E RKNN: [00:00:00.000] unsupported matmul dtype : 2 in this platform",
        "W RKNN: [00:00:00.000] said on stdout",
    ]
    assert "unsupported matmul dtype" in str(error)
    assert capfd.readouterr() == ("", "")


def test_success_with_an_error_line_is_a_remark(build_library: Build) -> None:
    library = open_library(build_library("LOG_BUT_SUCCEED"))
    with library.matmul(2, 32, 32, I8):
        pass
    assert len(library.remarks) == 1
    assert library.remarks[0].startswith("rknn_matmul_create returned 0 but logged an error")
    assert "failed to submit!" in library.remarks[0]


def test_success_without_a_context_is_an_error_and_no_further_call_is_made(build_library: Build) -> None:
    stand = Stand(build_library("NULL_CONTEXT"))
    with pytest.raises(Disagreement, match="returned 0 but gave no context"):
        stand.library.matmul(2, 32, 32, I8)
    assert stand.calls() == ["create"]
    assert stand.library.remarks


def test_a_runtime_that_writes_past_the_struct_is_found(build_library: Build) -> None:
    stand = Stand(build_library("WRITE_PAST_INFO"))
    with pytest.raises(Disagreement, match="wrote past the structs"):
        stand.library.matmul(2, 32, 32, I8)
    assert stand.calls() == ["create", "destroy"]


def test_no_memory_is_an_error_and_what_was_made_is_released(build_library: Build) -> None:
    stand = Stand(build_library("NO_MEMORY"))
    matmul = stand.library.matmul(2, 32, 32, I8)
    with pytest.raises(RknnError, match=r"rknn_create_mem failed: operand B, 1024 bytes"), matmul:
        matmul.run()
    assert stand.calls() == ["create", "create_mem", "bind_A", "destroy_mem", "destroy"]


def test_a_failing_run_carries_the_submit_line(build_library: Build) -> None:
    library = open_library(build_library("FAIL_RUN"))
    with library.matmul(2, 32, 32, I8) as matmul, pytest.raises(RknnError) as caught:
        matmul.run()
    assert caught.value.code_name == "RKNN_ERR_TIMEOUT"
    assert "int status: 0x200" in caught.value.log[0]


def test_an_absent_symbol_is_an_error_only_when_it_is_called(build_library: Build) -> None:
    stand = Stand(build_library("OLD_RUNTIME", 'VERSION="1.5.2 (mock stand-in)"'))
    assert stand.library.version == (1, 5, 2)
    assert not stand.library.has("rknn_mem_sync")
    a, b = operands(3, 32, 32)
    with stand.library.matmul(3, 32, 32, I8) as matmul:
        matmul.load(A=a, B=b)
        matmul.run()
        assert np.array_equal(matmul.result(), a.astype(np.int64) @ b.astype(np.int64))
        with pytest.raises(MissingSymbol, match=r"rknn_mem_sync is absent in this runtime \(.*1\.5\.2"):
            matmul.sync("A", 1)


def test_the_info_is_zero_but_for_what_was_asked(build_library: Build) -> None:
    stand = Stand(build_library())
    with stand.library.matmul(3, 64, 32, I8):
        pass
    expected = np.array([3, 64, 32, 2], "<i4").tobytes() + bytes(48)
    assert stand.info() == expected
    assert bytes(stand.raw.stand_in_tail().contents) == bytes(40)


def test_every_field_lands_at_its_offset(build_library: Build) -> None:
    stand = Stand(build_library())
    with stand.library.matmul(
        *(3, 64, 32, I8),
        B_layout=Layout.TP_NORM,
        AC_layout=Layout.NATIVE,
        B_quant=QuantType.PER_GROUP_SYM,
        AC_quant=QuantType.PER_LAYER_ASYM,
        iommu_domain=9,
        group_size=32,
    ):
        pass
    assert stand.info()[16:30] == np.array([2, 4, 1, 1], "<i2").tobytes() + b"\x09\0\0\0" + b"\x20\0"
    assert stand.info()[30:] == bytes(34)


@pytest.mark.parametrize(
    ("version", "options", "message"),
    [
        ("1.6.0", {"B_quant": QuantType.PER_CHANNEL_SYM}, "no quantisation type 2"),
        ("1.6.0", {"iommu_domain": 1}, "no IOMMU domains"),
        ("1.6.0", {"B_layout": Layout.TP_NORM}, "no B_layout 2"),
        ("2.0.0b0", {"B_quant": QuantType.PER_GROUP_SYM}, "no quantisation type 4"),
        ("2.0.0b0", {"group_size": 32}, "no group_size"),
    ],
)
def test_a_runtime_is_never_asked_for_what_it_has_no_field_for(
    build_library: Build, version: str, options: dict[str, int], message: str
) -> None:
    stand = Stand(build_library(f'VERSION="{version} (mock stand-in)"'))
    with pytest.raises(UnsupportedByRuntime, match=message):
        stand.library.matmul(2, 32, 32, I8, **options)
    assert stand.calls() == []


def test_per_channel_is_1_to_runtime_2_0_and_2_to_later_ones(build_library: Build) -> None:
    for version, number in (("2.0.0b0", 1), ("2.1.0", 2), ("2.3.2", 2)):
        stand = Stand(build_library(f'VERSION="{version} (mock stand-in)"'))
        with stand.library.matmul(2, 32, 32, I8, B_quant=QuantType.PER_CHANNEL_SYM):
            pass
        assert stand.info()[18] == number


def test_sizes_that_no_field_can_hold_are_refused_before_the_call(build_library: Build) -> None:
    stand = Stand(build_library())
    with pytest.raises(ValueError, match="K = 2147483648 does not fit"):
        stand.library.matmul(2, 1 << 31, 32, I8)
    assert stand.calls() == []


def test_dynamic_shapes_share_one_context(build_library: Build) -> None:
    stand = Stand(build_library())
    with stand.library.matmul_dynamic([(1, 32, 32), (7, 32, 32), (4, 32, 32)], I8) as matmul:
        assert np.frombuffer(stand.info()[:12], "<i4").tolist() == [7, 32, 32]
        for M in (7, 4, 1):
            matmul.set_shape(M, 32, 32)
            a, b = operands(M, 32, 32)
            matmul.load(A=a, B=b)
            matmul.run()
            assert np.array_equal(matmul.result(), a.astype(np.int64) @ b.astype(np.int64))
        with pytest.raises(ValueError, match="2x32x32 is none of those"):
            matmul.set_shape(2, 32, 32)
    assert stand.calls().count("create_mem") == 3


def test_dynamic_shapes_are_absent_before_runtime_2(build_library: Build) -> None:
    library = open_library(build_library("OLD_RUNTIME", 'VERSION="1.5.2 (mock stand-in)"'))
    with pytest.raises(UnsupportedByRuntime, match=r"Runtime 1\.x has no dynamic shapes"):
        library.matmul_dynamic([(1, 32, 32)], I8)


def test_quant_params_reach_the_library(build_library: Build) -> None:
    stand = Stand(build_library())
    with stand.library.matmul(2, 32, 32, I8, B_quant=QuantType.PER_CHANNEL_SYM) as matmul:
        matmul.set_quant_params("B", np.linspace(0.0, 0.75, 32))
        assert stand.raw.stand_in_scale() == 0.75
        assert matmul.get_quant_params("B") == 0.5
        with pytest.raises(RknnError, match="RKNN_ERR_PARAM_INVALID"):
            matmul.set_quant_params("A", [1.0])


def test_conversion_in_place_is_refused(build_library: Build) -> None:
    stand = Stand(build_library())
    _, b = operands(1, 32, 64)
    with stand.library.matmul(1, 32, 64, I8, B_layout=Layout.NATIVE) as matmul:
        for target in (b, b[::-1], b.reshape(-1)):
            with pytest.raises(ValueError, match=r"in place|contiguous"):
                matmul.convert_B(b, into=target)
        assert "convert" not in stand.calls()
        assert matmul.convert_B(b).tobytes() == b.tobytes()


def test_the_converter_of_2_0_is_called_with_seven_arguments(build_library: Build) -> None:
    library = open_library(build_library("CONVERTER_7", 'VERSION="2.0.0b0 (mock stand-in)"'))
    with library.matmul(1, 32, 64, I8, B_layout=Layout.NATIVE) as matmul:
        converted = matmul.convert_B(np.zeros((32, 64), np.int8))
        assert converted[:20].view("<i4").tolist() == [32, 64, 32, 32, 2]
    flat = open_library(build_library("CONVERTER_7", "FLAT_NATIVE_B", 'VERSION="2.0.0b0 (mock stand-in)"'))
    complaint = pytest.raises(Disagreement, match=r"native B the dimensions \(32, 64\)")
    with flat.matmul(1, 32, 64, I8, B_layout=Layout.NATIVE) as matmul, complaint:
        matmul.convert_B(np.zeros((32, 64), np.int8))


def test_a_wrong_dtype_or_size_is_refused_before_it_is_copied(build_library: Build) -> None:
    library = open_library(build_library())
    with library.matmul(2, 32, 32, I8) as matmul:
        with pytest.raises(ValueError, match="A needs 64 elements of int8, not 64 of float32"):
            matmul.load(A=np.zeros((2, 32), np.float32))
        with pytest.raises(ValueError, match="B needs 1024 elements of int8, not 32"):
            matmul.load(B=np.zeros(32, np.int8))


def test_a_closed_context_gives_no_memory(build_library: Build) -> None:
    library = open_library(build_library())
    with library.matmul(2, 32, 32, I8) as matmul:
        pass
    for use in (lambda: matmul.A, matmul.run, matmul.bind):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_captures_of_many_threads_keep_their_lines_apart(build_library: Build) -> None:
    library = open_library(build_library("REFUSE_CREATE"))
    logs: list[tuple[str, ...]] = []

    def refuse(kind: int) -> None:
        for _ in range(20):
            with pytest.raises(RknnError) as caught:
                library.matmul(2, 32, 32, kind)
            logs.append(tuple(line for line in caught.value.log if f": {kind} in" in line))

    threads = [threading.Thread(target=refuse, args=(kind,)) for kind in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(logs) == 100
    assert all(len(lines) == 1 for lines in logs)


def open_descriptors() -> list[str]:
    return sorted(entry.name for entry in Path("/proc/self/fd").iterdir())


def test_descriptors_are_the_same_before_and_after_a_call(build_library: Build) -> None:
    library = open_library(build_library("REFUSE_CREATE"))
    before = (os.fstat(1), os.fstat(2), open_descriptors())
    for _ in range(50):
        with pytest.raises(RknnError):
            library.matmul(2, 32, 32, I8)
    assert (os.fstat(1), os.fstat(2), open_descriptors()) == before


def test_the_log_of_a_call_that_crashes_reaches_the_parent(build_library: Build) -> None:
    crash = str(build_library("CRASH_IN_CREATE"))
    result = call_in_child("tests.binding.mock_targets:create_only", crash, deadline_s=60)
    assert result.child.signal_name == "SIGSEGV"
    assert result.log == ("E RKNN: [00:00:00.000] about to crash",)
    assert "Last step: rknn_matmul_create. The library said: E RKNN" in result.sentence


def test_a_call_that_does_not_crash_leaves_no_log(build_library: Build) -> None:
    for defines in ((), ("LOG_BUT_SUCCEED",), ("REFUSE_CREATE",)):
        path = str(build_library(*defines))
        assert call_in_child("tests.binding.mock_targets:create_only", path, deadline_s=60).log == ()


def test_the_log_of_a_crash_stays_in_the_file(build_library: Build, tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = (
        "import sys; from pathlib import Path; from c_probes.librknnrt import open_library\n"
        "open_library(sys.argv[1], log_file=Path(sys.argv[2])).matmul(2, 32, 32, 2)"
    )
    crash = build_library("CRASH_IN_CREATE")
    done = subprocess.run(
        [sys.executable, "-c", code, str(crash), str(log)],
        cwd=REPOSITORY, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == -11
    assert "about to crash" in log.read_text()


def test_a_text_file_is_no_library(tmp_path: Path) -> None:
    fake = tmp_path / "librknnrt.so"
    fake.write_text("not a library\n")
    with pytest.raises(LibraryUnavailable, match="cannot be loaded") as caught:
        open_library(fake, force=True)
    assert caught.value.kind == "not-a-library"
    assert str(caught.value).endswith("file too short.")  # the loader's words; cffi's search for other names is no help


def test_a_library_of_another_machine_is_told_before_it_is_loaded(build_library: Build) -> None:
    foreign = build_library(compiler="aarch64-linux-gnu-gcc" if os.uname().machine == "x86_64" else "gcc-12")
    with pytest.raises(LibraryUnavailable, match="is for aarch64") as caught:
        open_library(foreign)
    assert caught.value.kind == "wrong-machine"


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LibraryUnavailable, match=r"nowhere\.so cannot be used: .*No such file") as caught:
        open_library(tmp_path / "nowhere.so")
    assert caught.value.kind == "not-found"


def test_a_vendor_runtime_is_refused_without_a_device(build_library: Build) -> None:
    vendor_like = build_library('VERSION="2.3.2 (429f97ae6b@2025-04-09T09:09:27)"')
    with pytest.raises(LibraryUnavailable, match="no NPU device node was found") as caught:
        open_library(vendor_like)
    assert caught.value.kind == "refused"
    assert str(vendor_like) not in Path("/proc/self/maps").read_text()
    assert open_library(vendor_like, force=True).is_mock is False
    assert open_library(vendor_like, device_present=True).version == (2, 3, 2)


def test_a_vendor_runtime_that_the_loader_prefers_is_not_loaded_to_find_that_out(build_library: Build) -> None:
    """LD_LIBRARY_PATH set after the start is not the loader's: it would take the other file."""
    mock, vendor_like = build_library(), build_library('VERSION="2.3.2 (429f97ae6b@2025-04-09T09:09:27)"')
    code = (
        "import os; from pathlib import Path; from c_probes.librknnrt import open_library;"
        f"os.environ['LD_LIBRARY_PATH'] = {str(mock.parent)!r};"
        f"print(open_library().path, {str(vendor_like)!r} in Path('/proc/self/maps').read_text())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "LD_LIBRARY_PATH": str(vendor_like.parent)},
    )  # fmt: skip
    assert done.stdout.strip() == f"{mock} False", done.stderr


def test_a_library_without_matmul_functions_opens_and_lacks_them(build_library: Build, tmp_path: Path) -> None:
    source = tmp_path / "empty.c"
    source.write_text('const char t[] = "librknnrt version: 1.3.0 (mock)"; int rknn_init(void) { return t[0]; }\n')
    library = open_library(build_library(source=source))
    assert not library.has("rknn_matmul_create")
    with pytest.raises(MissingSymbol, match="rknn_matmul_create is absent"):
        library.matmul(2, 32, 32, I8)


def test_the_file_that_the_loader_took_is_named_not_the_link(build_library: Build, tmp_path: Path) -> None:
    link = tmp_path / "librknnrt.so"
    link.symlink_to(build_library())
    assert open_library(link).path == str(build_library())


def test_the_loader_path_is_searched_when_no_file_is_named(build_library: Build, tmp_path: Path) -> None:
    first, second = build_library(), build_library("OLD_RUNTIME", 'VERSION="1.5.2 (mock stand-in)"')
    code = (
        "from c_probes.librknnrt import open_library; library = open_library();"
        "print(library.path, library.version, [copy.path for copy in library.shadowed])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True,
        env={**os.environ, "LD_LIBRARY_PATH": f"{tmp_path}:{first.parent}:{second.parent}"},
    )  # fmt: skip
    assert done.stdout.strip() == f"{first} (2, 3, 2) ['{second}']"


@pytest.mark.parametrize(("package", "kind"), [("cffi", "cffi-missing"), ("numpy", "numpy-missing")])
def test_an_absent_package_costs_one_clear_sentence(build_library: Build, package: str, kind: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from c_probes.librknnrt import LibraryUnavailable, open_library\n"
        "try: open_library(sys.argv[1]).matmul(2, 32, 32, 2)\n"
        "except LibraryUnavailable as error: print(error.kind, error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(build_library())],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.startswith(kind)
    assert f"Python package {package}" in done.stdout
