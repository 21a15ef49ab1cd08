# SPDX-License-Identifier: Apache-2.0
"""The ELF reader: what it reads from right files, and that wrong ones cost bounded time and no crash."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c_probes.elf import ElfError, ElfFacts, read_elf
from tests.binding.craft import Symbol, shared_library

PREFIXES = ("rknn_",)
SYMBOLS = (
    Symbol("rknn_init"),
    Symbol("rknn_matmul_create", bind=2),
    Symbol("rknn_hidden", bind=0),
    Symbol("rknn_wanted_from_elsewhere", section=0),
    Symbol("strlen"),
)


def read(data: bytes) -> ElfFacts:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return read_elf(file.fileno(), PREFIXES)


@pytest.mark.parametrize("find_by", ["sections", "hash", "gnu_hash"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("bits", "machine", "name"), [(64, 183, "aarch64"), (32, 40, "arm"), (64, 62, "x86_64")])
def test_exports_are_read_whatever_the_class_order_and_table(
    bits: int, machine: int, name: str, order: str, find_by: str
) -> None:
    library = shared_library(SYMBOLS, bits=bits, machine=machine, order=order, find_by=find_by)
    assert read(library) == ElfFacts(bits, name, "librknnrt.so", ("rknn_init", "rknn_matmul_create"))


def test_a_library_that_gives_no_length_for_its_symbols_has_none() -> None:
    assert read(shared_library(SYMBOLS, find_by="nothing")).symbols == ()


def test_an_unknown_machine_keeps_its_number() -> None:
    assert read(shared_library(machine=0x1234)).machine == "machine 0x1234"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "too short"),
        (b"#!/bin/sh\n" + bytes(100), "no ELF file"),
        (shared_library(kind=2), "no shared library"),
        (b"\x7fELF" + b"\x07" * 100, "no ELF file"),
    ],
)
def test_what_is_no_shared_library_is_refused_with_a_reason(data: bytes, message: str) -> None:
    with pytest.raises(ElfError, match=message):
        read(data)


@pytest.mark.parametrize("claim", [1 << 31, 1 << 40, (1 << 63) - 1])
def test_a_string_table_that_claims_more_than_the_file_is_refused(claim: int) -> None:
    good = shared_library(SYMBOLS)
    size_tag = good.find(struct.pack("<Q", 10))
    assert size_tag > 0
    bad = bytearray(good)
    struct.pack_into("<Q", bad, size_tag + 8, claim)
    with pytest.raises(ElfError, match="outside the file or is too large"):
        read(bytes(bad))


def test_a_symbol_count_that_the_file_cannot_hold_is_refused() -> None:
    bad = bytearray(shared_library(SYMBOLS, find_by="hash"))
    at = bytes(bad).find(struct.pack("<III", 1, len(SYMBOLS) + 1, 0))
    struct.pack_into("<I", bad, at + 4, 0xFFFFFFFF)
    with pytest.raises(ElfError):
        read(bytes(bad))


@settings(max_examples=400, deadline=None)
@given(
    find_by=st.sampled_from(["sections", "hash", "gnu_hash"]),
    bits=st.sampled_from([32, 64]),
    changes=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=12),
    cut=st.integers(0, 2000),
)
def test_a_spoiled_file_is_read_or_refused_and_nothing_else(
    find_by: str, bits: int, changes: list[tuple[int, int]], cut: int
) -> None:
    data = bytearray(shared_library(SYMBOLS, bits=bits, find_by=find_by))
    for place, value in changes:
        data[place % len(data)] = value
    try:
        facts = read(bytes(data[: len(data) - cut] if cut < len(data) else data))
    except ElfError:
        return
    assert all(name.startswith(PREFIXES) for name in facts.symbols)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes_behind_a_right_ident_are_read_or_refused(noise: bytes) -> None:
    for start in (b"\x7fELF\x02\x01\x01", b"\x7fELF\x01\x02\x01"):
        try:
            read(start + noise)
        except ElfError:
            continue


def test_the_exports_are_those_that_nm_lists(build_library: Callable[..., Path]) -> None:
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("nm is not installed")
    path = build_library()
    listing = subprocess.run([nm, "-D", "--defined-only", path], capture_output=True, text=True, check=True, timeout=60)
    expected = sorted(w[2] for w in map(str.split, listing.stdout.splitlines()) if w[2].startswith("rknn_"))
    fd = os.open(path, os.O_RDONLY)
    try:
        assert list(read_elf(fd, PREFIXES).symbols) == expected
    finally:
        os.close(fd)
    assert len(expected) > 10
