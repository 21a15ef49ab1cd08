# SPDX-License-Identifier: Apache-2.0
"""What can go wrong on the way to librknnrt and inside it, each as one sentence that names the function."""

from __future__ import annotations

from c_probes.names import error_name


class BindingError(RuntimeError):
    """Any error of the binding."""


class LibraryUnavailable(BindingError):
    """No library could be opened. ``kind`` is one of ``cffi-missing``, ``numpy-missing``, ``not-found``,
    ``not-a-library``, ``wrong-machine``, ``refused``, ``abi-mismatch``."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class MissingSymbol(BindingError):
    """This runtime does not export a function. Others may still be used."""

    def __init__(self, symbol: str, library: str, version: str) -> None:
        super().__init__(f"{symbol} is absent in this runtime ({version}, {library}).")
        self.symbol = symbol


class UnsupportedByRuntime(BindingError):
    """The request has no meaning for this runtime version; nothing was called."""


class RknnError(BindingError):
    """A call failed. ``code`` is its return value (None where it returns a pointer), ``log`` what was
    written.
    """

    def __init__(self, function: str, code: int | None, detail: str, log: tuple[str, ...] = ()) -> None:
        self.function = function
        self.code = code
        self.code_name = None if code is None else error_name(code)
        self.detail = detail
        self.log = log
        outcome = "failed" if code is None else f"returned {code} ({self.code_name})"
        said = f" The library said: {' | '.join(log[-4:])}" if log else ""
        super().__init__(f"{function} {outcome}: {detail}.{said}")


class Disagreement(RknnError):
    """The signals of one call contradict each other: return code, out-pointer and log (rknn-llm issue
    156).
    """
