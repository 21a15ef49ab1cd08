# SPDX-License-Identifier: Apache-2.0
"""Headers of the size real models have, and of the largest size allowed, open fast and in little memory."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from reference_engine.gguf_file import GgufError, Limits, open_gguf
from tests.gguf import crafted_gguf as craft

Write = Callable[..., Path]
TOKENS, MERGES = 262_144, 513_856  # together 776,000, as Gemma 4 has


def vocabulary(seed: int = 1) -> bytes:
    rng = random.Random(seed)
    words = [bytes(rng.choices(b"abcdefghij \xc3", k=rng.randint(1, 14))) for _ in range(4096)]
    tokens = b"".join(craft.string(words[i % 4096]) for i in range(TOKENS))
    merges = b"".join(craft.string(words[i % 4096] + b" x") for i in range(MERGES))
    return craft.gguf(
        [
            craft.key("tokenizer.ggml.tokens", craft.ARRAY, craft.array(craft.STRING, tokens, TOKENS)),
            craft.key("tokenizer.ggml.scores", craft.ARRAY, craft.array(craft.F32, bytes(4 * TOKENS), TOKENS)),
            craft.key("tokenizer.ggml.merges", craft.ARRAY, craft.array(craft.STRING, merges, MERGES)),
            craft.key_u32("last", 7),
        ]
    )


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "vocabulary.gguf"
    path.write_bytes(vocabulary())
    return path


def test_776000_strings_open_within_half_a_second_of_cpu(large: Path) -> None:
    taken = []
    for _ in range(3):
        start = time.process_time()
        with open_gguf(large) as model:
            assert model.metadata["last"] == 7
            assert len(model.metadata.strings("tokenizer.ggml.tokens")) == TOKENS
        taken.append(time.process_time() - start)
    assert min(taken) < 0.5


def test_opening_them_keeps_no_string_in_memory(large: Path) -> None:
    path = large
    tracemalloc.start()
    model = open_gguf(path, limits=Limits())
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    model.close()
    assert kept < 2**20
    assert peak < 2**20


def test_all_of_them_decode_in_one_pass(large: Path) -> None:
    with open_gguf(large) as model:
        merges = model.metadata.strings("tokenizer.ggml.merges")
        decoded = merges.tolist()
        assert len(decoded) == MERGES
        for index in (0, 63, 64, 4095, 4096, MERGES - 1):
            assert decoded[index] == merges[index]


def test_the_last_bad_string_of_many_is_named(large: Path, written: Write) -> None:
    raw = bytearray(large.read_bytes())
    at = raw.rfind(craft.string("last"))
    with pytest.raises(GgufError) as caught:
        open_gguf(written(bytes(raw[: at - 1])))
    assert caught.value.code == "NPU-F010"
    assert f"item {MERGES - 1} of key 'tokenizer.ggml.merges'" in caught.value.message


def test_more_strings_than_allowed_are_refused_before_they_are_walked(written: Write) -> None:
    count = Limits().work + 1
    raw = craft.gguf([craft.key("a", craft.ARRAY, craft.array(craft.STRING, bytes(8 * count), count))])
    path = written(raw)
    start = time.process_time()
    with pytest.raises(GgufError) as caught:
        open_gguf(path)
    assert time.process_time() - start < 0.1
    assert caught.value.code == "NPU-F013"


def test_a_header_of_long_strings_is_refused_before_it_is_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.gguf"
    length, count = 2**20 - 8, 2**16
    with path.open("wb") as file:
        file.write(craft.header(0, 1) + craft.key("a", craft.ARRAY, craft.array(craft.STRING, b"", count)))
        start = file.tell()
        for index in range(256):
            file.seek(start + index * (8 + length))
            file.write(craft.u64(length))
        file.truncate(start + count * (8 + length))
    with pytest.raises(GgufError, match="beyond 50331648 bytes") as caught:
        open_gguf(path)
    assert caught.value.code == "NPU-F013"


def test_a_sparse_model_of_many_gigabytes_opens_lazily(tmp_path: Path) -> None:
    path = tmp_path / "sparse.gguf"
    gigabyte = 2**30
    rows = [craft.tensor(f"t{i}", [32 * 1024, 32 * 1024], craft.GGML_Q8_0, i * 34 * 2**25) for i in range(12)]
    head = craft.pad(craft.gguf([], rows, b""))
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + 12 * 34 * 2**25)
    assert path.stat().st_size > 12 * gigabyte
    tracemalloc.start()
    with open_gguf(path) as model:
        assert model.tensor_bytes > 12 * gigabyte
        assert bytes(model.tensors["t11"].data()[-34:]) == bytes(34)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * 2**20
