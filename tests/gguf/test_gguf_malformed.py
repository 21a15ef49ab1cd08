# SPDX-License-Identifier: Apache-2.0
"""Malformed files are refused with the code, the byte and the field, and cheaply."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reference_engine import gguf_errors
from reference_engine.gguf_file import GgufError, Limits, open_gguf
from reports.catalogue import CATALOGUE
from reports.contract import Severity
from tests.gguf import crafted_gguf as craft
from tests.gguf.malformed_corpus import CASES, Case

Write = Callable[..., Path]
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_malformed_file_is_refused_with_its_code_and_byte(case: Case, written: Write) -> None:
    path = written(case.raw)
    with pytest.raises(GgufError) as caught:
        open_gguf(path)
    assert (caught.value.code, caught.value.offset) == (case.code, case.offset), caught.value.message
    assert case.word in caught.value.message
    assert caught.value.path == path


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_refusal_is_one_printable_sentence_and_a_catalogue_finding(case: Case, written: Write) -> None:
    with pytest.raises(GgufError) as caught:
        open_gguf(written(case.raw))
    assert caught.value.message.isascii()
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 600
    finding = caught.value.finding()
    assert finding.code == case.code
    assert finding.severity is Severity.ERROR
    assert caught.value.message in finding.what
    assert finding.fix


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_header_only_refuses_the_same_but_for_missing_data(case: Case, written: Write) -> None:
    path = written(case.raw)
    if case.name in ("truncated data", "offset 2^50"):
        with open_gguf(path, header_only=True) as model, pytest.raises(GgufError) as caught:
            for tensor in model.tensors.values():
                tensor.data()
        assert caught.value.code == "NPU-F015"
        return
    with pytest.raises(GgufError) as caught:
        open_gguf(path, header_only=True)
    assert caught.value.code == case.code


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_refusal_takes_less_than_100_ms(case: Case, written: Write) -> None:
    path = written(case.raw)
    taken = []
    for _ in range(3):
        start = time.process_time()
        with pytest.raises(GgufError):
            open_gguf(path)
        taken.append(time.process_time() - start)
    assert min(taken) < 0.1


def test_whole_corpus_fits_into_64_mb_of_address_space(tmp_path: Path) -> None:
    for index, case in enumerate(CASES):
        (tmp_path / f"{index:03d}.gguf").write_bytes(case.raw)
    child = subprocess.run(
        [sys.executable, "-m", "tests.gguf.limited_reader", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.split() == [case.code for case in CASES]


def test_the_limit_of_that_test_does_stop_a_greedy_reader(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-m", "tests.gguf.limited_reader", "--greedy"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert child.returncode != 0
    assert "MemoryError" in child.stderr


def test_kinds_of_damage_have_distinct_codes() -> None:
    codes = {name: value for name, value in vars(gguf_errors).items() if str(value).startswith("NPU-F")}
    assert len(set(codes.values())) == len(codes)
    assert set(codes.values()) <= set(CATALOGUE)
    tested = {case.code for case in CASES}
    assert {f"NPU-F{n:03d}" for n in range(10, 28) if n != 17} <= tested


def test_overlapping_tensors_are_a_warning(written: Write) -> None:
    rows = [craft.tensor("a", [32]), craft.tensor("b", [32], offset=0), craft.tensor("c", [32], offset=128)]
    with open_gguf(written(craft.gguf([], rows, bytes(256)))) as model:
        (warning,) = model.warnings
        assert (warning.code, warning.offset) == ("NPU-F017", 24 + 33 + 25)
        assert warning.is_warning
        assert warning.finding().severity is Severity.WARNING
        assert set(model.tensors) == {"a", "b", "c"}


def test_an_overlap_hidden_behind_a_short_tensor_is_seen(written: Write) -> None:
    rows = [
        craft.tensor("long", [64]),
        craft.tensor("short", [1], offset=32),
        craft.tensor("late", [8], offset=224),
        craft.tensor("beside", [8], offset=256),
    ]
    with open_gguf(written(craft.gguf([], rows, bytes(512)))) as model:
        assert [re.findall(r"'(\w+)'", warning.message) for warning in model.warnings] == [
            ["short", "long"],
            ["late", "long"],
        ]


def test_every_prefix_of_a_valid_file_is_refused(written: Write) -> None:
    raw = craft.gguf(
        [craft.key_text("general.architecture", "llama"), craft.key_array("a", craft.STRING, ["x", "yz"])],
        [craft.tensor("t", [32]), craft.tensor("u", [32], craft.GGML_Q8_0, 128)],
        bytes(128 + 34),
    )
    open_gguf(written(raw)).close()
    for length in range(len(raw)):
        with pytest.raises(GgufError) as caught:
            open_gguf(written(raw[:length]))
        assert caught.value.code in ("NPU-F010", "NPU-F015", "NPU-F016"), length


def test_truncation_names_expected_and_actual_bytes(written: Write) -> None:
    raw = craft.gguf([], [craft.tensor("t", [1024])], bytes(4096))
    with pytest.raises(GgufError, match=f"{len(raw)} bytes expected, {len(raw) - 1000} there"):
        open_gguf(written(raw[:-1000]))


@pytest.mark.parametrize("path", ["missing.gguf", ".", "/dev/zero", "a\0b"])
def test_what_is_no_regular_file_is_refused_without_waiting(path: str, tmp_path: Path) -> None:
    with pytest.raises(GgufError) as caught:
        open_gguf(tmp_path / path)
    assert caught.value.code == "NPU-F033"


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    import os  # noqa: PLC0415

    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(GgufError, match="pipe"):
        open_gguf(tmp_path / "pipe.gguf")


@pytest.mark.parametrize(
    ("limits", "raw"),
    [
        (Limits(string_bytes=3), craft.gguf([craft.key_text("a", "four")])),
        (Limits(string_bytes=3), craft.gguf([craft.key_array("a", craft.STRING, ["one", "four", "x"])])),
        (Limits(work=3 + 24), craft.gguf([craft.key_array("a", craft.STRING, list("abcd"))])),
        (Limits(keys=1), craft.gguf([craft.key_u32("a", 1), craft.key_u32("b", 1)])),
        (Limits(tensors=1), craft.gguf([], [craft.tensor("a", [1]), craft.tensor("b", [1], offset=32)], bytes(64))),
        (Limits(work=23), craft.gguf([craft.key_u32("a", 1)])),
        (Limits(work=47), craft.gguf([], [craft.tensor("a", [1])], bytes(32))),
        (Limits(name_bytes=5), craft.gguf([craft.key_u32("abc", 1), craft.key_u32("abd", 1)])),
        (Limits(header_bytes=40), craft.gguf([craft.key_text("a", "four")])),
        (Limits(header_bytes=70), craft.gguf([craft.key_array("a", craft.STRING, ["four"] * 3)])),
        (Limits(key_bytes=2), craft.gguf([craft.key_u32("abc", 1)])),
        (Limits(tensor_name_bytes=2), craft.gguf([], [craft.tensor("abc", [1])], bytes(32))),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, Limits) else "",
)
def test_limits_are_settable_and_hold(limits: Limits, raw: bytes, written: Write) -> None:
    path = written(raw)
    open_gguf(path).close()
    with pytest.raises(GgufError) as caught:
        open_gguf(path, limits=limits)
    assert caught.value.code == "NPU-F013"


def test_one_module_reads_the_magic_one_writes_it_and_none_uses_the_package_reader() -> None:
    sources = [
        path
        for folder in ("c_probes", "probes", "reference_engine", "reports", "conformance")
        for path in (ROOT / folder).rglob("*.py")
    ]
    assert len(sources) > 10
    texts = {path.name: path.read_text() for path in sources}
    known_by = {name for name, text in texts.items() if 'b"GGUF"' in text or "b'GGUF'" in text}
    assert known_by == {"gguf_part.py", "gguf_writer.py"}
    assert not [name for name, text in texts.items() if "GGUFReader" in text]
