# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a model file: one code for each kind, and the exception that carries it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reports.catalogue import make_finding
from reports.contract import Finding
from reports.text import inert

LENGTH = "NPU-F010"  # a count, a length or a nesting depth that the bytes left cannot hold
DIMENSIONS = "NPU-F011"  # number of dimensions, or a size that overflows
EMPTY = "NPU-F012"  # a dimension of 0, an empty or unprintable name
LIMIT = "NPU-F013"  # over a limit of this reader, or an alignment out of range
TENSOR_OFFSET = "NPU-F014"
TRUNCATED = "NPU-F015"
NOT_GGUF = "NPU-F016"
OVERLAP = "NPU-F017"  # a warning
BIG_ENDIAN = "NPU-F018"
VERSION = "NPU-F019"
VALUE_TYPE = "NPU-F020"
TENSOR_TYPE = "NPU-F021"
DUPLICATE_KEY = "NPU-F022"
DUPLICATE_TENSOR = "NPU-F023"
RAGGED_ROW = "NPU-F024"  # a row that is no whole number of blocks
ENCODING = "NPU-F025"
SPLIT = "NPU-F026"
KEY_TYPE = "NPU-F027"
KEY_MISSING = "NPU-F028"
KEY_VALUE = "NPU-F029"
ARCHITECTURE = "NPU-F030"  # a warning: nothing is wrong with the file
TENSOR_MISSING = "NPU-F031"
TENSOR_SHAPE = "NPU-F032"
UNREADABLE = "NPU-F033"  # the file cannot be opened at all
HASH = "NPU-F034"
TOKEN_ID = "NPU-F035"  # a warning: llama.cpp ignores such an id

WARNINGS = frozenset({OVERLAP, ARCHITECTURE, TOKEN_ID})


@dataclass(frozen=True)
class Limits:
    """How much a header may ask for. The defaults are above every published model and below any harm.

    ``work`` bounds the time of reading a header, whatever it is made of: one unit, about 0.1 us on a desktop
    processor, for a string of an array, ``KEY_WORK``, ``TENSOR_WORK`` and ``ARRAY_WORK`` for a key, a tensor and an
    array inside an array. The largest header known (Gemma 4: 262,144 tokens and 514,906 merges) takes four fifths.

    ``header_bytes`` bounds the memory: so many bytes of the file are looked at and stay mapped, up to the tensor data.

    The specification allows keys of 65,535 bytes and tensor names of 64 bytes (ggml docs, gguf.md).
    """

    keys: int = 1 << 15
    tensors: int = 1 << 14
    header_bytes: int = 48 << 20
    key_bytes: int = 65_535
    tensor_name_bytes: int = 64
    name_bytes: int = 4 << 20
    string_bytes: int = 1 << 20
    work: int = 15 << 16
    array_depth: int = 4
    parts: int = 1024


KEY_WORK = 24
TENSOR_WORK = 48
ARRAY_WORK = 24

LARGE = Limits(
    keys=1 << 20,
    tensors=1 << 20,
    header_bytes=1 << 30,
    name_bytes=64 << 20,
    string_bytes=64 << 20,
    work=1 << 25,
)
"""For a header known to be sound that is larger than any today; a hostile one may then cost seconds and a gigabyte."""


class GgufError(Exception):
    """Something wrong with a model file.

    ``code`` is a code of the finding catalogue, ``message`` one sentence of printable ASCII that names the field,
    ``offset`` the byte of the file it is about (None where it is about the file as a whole, or about a key that is
    not there), ``path`` the file, where there is more than one.
    """

    def __init__(self, code: str, message: str, offset: int | None = None, path: Path | None = None) -> None:
        super().__init__(code, message, offset, path)
        self.code = code
        self.message = message
        self.offset = offset
        self.path = path

    def __str__(self) -> str:
        where = "" if self.offset is None else f" (byte {self.offset})"
        return f"{self.code}: {self.message}{where}"

    @property
    def is_warning(self) -> bool:
        return self.code in WARNINGS

    def finding(self) -> Finding:
        """The same as a finding of the catalogue; the evidence names file and byte."""
        file = "the model file" if self.path is None else inert(self.path)
        evidence = file if self.offset is None else f"{file}, byte {self.offset}"
        return make_finding(self.code, evidence, message=self.message)


def named(field: str, name: str) -> str:
    """A field and whose it is, as a refusal calls it: numbers as they are, names in quotes."""
    if not name:
        return field
    return f"{field} {name}" if name.isdecimal() else f"{field} {quoted(name)}"


def quoted(name: object, limit: int = 80) -> str:
    """A name out of a file, fit for a sentence: printable ASCII, bounded, in single quotes."""
    return f"'{inert(name, limit)}'"
