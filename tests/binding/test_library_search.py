# SPDX-License-Identifier: Apache-2.0
"""Which librknnrt dlopen takes, which ones it hides, and what each file says: on fake roots, nothing
loaded.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c_probes.ld_cache import CacheEntry, CacheError, parse_cache, parse_conf
from c_probes.library_file import LibraryFile, describe_library, parse_version, says_mock
from c_probes.library_search import find_libraries
from c_probes.rooted import resolve_in_root
from tests.binding.craft import Symbol, ld_cache, shared_library

AARCH64, ARM = 0x0A03, 0x0903


def librknnrt(version: str, *, machine: int = 183, bits: int = 64, name: str = "librknnrt") -> bytes:
    """A library file that says ``version`` and exports one function."""
    text = f"\0librknnrt version: {version}\0".encode()
    return shared_library([Symbol("rknn_init")], machine=machine, bits=bits, soname=f"{name}.so", data=text)


def make(root: Path, files: dict[str, bytes | str]) -> Path:
    """Writes ``path: bytes``, or a symbolic link for ``path: str``."""
    for path, content in files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            target.symlink_to(content)
        else:
            target.write_bytes(content)
    return root


def on_path(libraries: list[LibraryFile]) -> list[str]:
    return [library.path for library in libraries if library.on_loader_path]


def taken(libraries: list[LibraryFile]) -> str | None:
    return next((library.path for library in libraries if library.taken), None)


def test_an_old_copy_in_usr_lib_shadows_the_new_one_and_both_are_listed(tmp_path: Path) -> None:
    root = make(
        tmp_path,
        {
            "/etc/ld.so.conf": b"include /etc/ld.so.conf.d/*.conf\n",
            "/etc/ld.so.conf.d/libc.conf": b"# libc default\n/usr/local/lib\n",
            "/etc/ld.so.cache": ld_cache([(AARCH64, "librknnrt.so", "/usr/lib/librknnrt.so")]),
            "/usr/lib/librknnrt.so": librknnrt("1.4.0 (3b4520e4f@2022-09-05T20:52:35)"),
            "/usr/local/lib/librknnrt.so": librknnrt("2.3.2 (429f97ae6b@2025-04-09T09:09:27)"),
        },
    )
    old, new = find_libraries(root, machine="aarch64")
    assert (old.path, old.version, old.taken) == ("/usr/lib/librknnrt.so", (1, 4, 0), True)
    assert (new.path, new.version, new.on_loader_path) == ("/usr/local/lib/librknnrt.so", (2, 3, 2), False)
    assert "run ldconfig" in new.found_by


def test_two_copies_in_the_cache_go_by_its_order(tmp_path: Path) -> None:
    root = make(
        tmp_path,
        {
            "/etc/ld.so.cache": ld_cache(
                [
                    (AARCH64, "libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6"),
                    (AARCH64, "librknnrt.so", "/usr/local/lib/librknnrt.so"),
                    (AARCH64, "librknnrt.so", "/usr/lib/librknnrt.so"),
                ]
            ),
            "/usr/lib/librknnrt.so": librknnrt("1.4.0 (a)"),
            "/usr/local/lib/librknnrt.so": librknnrt("2.3.2 (b)"),
        },
    )
    libraries = find_libraries(root, machine="aarch64")
    assert on_path(libraries) == ["/usr/local/lib/librknnrt.so", "/usr/lib/librknnrt.so"]
    assert taken(libraries) == "/usr/local/lib/librknnrt.so"
    assert libraries[1].shadowed_by == "/usr/local/lib/librknnrt.so"


def test_ld_library_path_wins_over_the_cache(tmp_path: Path) -> None:
    root = make(
        tmp_path,
        {
            "/etc/ld.so.cache": ld_cache([(AARCH64, "librknnrt.so", "/usr/lib/librknnrt.so")]),
            "/usr/lib/librknnrt.so": librknnrt("2.3.2 (a)"),
            "/opt/mine/librknnrt.so": librknnrt("2.0.0b0 (c)"),
        },
    )
    libraries = find_libraries(root, {"LD_LIBRARY_PATH": "relative::/nowhere:/opt/mine"}, machine="aarch64")
    assert on_path(libraries) == ["/opt/mine/librknnrt.so", "/usr/lib/librknnrt.so"]
    assert libraries[0].version == (2, 0, 0)
    assert libraries[0].found_by == "LD_LIBRARY_PATH"


def test_a_stale_cache_entry_is_passed_over(tmp_path: Path) -> None:
    root = make(
        tmp_path,
        {
            "/etc/ld.so.cache": ld_cache([(AARCH64, "librknnrt.so", "/gone/librknnrt.so")]),
            "/usr/lib/aarch64-linux-gnu/librknnrt.so": librknnrt("2.3.2 (a)"),
        },
    )
    assert taken(find_libraries(root, machine="aarch64")) == "/usr/lib/aarch64-linux-gnu/librknnrt.so"


@pytest.mark.parametrize(
    "directory",
    ["/lib", "/usr/lib", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64"],
)
def test_the_loader_own_directories_are_searched_without_a_cache(tmp_path: Path, directory: str) -> None:
    root = make(tmp_path, {f"{directory}/librknnrt.so": librknnrt("2.3.2 (a)")})
    assert taken(find_libraries(root, machine="aarch64")) == f"{directory}/librknnrt.so"


@pytest.mark.parametrize(
    "directory",
    ["/usr/local/lib", "/oem/usr/lib", "/vendor/lib64", "/usr/lib/python3/dist-packages/rknnlite/api"],
)
def test_a_copy_that_dlopen_does_not_find_is_listed_off_the_path(tmp_path: Path, directory: str) -> None:
    root = make(tmp_path, {f"{directory}/librknnrt.so": librknnrt("2.3.2 (a)")})
    (library,) = find_libraries(root, machine="aarch64")
    assert (library.path, library.on_loader_path) == (f"{directory}/librknnrt.so", False)
    assert (library.taken, library.shadowed_by) == (False, None)


def test_a_32_bit_copy_on_a_64_bit_board_is_told_and_passed_over(tmp_path: Path) -> None:
    root = make(
        tmp_path,
        {
            "/usr/lib/arm-linux-gnueabihf/librknnrt.so": librknnrt("1.6.0 (a)", machine=40, bits=32),
            "/usr/lib/librknnrt.so": librknnrt("2.3.2 (b)"),
        },
    )
    libraries = find_libraries(root, machine="aarch64")
    assert taken(libraries) == "/usr/lib/librknnrt.so"
    assert [(library.elf_class, library.elf_machine) for library in libraries] == [(32, "arm"), (64, "aarch64")]
    assert taken(find_libraries(root, machine="armv7l")) == "/usr/lib/arm-linux-gnueabihf/librknnrt.so"


def test_links_to_one_file_count_once(tmp_path: Path) -> None:
    root = make(
        tmp_path,
        {
            "/usr/lib/librknnrt.so.2": librknnrt("2.3.2 (a)"),
            "/usr/lib/librknnrt.so": "librknnrt.so.2",
            "/lib": "usr/lib",
            "/usr/local/lib/librknnrt.so": "/usr/lib/librknnrt.so",
        },
    )
    (library,) = find_libraries(root, machine="aarch64")
    assert (library.path, library.real_path) == ("/lib/librknnrt.so", "/usr/lib/librknnrt.so.2")


def test_an_absolute_link_starts_again_at_the_root(tmp_path: Path) -> None:
    root = make(tmp_path, {"/opt/npu/librknnrt.so": librknnrt("2.3.2 (a)"), "/usr/lib": "/opt/npu"})
    (library,) = find_libraries(root, machine="aarch64")
    assert (library.path, library.real_path) == ("/usr/lib/librknnrt.so", "/opt/npu/librknnrt.so")


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    root = make(tmp_path, {"/usr/lib/librknnrt.so": "/usr/lib/other.so", "/usr/lib/other.so": "librknnrt.so"})
    assert find_libraries(root) == []


def test_links_never_lead_out_of_the_root(tmp_path: Path) -> None:
    outside = make(tmp_path / "outside", {"/librknnrt.so": librknnrt("9.9.9 (outside)")})
    root = make(
        tmp_path / "root",
        {
            "/usr/lib/librknnrt.so": f"../../../../../../..{outside}/librknnrt.so",
            "/usr/lib64/librknnrt.so": f"{outside}/librknnrt.so",
            "/lib64/librknnrt.so": "librknnrt.so",
        },
    )
    assert find_libraries(root, machine="aarch64") == []
    assert resolve_in_root(root, "/../../../etc") is None


def test_every_fact_of_a_file_is_read_without_loading_it(tmp_path: Path) -> None:
    data = librknnrt("2.3.2 (429f97ae6b@2025-04-09T09:09:27)")
    library = describe_library(make(tmp_path, {"/librknnrt.so": data}) / "librknnrt.so")
    assert library.version_text == "librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)"
    assert library.build == "429f97ae6b@2025-04-09T09:09:27"
    assert (library.version, library.is_mock, library.size) == ((2, 3, 2), False, len(data))
    assert library.sha256 == hashlib.sha256(data).hexdigest()
    assert (library.symbols, library.soname, library.problem) == (("rknn_init",), "librknnrt.so", None)


def test_a_mock_is_known_by_its_version_text() -> None:
    assert says_mock("librknnrt version: 2.3.2 (mock of rknpu-kit)")
    assert not says_mock("librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)")
    assert not says_mock("librknnrt version: 2.3.2 (mockery@2025)")
    assert not says_mock("librknnrt version: mock 2.3.2")


def test_rkllm_is_a_kind_of_its_own_with_its_own_version(tmp_path: Path) -> None:
    both = b"\0librknnrt version: 2.3.0 (x)\0rkllm-runtime version: 1.2.1b1\0librknnrt version: %s\0"
    root = make(
        tmp_path,
        {
            "/usr/lib/librkllmrt.so": shared_library([Symbol("rkllm_init")], data=both),
            "/usr/lib/librknnrt.so": librknnrt("2.3.2 (a)"),
        },
    )
    runtime, llm = find_libraries(root, machine="aarch64")
    assert (runtime.kind, runtime.taken, llm.kind, llm.taken) == ("librknnrt", True, "librkllmrt", True)
    assert llm.version == (1, 2, 1)
    assert llm.symbols == ("rkllm_init",)


@pytest.mark.parametrize("place", [0, (1 << 20) - 40, (1 << 20) - 1, 1 << 20, (2 << 20) - 12])
@pytest.mark.parametrize("tail", [0, 7, 1 << 20])
def test_the_version_is_found_wherever_it_lies_in_a_large_file(tmp_path: Path, place: int, tail: int) -> None:
    file = tmp_path / "librknnrt.so"
    data = bytes(place) + b"librknnrt version: 2.3.2 (abc@2025)" + bytes(tail)
    file.write_bytes(data)
    library = describe_library(file)
    assert library.version_text == "librknnrt version: 2.3.2 (abc@2025)"
    assert library.sha256 == hashlib.sha256(data).hexdigest()
    assert library.problem == "no ELF file" if place else library.problem


def test_a_format_string_is_no_version(tmp_path: Path) -> None:
    file = tmp_path / "librknnrt.so"
    file.write_bytes(b"librknnrt version: %s (%s@%s)\0librknnrt version: \0librknnrt version: 2.1.0 (d)\0")
    assert describe_library(file).version == (2, 1, 0)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)", (2, 3, 2)),
        ("librknnrt version: 2.0.0-beta0 (x)", (2, 0, 0)),
        ("librknnrt version: 2.4.2a2 (x)", (2, 4, 2)),
        ("rkllm-runtime version: 1.2.0", (1, 2, 0)),
        ("librknnrt version: unknown", None),
        ("librknnrt version: 99999999999999999999.1", None),
    ],
)
def test_versions_are_read_as_numbers(text: str, version: tuple[int, ...] | None) -> None:
    assert parse_version(text) == version


def test_what_is_no_file_is_told_and_does_not_hold_the_search(tmp_path: Path) -> None:
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "lib").mkdir()
    os.mkfifo(tmp_path / "usr/lib/librknnrt.so")
    (tmp_path / "lib/librknnrt.so").mkdir()
    problems = {library.path: library.problem for library in find_libraries(tmp_path)}
    assert problems == {
        "/lib/librknnrt.so": "not a regular file",
        "/usr/lib/librknnrt.so": "not a regular file",
    }


def test_a_huge_sparse_file_is_named_and_not_read(tmp_path: Path) -> None:
    file = tmp_path / "librknnrt.so"
    with file.open("wb") as stream:
        stream.truncate(1 << 40)
    library = describe_library(file)
    assert (library.size, library.sha256) == (1 << 40, None)
    assert library.problem is not None
    assert "larger than 512 MiB" in library.problem


def test_a_cache_is_read_with_and_without_the_old_table_in_front() -> None:
    entries = [(AARCH64, "librknnrt.so", "/usr/lib/librknnrt.so"), (ARM, "librknnrt.so", "/lib/librknnrt.so")]
    expected = [
        CacheEntry("librknnrt.so", "/usr/lib/librknnrt.so", "aarch64"),
        CacheEntry("librknnrt.so", "/lib/librknnrt.so", "arm"),
    ]
    for old in (None, 0, 1, 2, 7):
        assert list(parse_cache(ld_cache(entries, old_entries=old))) == expected
    assert list(parse_cache(ld_cache(entries, order=">"))) == expected


def test_the_real_cache_of_this_machine_reads_as_ldconfig_prints_it() -> None:
    cache, tool = Path("/etc/ld.so.cache"), Path("/sbin/ldconfig")
    if not cache.exists() or not tool.exists():
        pytest.skip("this machine has no loader cache")
    printed = subprocess.run([tool, "-p"], capture_output=True, text=True, check=True, timeout=60).stdout
    listed = [line.strip() for line in printed.splitlines() if "=>" in line]
    entries = list(parse_cache(cache.read_bytes()))
    assert [entry.path for entry in entries] == [line.split(" => ")[1] for line in listed]
    assert [entry.soname for entry in entries] == [line.split(" (")[0] for line in listed]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"ld.so-1.7.0\0",
        b"glibc-ld.so.cache1.1",
        b"glibc-ld.so.cache1.2" + bytes(100),
        ld_cache([(AARCH64, "a", "/a")], count=1 << 31),
        ld_cache([(AARCH64, "a", "/a")], old_entries=3)[:60],
    ],
)
def test_a_broken_cache_is_refused(data: bytes) -> None:
    with pytest.raises(CacheError):
        list(parse_cache(data))


def test_a_broken_cache_does_not_end_the_search(tmp_path: Path) -> None:
    root = make(
        tmp_path,
        {
            "/etc/ld.so.cache": b"glibc-ld.so.cache1.1" + b"\xff" * 30,
            "/etc/ld.so.conf": b"/opt/npu\n",
            "/opt/npu/librknnrt.so": librknnrt("2.3.2 (a)"),
        },
    )
    assert taken(find_libraries(root, machine="aarch64")) == "/opt/npu/librknnrt.so"


@settings(max_examples=300, deadline=None)
@given(changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=10), cut=st.integers(0, 400))
def test_a_spoiled_cache_is_read_or_refused_and_nothing_else(changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(ld_cache([(AARCH64, f"lib{i}.so", f"/usr/lib/lib{i}.so") for i in range(4)], old_entries=2))
    for place, value in changes:
        data[place % len(data)] = value
    try:
        entries = list(parse_cache(bytes(data[: max(0, len(data) - cut)])))
    except CacheError:
        return
    assert all(entry.soname and entry.path for entry in entries)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_refused_as_a_cache(noise: bytes) -> None:
    for start in (b"", b"glibc-ld.so.cache1.1", b"ld.so-1.7.0\0"):
        try:
            list(parse_cache(start + noise))
        except CacheError:
            continue


def test_a_conf_is_read_as_ldconfig_reads_it() -> None:
    text = (
        "# comment\ninclude ld.so.conf.d/*.conf x.conf\n/a /b:/c,/d # more\nhwcap 1 nosegneg\n/e=libc6\n/f/\nrelative\n"
    )
    assert list(parse_conf(text)) == [
        ("include", "ld.so.conf.d/*.conf"),
        ("include", "x.conf"),
        *(("dir", directory) for directory in ("/a", "/b", "/c", "/d", "/e", "/f")),
    ]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_as_a_conf(text: str) -> None:
    assert all(kind == "include" or value.startswith("/") for kind, value in parse_conf(text))


def test_confs_that_include_each_other_end(tmp_path: Path) -> None:
    root = make(
        tmp_path,
        {
            "/etc/ld.so.conf": b"include /etc/ld.so.conf /etc/a.conf ../../../../etc/b.conf\n/one\n",
            "/etc/a.conf": b"include /etc/ld.so.conf\n/two\n",
            "/etc/b.conf": b"/three\n",
            "/three/librknnrt.so": librknnrt("2.3.2 (a)"),
        },
    )
    assert taken(find_libraries(root)) == "/three/librknnrt.so"


@settings(max_examples=100, deadline=None)
@given(noise=st.binary(max_size=2000))
def test_any_file_of_the_name_is_described(noise: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.getbasetemp() / "noise-librknnrt.so"
    file.write_bytes(noise)
    library = describe_library(file)
    assert library.sha256 == hashlib.sha256(noise).hexdigest()


def test_the_one_called_taken_is_the_one_that_dlopen_takes(build_library: Callable[..., Path], tmp_path: Path) -> None:
    """Against the real loader, in a fresh process: a text file is no obstacle where the loader would not
    stop.
    """
    first, second = build_library(), build_library("NULL_CONTEXT")
    foreign = tmp_path / "foreign"
    make(foreign, {"/librknnrt.so": shared_library(machine=0x1234)})
    code = (
        "import ctypes; ctypes.CDLL('librknnrt.so');"
        "print(*{l.split(maxsplit=5)[5].strip() for l in open('/proc/self/maps') if 'librknnrt' in l})"
    )
    path = f"{foreign}:{first.parent}:{second.parent}"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "LD_LIBRARY_PATH": path},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    libraries = find_libraries(env={"LD_LIBRARY_PATH": path})
    assert taken(libraries) == done.stdout.strip() == str(first)
    assert [library.shadowed_by for library in libraries if library.path == str(second)] == [str(first)]


def test_the_search_writes_nothing_and_maps_no_library(build_library: Callable[..., Path], tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    root = make(tmp_path / "root", {"/usr/lib/librknnrt.so": build_library().read_bytes()})
    trace = tmp_path / "trace"
    code = (
        "import sys; from pathlib import Path; from c_probes.library_search import find_libraries\n"
        "Path('/begin').exists(); print(len(find_libraries(Path(sys.argv[1])))); Path('/end').exists()"
    )
    done = subprocess.run(
        [strace, "-f", "-o", str(trace), sys.executable, "-B", "-c", code, str(root)],
        cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        pytest.skip("strace may not trace here")
    assert done.stdout.strip() == "1"
    calls = trace.read_text().partition('"/begin"')[2].partition('"/end"')[0]
    assert calls.count("librknnrt.so") >= 2
    assert "PROT_EXEC" not in calls
    for word in ("O_WRONLY", "O_RDWR", "O_CREAT", "mkdir", "mknod", "unlink", "rename", "ioctl"):
        assert word not in calls, word
