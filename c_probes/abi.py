# SPDX-License-Identifier: Apache-2.0
"""Hands ``include/rknn_abi.h`` to cffi and holds cffi's layout against the header's own static assertions.

Only what stands between the header's ``cdef`` marks is declared. The assertions outside the marks are read
as data: the C compiler checks them for the C programs, and :func:`check_layout` checks the same lines for
this process.
"""

from __future__ import annotations

import platform
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from c_probes.errors import LibraryUnavailable

HEADER = Path(__file__).with_name("include") / "rknn_abi.h"

_BEGIN, _END = "/* cdef begin */", "/* cdef end */"
_SIZE = re.compile(r"RKNN_ABI_ASSERT\(sizeof\((\w+)\) == (\d+)\)")
_OFFSET = re.compile(r"RKNN_ABI_OFFSET\((\w+), (\w+), (\d+)\)")
_DEFINED = re.compile(r"(!?)\s*defined\s*\(?\s*(\w+)\s*\)?")

_OWN_DECLARATIONS = """typedef int (*rknn_kit_converter_2_0)(void *, void *, int, int, int, int,
                    rknn_matmul_type); typedef struct { const char *dli_fname; void *dli_fbase; const
                    char *dli_sname; void *dli_saddr; } rknn_kit_dl_info; int dladdr(const void *,
                    rknn_kit_dl_info *); int fflush(void *);
                    """
"""Beside the ABI: the seven-argument B converter of 2.0.0-beta0 (rknn_matmul_api.h of that release), and
libc.
"""

MUST_BE_CHECKED = ("rknn_matmul_info", "rknn_matmul_io_attr", "rknn_tensor_mem", "rknn_quant_params")


class Assertion(NamedTuple):
    """``sizeof(type)`` (member None) or ``offsetof(type, member)`` must be ``number``."""

    type: str
    member: str | None
    number: int


def machine_macros() -> frozenset[str]:
    """The compiler's macros, as far as the header asks for them, for the process that runs this."""
    macros = set()
    if struct.calcsize("P") == 8:
        macros.add("__LP64__")
    elif platform.machine().startswith(("arm", "aarch64")):
        macros.add("__arm__")  # a 32-bit process; the kernel below may well be 64-bit
    elif platform.machine() in ("i386", "i486", "i586", "i686", "x86_64"):
        macros.add("__i386__")
    return frozenset(macros)


def declarations(header: str) -> str:
    """The text between the marks. Raises ValueError when there is not exactly one pair."""
    before, begin, rest = header.partition(_BEGIN)
    inside, end, after = rest.partition(_END)
    if not begin or not end or _BEGIN in after or _END in before:
        raise ValueError("the ABI header does not hold exactly one pair of cdef marks")
    return inside


def assertions(header: str, macros: frozenset[str]) -> Iterator[Assertion]:
    """The size and offset assertions that hold for ``macros``, following #if, #ifdef, #else and #endif."""
    active: list[bool] = []
    for line in header.splitlines():
        words = line.split(None, 1)
        directive = words[0] if words else ""
        if directive in ("#if", "#ifdef", "#ifndef"):
            condition = words[1] if directive == "#if" else f"defined({words[1]})"
            active.append(_holds(condition, macros) != (directive == "#ifndef"))
        elif directive == "#else":
            active[-1] = not active[-1]
        elif directive == "#endif":
            active.pop()
        elif directive == "#elif":
            raise ValueError("the ABI header uses #elif, which the binding does not understand")
        elif all(active):
            for match in _SIZE.finditer(line):
                yield Assertion(match.group(1), None, int(match.group(2)))
            for match in _OFFSET.finditer(line):
                yield Assertion(match.group(1), match.group(2), int(match.group(3)))


def _holds(condition: str, macros: frozenset[str]) -> bool:
    def term(text: str) -> bool:
        match = _DEFINED.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"the ABI header asks {condition!r}, which the binding does not understand")
        return (match.group(2) in macros) != bool(match.group(1))

    return any(all(term(part) for part in option.split("&&")) for option in condition.split("||"))


def declared_types(text: str) -> frozenset[str]:
    """Names that the cdef part gives to types."""
    pairs = re.findall(r"\}\s*(\w+)\s*;|typedef\s+\w+\s+(\w+)\s*;", text)
    return frozenset(name for pair in pairs for name in pair if name)


def check_layout(ffi: Any, wanted: list[Assertion]) -> int:
    """Compares cffi's layout with the assertions; returns how many were compared.

    Every struct of :data:`MUST_BE_CHECKED` has to be among the compared. Raises :class:`LibraryUnavailable`
    (``abi-mismatch``).
    """
    compared: set[str] = set()
    count = 0
    for assertion in wanted:
        kind = ffi.typeof(assertion.type)
        if assertion.member is None:
            what, found = f"sizeof({assertion.type})", ffi.sizeof(kind)
        else:
            what = f"offsetof({assertion.type}, {assertion.member})"
            found = ffi.offsetof(kind, assertion.member)
        if found != assertion.number:
            raise LibraryUnavailable(
                "abi-mismatch", f"{what} is {found} here, but the ABI header says {assertion.number}."
            )
        compared.add(assertion.type)
        count += 1
    missing = [name for name in MUST_BE_CHECKED if name not in compared]
    if missing:
        raise LibraryUnavailable("abi-mismatch", f"The ABI header asserts nothing about {', '.join(missing)}.")
    return count


def load_ffi() -> Any:
    """A cffi object that knows the ABI, with its layout checked.

    Raises :class:`LibraryUnavailable`: ``cffi-missing``, or ``abi-mismatch`` when cffi lays out a struct
    otherwise.
    """
    try:
        from cffi import FFI  # noqa: PLC0415 - its absence must cost only this feature
    except ImportError as error:
        raise LibraryUnavailable(
            "cffi-missing", "The librknnrt binding needs the Python package cffi; install it with pip."
        ) from error
    header = HEADER.read_text(encoding="utf-8")
    macros = machine_macros()
    width = "uint32_t" if "__arm__" in macros else "uint64_t"
    ffi = FFI()
    declared = f"typedef {width} rknn_context;\n" + declarations(header)
    ffi.cdef(declared + _OWN_DECLARATIONS)
    known = declared_types(declared)
    # Types outside the cdef marks are not for cffi; the C compiler alone checks those.
    check_layout(ffi, [wanted for wanted in assertions(header, macros) if wanted.type in known])
    return ffi
