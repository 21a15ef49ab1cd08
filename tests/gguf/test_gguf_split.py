# SPDX-License-Identifier: Apache-2.0
"""Split models: any part opens the whole set; a part that is missing, foreign or damaged is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference_engine.gguf_file import GgufError, open_gguf
from reference_engine.gguf_split import PartName
from tests.gguf import crafted_gguf as craft


def u16(name: str, value: int) -> bytes:
    return craft.key(name, craft.U16, value.to_bytes(2, "little"))


def part(number: int, count: int, tensors: list[str], total: int = 3, keys: tuple[bytes, ...] = ()) -> bytes:
    """Part ``number`` (from 0) with F32 tensors of 8 elements, each filled with the number of the part."""
    rows = [craft.tensor(name, [8], offset=32 * i) for i, name in enumerate(tensors)]
    data = np.full(8 * len(tensors), number, dtype=np.float32).tobytes()
    own = [
        u16("split.no", number),
        u16("split.count", count),
        craft.key("split.tensors.count", craft.I32, total.to_bytes(4, "little")),
    ]
    return craft.gguf([*keys, *own], rows, data)


def write_set(folder: Path, parts: list[bytes], stem: str = "m") -> list[Path]:
    paths = [folder / f"{stem}-{i + 1:05d}-of-{len(parts):05d}.gguf" for i in range(len(parts))]
    for path, raw in zip(paths, parts, strict=True):
        path.write_bytes(raw)
    return paths


def three(folder: Path) -> list[Path]:
    architecture = craft.key_text("general.architecture", "llama")
    return write_set(folder, [part(0, 3, ["a"], keys=(architecture,)), part(1, 3, ["b"]), part(2, 3, ["c"], keys=())])


@pytest.mark.parametrize("opened", [0, 1, 2])
@pytest.mark.parametrize("header_only", [False, True])
def test_any_part_opens_the_whole_set(opened: int, header_only: bool, tmp_path: Path) -> None:
    with open_gguf(three(tmp_path)[opened], header_only=header_only) as model:
        assert model.architecture == "llama"
        assert list(model.tensors) == ["a", "b", "c"]
        assert [float(tensor.dequantize()[0]) for tensor in model.tensors.values()] == [0, 1, 2]
        assert len(model.parts) == 3
        assert model.file_bytes == sum(path.stat().st_size for path in tmp_path.iterdir())


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    paths = three(tmp_path)
    paths[1].unlink()
    with pytest.raises(GgufError, match=r"'m-00002-of-00003\.gguf'") as caught:
        open_gguf(paths[0])
    assert caught.value.code == "NPU-F026"
    assert caught.value.path == paths[0]


def test_many_missing_parts_are_counted(tmp_path: Path) -> None:
    (first,) = write_set(tmp_path, [part(0, 1, [])])
    many = first.with_name("m-00001-of-00500.gguf")
    many.write_bytes(part(0, 500, ["a"]))
    with pytest.raises(GgufError, match=r"499 of them are not beside this one.*and 494 more") as caught:
        open_gguf(many)
    assert len(caught.value.message) < 600


def test_a_damaged_part_is_named_with_its_own_code(tmp_path: Path) -> None:
    paths = three(tmp_path)
    paths[2].write_bytes(paths[2].read_bytes()[:-1])
    with pytest.raises(GgufError) as caught:
        open_gguf(paths[0])
    assert (caught.value.code, caught.value.path) == ("NPU-F015", paths[2])


@pytest.mark.parametrize(
    ("foreign", "code", "word"),
    [
        (part(2, 3, ["b"]), "NPU-F026", "split.no"),
        (part(1, 4, ["b"]), "NPU-F026", "split.count"),
        (craft.gguf([], [craft.tensor("b", [8])], bytes(32)), "NPU-F026", "split.count"),
        (part(1, 3, ["a"]), "NPU-F023", "'a'"),
        (part(1, 3, ["b", "d"]), "NPU-F026", "split.tensors.count"),
        (b"<!doctype html>", "NPU-F016", "HTML"),
    ],
    ids=["part of another place", "part of another set", "no part at all", "doubled tensor", "tensor too many", "HTML"],
)
def test_a_foreign_part_is_refused(foreign: bytes, code: str, word: str, tmp_path: Path) -> None:
    paths = three(tmp_path)
    paths[1].write_bytes(foreign)
    with pytest.raises(GgufError, match=word) as caught:
        open_gguf(paths[0])
    assert caught.value.code == code


@pytest.mark.parametrize("name", ["renamed.gguf", "m-00001-of-00004.gguf", "m-00004-of-00003.gguf", "m-1-of-3.gguf"])
def test_a_renamed_part_is_refused(name: str, tmp_path: Path) -> None:
    renamed = three(tmp_path)[0].rename(tmp_path / name)
    with pytest.raises(GgufError, match="name does not end in") as caught:
        open_gguf(renamed)
    assert caught.value.code == "NPU-F026"


def test_a_set_of_one_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "whatever.gguf"
    path.write_bytes(part(0, 1, ["a"], total=1))
    with open_gguf(path) as model:
        assert list(model.tensors) == ["a"]


def test_part_names_are_taken_apart_and_put_together() -> None:
    name = PartName.parse("big-model-00002-of-00010.gguf")
    assert name == PartName("big-model", 2, 10)
    assert name is not None
    assert name.sibling(10) == "big-model-00010-of-00010.gguf"
    for other in ("model.gguf", "m-00001-of-00002.gguf.part", "-00001-of-00002.gguf", "m-00001-of-00002.GGUF"):
        assert PartName.parse(other) is None


def test_a_set_of_the_package_writer_is_read(tmp_path: Path) -> None:
    gguf: Any = pytest.importorskip("gguf", reason="the gguf package (extra: engine) is not installed")
    writer = gguf.GGUFWriter(tmp_path / "peer.gguf", "llama", split_max_tensors=2)
    arrays = {f"t{i}": np.full((2, 3), i, dtype=np.float32) for i in range(5)}
    for name, values in arrays.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    paths = sorted(tmp_path.iterdir())
    assert len(paths) == 3
    with open_gguf(paths[1]) as model:
        assert {name: tensor.dequantize().tolist() for name, tensor in model.tensors.items()} == {
            name: values.tolist() for name, values in arrays.items()
        }
