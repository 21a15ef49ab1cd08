# SPDX-License-Identifier: Apache-2.0
"""Malformed model files, each with the finding code and the byte offset that the reader must answer with.

Written field by field; the offsets are sums of field sizes, worked out here by hand (24 header, 8 a length or count,
4 a type). Sources are named as owner/repository#number or as advisory.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.gguf import crafted_gguf as craft
from tests.gguf.crafted_gguf import ARRAY, STRING, U8, U16, gguf, header, key, key_u32, string, tensor, u32, u64

HEADER = 24
I64_MAX = 2**63 - 1
SPARE = bytes(64)


@dataclass(frozen=True)
class Case:
    name: str
    source: str
    raw: bytes
    code: str
    offset: int | None
    word: str  # what the message must name


def _one_tensor(row: bytes, data: bytes = bytes(4096)) -> bytes:
    return gguf([], [row], data)


def _nested(depth: int) -> bytes:
    inner = craft.array(U8, b"\x01", 1)
    for _ in range(depth - 1):
        inner = craft.array(ARRAY, inner, 1)
    return gguf([key("n", ARRAY, inner)])


# A tensor table row with name "t": 8 + 1 name, so its dimension count is at +9 and its first dimension at +13.
_T = HEADER
_N_DIMS, _DIM = _T + 9, _T + 13


def _offset_field(dims: int) -> int:
    return _DIM + 8 * dims + 4


CASES: tuple[Case, ...] = (
    Case(
        "array length 2^63 in 49 bytes",
        "ggml-org/llama.cpp#27188",
        header(0, 1) + string("a") + u32(ARRAY) + u32(U8) + u64(2**63),
        "NPU-F010",
        HEADER + 8 + 1 + 4 + 4,
        "'a'",
    ),
    Case(
        "array length past the end",
        "ggml-org/llama.cpp#19856",
        header(0, 1) + key("a", ARRAY, u32(U8) + u64(65)) + SPARE,
        "NPU-F010",
        HEADER + 8 + 1 + 4 + 4,
        "65",
    ),
    Case(
        "array of strings longer than the file",
        "ggml-org/llama.cpp#19856",
        header(0, 1) + key("a", ARRAY, u32(STRING) + u64(9)) + SPARE,
        "NPU-F010",
        HEADER + 8 + 1 + 4 + 4,
        "'a'",
    ),
    Case(
        "string of an array runs over the end",
        "ggml-org/llama.cpp#19856",
        header(0, 1) + key("a", ARRAY, u32(STRING) + u64(2) + string("xy") + u64(9)) + bytes(8),
        "NPU-F010",
        HEADER + 8 + 1 + 4 + 4 + 8 + 10,
        "item 1",
    ),
    Case(
        "string before the last of an array runs over the end",
        "ggml-org/llama.cpp#19856",
        header(0, 1) + key("a", ARRAY, u32(STRING) + u64(3) + u64(100) + bytes(16)),
        "NPU-F010",
        HEADER + 8 + 1 + 4 + 4 + 8,
        "item 0",
    ),
    Case(
        "string of an array is huge",
        "1bit-MONSTER/1bit-MONSTER#366",
        header(0, 1) + key("a", ARRAY, u32(STRING) + u64(2) + string("xy") + u64(2**62)) + bytes(8),
        "NPU-F013",
        HEADER + 8 + 1 + 4 + 4 + 8 + 10,
        "item 1",
    ),
    Case(
        "five dimensions",
        "ggml-org/llama.cpp#25378",
        _one_tensor(tensor("t", [2] * 5)),
        "NPU-F011",
        _N_DIMS,
        "'t' has 5",
    ),
    Case(
        "nine dimensions",
        "antirez/gguf-tools#25",
        _one_tensor(tensor("t", [2] * 9)),
        "NPU-F011",
        _N_DIMS,
        "'t' has 9",
    ),
    Case("no dimension", "antirez/gguf-tools#25", _one_tensor(tensor("t", [], n_dims=0)), "NPU-F011", _N_DIMS, "'t'"),
    Case(
        "2^31 dimensions",
        "gguf 0.19.0 answers with dtype size",
        _one_tensor(tensor("t", [2], n_dims=2**31)),
        "NPU-F011",
        _N_DIMS,
        "2147483648",
    ),
    Case(
        "dims 2^32 x 2^32",
        "ggml-org/llama.cpp#25378",
        _one_tensor(tensor("t", [2**32, 2**32])),
        "NPU-F011",
        _DIM + 8,
        "'t'",
    ),
    Case(
        "dims (2^63 + 16) x 2",
        "gguf 0.19.0 answers vaguely",
        _one_tensor(tensor("t", [2**63 + 16, 2])),
        "NPU-F011",
        _DIM,
        "'t'",
    ),
    *(
        Case(
            f"dimension {d} near 2^63",
            "ggml-org/llama.cpp#18674",
            _one_tensor(tensor("t", [I64_MAX if i == d else 2 for i in range(4)])),
            "NPU-F011",
            _DIM + 8 * max(d, 1),
            "'t'",
        )
        for d in range(4)
    ),
    *(
        Case(
            f"dimension {d} is 0",
            "ggml-org/llama.cpp#24263",
            _one_tensor(tensor("t", [0 if i == d else 32 for i in range(4)])),
            "NPU-F012",
            _DIM + 8 * d,
            f"dimension {d}",
        )
        for d in range(4)
    ),
    Case("empty key", "ggml-org/whisper.cpp#3864", gguf([key_u32("", 1)]), "NPU-F012", HEADER, "key 0"),
    Case("empty tensor name", "ggml-org/whisper.cpp#3864", _one_tensor(tensor("", [32])), "NPU-F012", _T, "tensor 0"),
    Case(
        "key with an escape sequence",
        "ggml-org/whisper.cpp#3864",
        gguf([key_u32("a\x1b[2J", 1)]),
        "NPU-F012",
        HEADER + 8,
        "unprintable",
    ),
    Case(
        "string of 1 GiB, 8 bytes left",
        "ggml-org/ggml#1516",
        header(0, 1) + key("a", STRING, u64(2**30)) + bytes(8),
        "NPU-F013",
        HEADER + 8 + 1 + 4,
        "'a'",
    ),
    Case(
        "string of 2^62",
        "1bit-MONSTER/1bit-MONSTER#366",
        header(0, 1) + key("a", STRING, u64(2**62)) + bytes(8),
        "NPU-F013",
        HEADER + 8 + 1 + 4,
        "'a'",
    ),
    Case(
        "string a little past the end",
        "ggml-org/llama.cpp#19856",
        header(0, 1) + key("a", STRING, u64(9)) + bytes(8),
        "NPU-F010",
        HEADER + 8 + 1 + 4,
        "'a'",
    ),
    *(
        Case(
            f"alignment {value}",
            "ggml-org/ggml#1516",
            gguf([key_u32("general.alignment", value)], [tensor("t", [32])], bytes(4096)),
            "NPU-F013",
            HEADER,
            "general.alignment",
        )
        for value in (0, 3, 4, 48, 131072, 2**30)
    ),
    Case(
        "alignment of another type",
        "ggml-org/ggml#1516",
        gguf([key("general.alignment", U16, b"\x20\x00")]),
        "NPU-F027",
        HEADER,
        "general.alignment",
    ),
    Case(
        "padded sum of tensors wraps",
        "GHSA-vgg9-87g3-85w8, CVE-2025-53630",
        gguf([], [tensor("a", [2**61 - 32], offset=0), tensor("b", [2**61 - 32], offset=2**63 - 128)], bytes(64)),
        "NPU-F011",
        HEADER + 8 + 1 + 4 + 8 + 4 + 8,
        "'b'",
    ),
    Case(
        "padding wraps one tensor to nothing",
        "CVE-2026-27940, GHSA-3p4r-fq3f-q74v",
        gguf([key_u32("general.alignment", 64)], [tensor("t", [I64_MAX], 24)], bytes(64)),
        "NPU-F011",
        HEADER + 8 + 17 + 4 + 4 + 13 + 8,
        "'t'",
    ),
    Case(
        "bytes of one tensor wrap, elements do not",
        "GHSA-96jg-mvhq-q7q7",
        _one_tensor(tensor("t", [2**62])),
        "NPU-F011",
        _DIM + 8,
        "'t'",
    ),
    Case(
        "negative tensor type",
        "ggml-org/llama.cpp#19856",
        _one_tensor(tensor("t", [32], 2**32 - 1)),
        "NPU-F021",
        _DIM + 8,
        "4294967295",
    ),
    Case(
        "removed tensor type",
        "ggml.h keeps the number reserved",
        _one_tensor(tensor("t", [32], 31)),
        "NPU-F021",
        _DIM + 8,
        "Q4_0_4_4",
    ),
    Case(
        "duplicate key",
        "ggml-org/llama.cpp#19856",
        gguf([key_u32("a", 1), key_u32("b", 1), key_u32("a", 1)]),
        "NPU-F022",
        HEADER + 2 * 17,
        "'a'",
    ),
    Case(
        "duplicate tensor",
        "gguf 0.19.0 refuses it",
        gguf([], [tensor("t", [8]), tensor("t", [8], offset=32)], bytes(64)),
        "NPU-F023",
        HEADER + 33,
        "'t'",
    ),
    Case("key count 2^40", "ollama/ollama#17042", header(0, 2**40) + SPARE, "NPU-F010", 16, "key count"),
    Case("tensor count 2^40", "ollama/ollama#17042", header(2**40, 0) + SPARE, "NPU-F010", 8, "tensor count"),
    Case(
        "key count over the limit",
        "ollama/ollama#17042",
        header(0, 32769) + bytes(32769 * 14),
        "NPU-F013",
        16,
        "key count",
    ),
    Case(
        "tensor count over the limit",
        "ollama/ollama#17042",
        header(16385, 0) + bytes(16385 * 33),
        "NPU-F013",
        8,
        "tensor count",
    ),
    Case(
        "key length 2^62",
        "gguf 0.19.0 answers with index out of bounds",
        header(0, 1) + key("abc", U8, b"\x01", length=2**62) + SPARE,
        "NPU-F010",
        HEADER,
        "key 0",
    ),
    Case(
        "truncated data",
        "1bit-MONSTER/1bit-MONSTER#1606",
        gguf([], [tensor("a", [32]), tensor("b", [32], offset=128)], bytes(256))[:-1],
        "NPU-F015",
        96 + 255,
        "'b'",
    ),
    Case("truncated header", "1bit-MONSTER/1bit-MONSTER#1606", header(0, 0)[:20], "NPU-F015", 20, "24 bytes expected"),
    Case(
        "truncated tensor table",
        "1bit-MONSTER/1bit-MONSTER#1606",
        header(1, 0) + tensor("name", [32, 32, 32])[:-4],
        "NPU-F015",
        HEADER + 8 + 4 + 4 + 24 + 4,
        "offset",
    ),
    Case(
        "offset 2^50",
        "gguf 0.19.0 answers about reshape",
        _one_tensor(tensor("t", [32], offset=2**50)),
        "NPU-F014",
        _offset_field(1),
        "'t'",
    ),
    Case(
        "offset not aligned",
        "ggml docs, gguf.md",
        _one_tensor(tensor("t", [32], offset=8)),
        "NPU-F014",
        _offset_field(1),
        "'t'",
    ),
    Case(
        "Q8_0 row of 33",
        "gguf 0.19.0 refuses it",
        _one_tensor(tensor("t", [33], craft.GGML_Q8_0)),
        "NPU-F024",
        _DIM + 8,
        "'t'",
    ),
    Case("arrays nested 2000 deep", "gguf 0.19.0 recurses", _nested(2000), "NPU-F010", HEADER + 13 + 4 * 12, "'n'"),
    Case("arrays nested 5 deep", "gguf 0.19.0 recurses", _nested(5), "NPU-F010", HEADER + 13 + 4 * 12, "deeper than 4"),
    Case(
        "array of 43691 arrays",
        "antirez/gguf-tools#25",
        gguf([key("n", ARRAY, craft.array(ARRAY, (u32(U8) + u64(0)) * 43691, 43691))]),
        "NPU-F013",
        HEADER + 13 + 12,
        "'n'",
    ),
    Case(
        "unknown value type 9999",
        "gguf 0.19.0 refuses it",
        header(0, 1) + key("a", 9999, SPARE),
        "NPU-F020",
        HEADER + 9,
        "9999",
    ),
    Case(
        "unknown item type",
        "gguf 0.19.0 refuses it",
        header(0, 1) + key("a", ARRAY, u32(13) + u64(1) + SPARE),
        "NPU-F020",
        HEADER + 13,
        "13",
    ),
    Case(
        "key not UTF-8",
        "gguf 0.19.0 refuses it",
        gguf([key_u32("ab", 1).replace(b"ab", b"a\xff")]),
        "NPU-F025",
        HEADER + 9,
        "key 0",
    ),
    Case(
        "tensor name not UTF-8",
        "gguf 0.19.0 refuses it",
        _one_tensor(tensor(b"\xc3", [32])),
        "NPU-F025",
        HEADER + 8,
        "tensor 0",
    ),
    Case(
        "tensor name of 65 bytes",
        "ggml docs, gguf.md",
        _one_tensor(tensor("n" * 65, [32])),
        "NPU-F013",
        HEADER,
        "65",
    ),
    Case("key of 65536 bytes", "ggml docs, gguf.md", gguf([key_u32("k" * 65536, 1)]), "NPU-F013", HEADER, "65536"),
    Case("version 1", "version 1 counts in 32 bits", header(0, 0, version=1), "NPU-F019", 4, "version is 1"),
    Case("version 4", "gguf 0.19.0 refuses it", header(0, 0, version=4), "NPU-F019", 4, "version is 4"),
    Case("version 0", "gguf 0.19.0 refuses it", header(0, 0, version=0), "NPU-F019", 4, "version is 0"),
    Case(
        "big-endian",
        "gguf 0.19.0 accepts it on purpose",
        b"GGUF" + (3).to_bytes(4, "big") + bytes(16),
        "NPU-F018",
        4,
        "big-endian",
    ),
    Case("empty file", "airockchip users blame the NPU", b"", "NPU-F016", 0, "empty"),
    Case("bad magic", "gguf 0.19.0 refuses it", header(0, 0, magic=b"GGUX"), "NPU-F016", 0, "47 47 55 58"),
    Case("three bytes", "a download that broke at once", b"GGU", "NPU-F016", 0, "47 47 55"),
    Case(
        "Git LFS pointer",
        "city96/ComfyUI-GGUF#43",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        "NPU-F016",
        0,
        "git lfs pull",
    ),
    Case("HTML page", "city96/ComfyUI-GGUF#43", b"<!DOCTYPE html>\n<html></html>", "NPU-F016", 0, "HTML"),
    Case("HTML page after white space", "city96/ComfyUI-GGUF#43", b"\r\n <html lang=en>", "NPU-F016", 0, "HTML"),
    Case("JSON error", "a download server's answer", b'{"error":"Repository not found"}', "NPU-F016", 0, "JSON"),
    Case("safetensors", "taken for GGUF by its size", u64(2) + b"{}" + SPARE, "NPU-F016", 0, "safetensors"),
    Case("zeros", "a download that never filled its file", bytes(4096), "NPU-F016", 0, "zeros"),
    Case("GGML before GGUF", "ggml.h magic numbers", b"tjgg" + bytes(60), "NPU-F016", 0, "GGJT"),
    Case(
        "number of parts is 0",
        "llama-gguf-split never writes it",
        gguf([key("split.count", U16, b"\x00\x00")]),
        "NPU-F029",
        HEADER,
        "split.count",
    ),
    Case(
        "part of a set under another name",
        "llama-gguf-split names parts",
        gguf([key("split.count", U16, b"\x02\x00")]),
        "NPU-F026",
        HEADER,
        "sibling",
    ),
)
