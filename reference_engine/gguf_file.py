# SPDX-License-Identifier: Apache-2.0
"""``open_gguf``: the one way into a GGUF file, bounded and lazy.

Model files are untrusted input. All counts and lengths are Python integers, held against the bytes left before
anything is allocated; a refusal is a :class:`~reference_engine.gguf_errors.GgufError` with a finding code, the field's
name and the byte offset. The gguf package is used for dequantising alone: its 0.19.0 reader never returns on a 49-byte
file whose array claims 2^63 items, accepts a dimension of 0, and needs 18 s for a header of 777,000 strings.

The modules ``gguf_cursor``, ``gguf_values``, ``gguf_layout``, ``gguf_part`` and ``gguf_split`` are this reader's
floors, from bytes to sets of files; nothing else in the kit parses GGUF.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType

from reference_engine.gguf_errors import GgufError, Limits
from reference_engine.gguf_part import GgufPart, read_part
from reference_engine.gguf_split import read_set, split_count
from reference_engine.gguf_tensor import GgufTensor
from reference_engine.gguf_values import Metadata

__all__ = ["GgufError", "GgufFile", "GgufTensor", "Limits", "Metadata", "open_gguf"]


class GgufFile:
    """An open model: metadata of its first part, tensors of all parts, and the warnings found on the way.

    Use it as a context manager, or call ``close``. Nothing but the header has been read.
    """

    def __init__(self, path: Path, parts: tuple[GgufPart, ...], *, header_only: bool) -> None:
        self.path = path
        self.parts = parts
        self.header_only = header_only
        self.tensors: Mapping[str, GgufTensor] = MappingProxyType(
            {tensor.name: tensor for part in parts for tensor in part.tensors}
        )

    @property
    def metadata(self) -> Metadata:
        return self.parts[0].metadata

    @property
    def version(self) -> int:
        return self.parts[0].version

    @property
    def alignment(self) -> int:
        return self.parts[0].alignment

    @property
    def warnings(self) -> tuple[GgufError, ...]:
        return tuple(warning for part in self.parts for warning in part.warnings)

    @property
    def architecture(self) -> str:
        """``general.architecture``. GgufError NPU-F028 where the file does not say."""
        return self.metadata.text("general.architecture")

    @property
    def file_bytes(self) -> int:
        """Size of all parts on disk."""
        return sum(part.file_size for part in self.parts)

    @property
    def tensor_bytes(self) -> int:
        """Size of all tensors as the tensor tables give it, whether the data is there or not."""
        return sum(tensor.n_bytes for tensor in self.tensors.values())

    def close(self) -> None:
        """Unmap the files. Arrays that still look into them keep them mapped until they are gone."""
        for part in self.parts:
            part.close()

    def __enter__(self) -> GgufFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_gguf(path: str | os.PathLike[str], *, header_only: bool = False, limits: Limits | None = None) -> GgufFile:
    """Open a GGUF file of version 2 or 3, little-endian; of a split set, any part: all of them are opened.

    ``header_only`` asks for metadata and tensor table alone: the tensor data need not be there, so the first megabytes
    of a download are enough for a forecast. GgufError for everything wrong with the file, NPU-F033 where it cannot be
    opened.
    """
    limits = limits or Limits()
    opened = read_part(Path(path), header_only=header_only, limits=limits)
    try:
        count = split_count(opened.metadata, limits)
        parts = (opened,) if count == 1 else read_set(opened, count, header_only=header_only, limits=limits)
    except BaseException as error:
        opened.close()
        if isinstance(error, GgufError) and error.path is None:
            error.path = opened.path
        raise
    return GgufFile(Path(path), parts, header_only=header_only)
