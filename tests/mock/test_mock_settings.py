# SPDX-License-Identifier: Apache-2.0
"""What can be switched on, and that nothing unknown passes silently."""

from __future__ import annotations

import ctypes as c
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c_probes import mock
from tests.mock.mock_client import BUILD, ROOT, Matmul, load

PROGRAM = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.mock.mock_client import load
load()
print("loaded")
"""


def start(**environment: str) -> subprocess.CompletedProcess[str]:
    names = {f"RKNN_MOCK_{name.upper()}": value for name, value in environment.items()}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **names},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("variable", "value", "parts"),
    [
        ("persona", "rk9999", ["unknown persona", "rk9999", "rk3588", "rv1126b"]),
        ("faults", "no-such-fault", ["unknown fault", "no-such-fault", "c-zero", "fd-leak"]),
        ("faults", "c-zero:colour=1", ["fault c-zero", "colour", "type=0", "after=0"]),
        ("faults", "c-zero:type=many", ["fault c-zero", "type", "many", "no number"]),
        (
            "faults",
            "fail:call=rknn_dance",
            ["fault fail", "rknn_dance", "no entry point", "rknn_mem_sync", "rknn_B_normal_layout_to_native_layout"],
        ),
        ("faults", "c-zero:type=99", ["fault c-zero", "type=99"]),
        ("faults", "c-zero:type=13", ["fault c-zero", "type=13", "valid: 1 to 12, 15"]),
        ("faults", "type-refused:type=0", ["fault type-refused", "type=0", "valid: 1 to 12, 15"]),
        ("faults", "fail:code=0", ["fault fail", "code=0"]),
        ("faults", "fail:n=0", ["fault fail", "n=0", "from 1"]),
        ("faults", "fail:n=1.5", ["fault fail", "n=1.5", "whole"]),
        ("faults", "hang:code=1", ["fault hang", "code", "call=NAME n=1 every=0"]),
        ("faults", "clock-low:factor=0", ["fault clock-low", "factor=0"]),
        ("faults", "thermal:floor=2", ["fault thermal", "floor=2", "to 1"]),
        ("faults", "thermal:floor=nan", ["fault thermal", "nan", "no number"]),
        ("faults", "jitter:percent=-5", ["fault jitter", "percent=-5"]),
        ("faults", "mask-ignored:x=1", ["fault mask-ignored", "none"]),
        ("timing", "warp", ["unknown timing", "warp", "campaign", "off"]),
        ("timing", "campaign,speed=9", ["unknown timing parameter", "speed", "fixed_us"]),
        ("timing", "fixed_us=-1", ["fixed_us", "-1", "at least"]),
        ("timing", "fixed_us=nan", ["fixed_us", "nan"]),
        ("timing", "rate_i8_norm=512:1/128:2", ["rate_i8_norm", "rising M"]),
        ("arithmetic", "approximate", ["arithmetic", "approximate", "exact", "skip"]),
        ("memo", "maybe", ["memo", "maybe", "sync"]),
        ("threads", "0", ["threads", "from 1"]),
        ("threads", "1.5", ["threads", "1.5", "whole"]),
        ("personna", "rk3588", ["unknown variable RKNN_MOCK_PERSONNA", "RKNN_MOCK_PERSONA", "RKNN_MOCK_KERNEL"]),
        ("persona_", "", ["unknown variable RKNN_MOCK_PERSONA_;", "RKNN_MOCK_PERSONA"]),
        ("int16", "clamp", ["int16", "saturate", "wrap"]),
        ("kernel", "abacus", ["abacus"]),
        ("config", "/nonexistent/mock.conf", ["/nonexistent/mock.conf", "No such file"]),
        ("config", "/", ["RKNN_MOCK_CONFIG=/"]),
    ],
)
def test_an_unknown_value_stops_the_first_call_with_one_line_and_exit_code_2(
    variable: str, value: str, parts: list[str]
) -> None:
    done = start(**{variable: value})
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("rknpu-kit mock librknnrt: ")
    assert [part for part in parts if part not in done.stderr] == []


def test_known_values_start() -> None:
    done = start(
        persona="RK3576",
        timing="campaign,fixed_us=50",
        faults="c-zero:type=3, nan:row=1:col=2",
        memo="sync",
        threads="2",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "loaded\n", "")


def configured(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    config = tmp_path / "mock.conf"
    config.write_text(text)
    return start(config=str(config))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("persona = rk3588\ncolour = red\n", ["line 2", "unknown setting", "colour", "persona"]),
        ("just words\n", ["line 1", "not name = value"]),
        ("limits.types = 2,99\n", ["line 1", "limits.types"]),
        ("limits.types = 2;3\n", ["line 1", "commas"]),
        ("limits.k_max_i8 = lots\n", ["line 1", "k_max_i8"]),
        ("limits.refusal_code = 5\n", ["line 1", "refusal_code"]),
        ("limits.contexts = 5000\n", ["line 1", "contexts", "4096"]),
        ("timing.gemm = 2,4096,4096,4096,native\n", ["line 1", "timing.gemm"]),
        ("timing.gemm = 2,4096,4096,4096,native,-1\n", ["line 1", "timing.gemm"]),
        ("timing.rate_i8_norm = fast\n", ["line 1", "rate_i8_norm"]),
        ("faults = bogus\n", ["line 1", "unknown fault"]),
        ("\n# only\n\npersona = rk1\n", ["line 4", "unknown persona"]),
    ],
)
def test_a_bad_configuration_names_the_file_the_line_and_the_cause(tmp_path: Path, text: str, parts: list[str]) -> None:
    done = configured(tmp_path, text)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert [part for part in ["mock.conf", *parts] if part not in done.stderr] == []


def test_a_configuration_file_sets_persona_types_limits_and_faults(tmp_path: Path) -> None:
    config = tmp_path / "mock.conf"
    config.write_text(
        "# a board\npersona = rk3576   # two cores\n"
        "limits.types = 2, 15\nlimits.k_max_i8 = 64\nlimits.n_max = 128\nlimits.refusal_code = -1\n"
        "faults = c-zero\n"
    )
    library = load(config=str(config))
    codes = [Matmul(library, code, 1, 64, 64).code for code in (1, 2, 7, 15)]
    assert codes == [-5, 0, -5, 0]
    assert Matmul(library, 2, 1, 96, 64).code == -1
    assert Matmul(library, 2, 1, 64, 160).code == -1
    with Matmul(library, 2, 1, 64, 64) as matmul:
        assert library.rknn_matmul_set_core_mask(matmul.ctx, 4) == -1
        for name in "AB":
            matmul.bytes(name)[:] = 1
        matmul.bind()
        matmul.run()
        assert not matmul.bytes("C").any()


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    config = tmp_path / "mock.conf"
    config.write_text("persona = rk3562\nint16 = wrap\nfaults = c-zero\n")
    library = load(config=str(config), persona="rk3588", faults="c-untouched")
    with Matmul(library, 10, 1, 64, 64) as matmul:
        matmul.bytes("C")[:] = 7
        matmul.bind()
        matmul.run()
        assert not (matmul.bytes("C") == 0).any()


def test_an_empty_variable_is_as_good_as_none() -> None:
    done = start(persona="", faults="", timing="", config="")
    assert (done.returncode, done.stdout) == (0, "loaded\n")


def test_the_introspection_functions_answer_before_any_setting_is_read() -> None:
    code = (
        "import ctypes, sys\n"
        "library = ctypes.CDLL(sys.argv[1])\n"
        "library.rknn_mock_version.restype = ctypes.c_char_p\n"
        "print(library.rknn_mock_version().decode())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(BUILD / "mock" / "librknnrt.so")],
        env={**os.environ, "RKNN_MOCK_PERSONA": "nonsense"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "librknnrt version: 2.3.2 (mock of rknpu-kit)\n"


def test_memory_limits_count_as_numbers_of_any_form(tmp_path: Path) -> None:
    config = tmp_path / "mock.conf"
    config.write_text("limits.contexts = 2e0\n")
    library = load(config=str(config))
    assert [Matmul(library, 2, 1, 32, 32).code for _ in range(3)] == [0, 0, -1]


@pytest.fixture(scope="module")
def library() -> c.CDLL:
    return load()


def check(library: c.CDLL, text: str) -> str | None:
    """None when the text would do as a configuration file, else the complaint."""
    error = c.create_string_buffer(4096)
    return error.value.decode(errors="replace") if library.rknn_mock_check(text.encode(), error, 4096) else None


KEYS = [
    "persona", "timing", "timing.gemm", "timing.fixed_us", "timing.rate_i8_norm", "timing.share2", "faults", "memo",
    "arithmetic", "int16", "threads", "limits.types", "limits.k_max_i8", "limits.n_max", "limits.contexts", "bogus", "",
]  # fmt: skip
WORDS = [
    "rk3588", "any", "on", "off", "campaign", "campaign,fixed_us=5", "c-zero", "fail:call=rknn_matmul_run:n=2", "exact",
    "1", "0", "sync", "wrap", "2,10", "2,4096,4096,4096,native,0.69", "1:2/3:4", "1e400", "-1", "nan", "=", ":", ",",
]  # fmt: skip
VALUE = st.one_of(st.sampled_from(WORDS), st.text(max_size=20), st.floats().map(str), st.integers().map(str))
LINE = st.one_of(
    st.tuples(st.sampled_from(KEYS), st.sampled_from([" = ", "=", " ", "=="]), VALUE).map("".join), st.text(max_size=30)
)


@given(lines=st.lists(LINE, max_size=8))
@settings(max_examples=400, deadline=None)
def test_any_text_is_taken_or_refused_with_one_line(library: c.CDLL, lines: list[str]) -> None:
    text = "\n".join(line.replace("\0", "") for line in lines)
    complaint = check(library, text)
    if complaint is not None:
        assert complaint.startswith("line ")
        assert complaint.strip()


@given(
    key=st.sampled_from(["timing.fixed_us", "timing.scale", "limits.contexts", "threads", "limits.k_max_i8"]),
    value=st.floats(),
)
@settings(max_examples=150, deadline=None)
def test_a_number_is_taken_exactly_when_it_lies_in_its_range(library: c.CDLL, key: str, value: float) -> None:
    low, high = {"threads": (1, 64), "limits.contexts": (0, 4096), "limits.k_max_i8": (0, 1e9)}.get(
        key, (0, sys.float_info.max)
    )
    fits = low <= value <= high and (key.startswith("timing.") or value.is_integer())
    assert (check(library, f"{key} = {value!r}") is None) == fits


@given(key=st.sampled_from(["limits.contexts", "threads", "limits.k_max_i8"]), value=st.integers(-2, 5000))
@settings(max_examples=100, deadline=None)
def test_a_whole_number_is_taken_exactly_when_it_lies_in_its_range(library: c.CDLL, key: str, value: int) -> None:
    low, high = {"threads": (1, 64), "limits.contexts": (0, 4096)}.get(key, (0, 10**9))
    assert (check(library, f"{key} = {value}") is None) == (low <= value <= high)


def test_the_defaults_of_every_fault_are_taken_when_written_out(library: c.CDLL) -> None:
    faults = mock.faults(BUILD / "mock" / "librknnrt.so")
    written = [f"{fault.name}{':' + fault.parameters if fault.parameters else ''}" for fault in faults]
    assert [(text, check(library, f"faults = {text}")) for text in written if check(library, f"faults = {text}")] == []


def test_the_readme_names_every_fault_with_its_defaults_and_every_variable() -> None:
    readme = (ROOT / "c_probes" / "mock" / "README.md").read_text()
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (?:`(.*?)`)? ?\| (.*) \|$", readme, re.MULTILINE)
    faults = mock.faults(BUILD / "mock" / "librknnrt.so")
    assert rows == [(fault.name, fault.parameters, fault.imitates) for fault in faults]
    said = start(personna="x").stderr.split("valid:")[1].split()
    assert said == list(dict.fromkeys(re.findall(r"^\| `(RKNN_MOCK_[A-Z0-9]+)`", readme, re.MULTILINE)))


@given(names=st.lists(st.sampled_from(["c-zero", "nan", "hang", "fd-leak", "jitter"]), min_size=1, max_size=5))
@settings(max_examples=30, deadline=None)
def test_any_list_of_known_faults_is_taken(library: c.CDLL, names: list[str]) -> None:
    assert check(library, f"faults = {','.join(names)}") is None
    assert "unknown fault" in str(check(library, f"faults = {','.join([*names, 'x'])}"))
