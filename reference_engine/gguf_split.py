# SPDX-License-Identifier: Apache-2.0
"""Models split over several files, as llama-gguf-split and gguf's writer make them.

Part names end in ``-00001-of-0000N.gguf``, counted from 1; the keys ``split.no`` (from 0), ``split.count`` and
``split.tensors.count`` say the same inside. The first part holds the model's metadata.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from reference_engine.gguf_errors import DUPLICATE_TENSOR, KEY_VALUE, SPLIT, GgufError, Limits, quoted
from reference_engine.gguf_part import GgufPart, read_part
from reference_engine.gguf_values import Metadata

NUMBER_KEY = "split.no"
COUNT_KEY = "split.count"
TENSORS_KEY = "split.tensors.count"
_NAME = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)
_NAMED_MISSING = 5


@dataclass(frozen=True)
class PartName:
    """``number`` counts from 1."""

    stem: str
    number: int
    count: int

    @classmethod
    def parse(cls, name: str) -> PartName | None:
        match = _NAME.fullmatch(name)
        return None if match is None else cls(match["stem"], int(match["number"]), int(match["count"]))

    def sibling(self, number: int) -> str:
        return f"{self.stem}-{number:05d}-of-{self.count:05d}.gguf"


def split_count(metadata: Metadata, limits: Limits) -> int:
    """Parts of the set this file belongs to; 1 for a file that is not split."""
    count = metadata.integer(COUNT_KEY, 1)
    if not 1 <= count <= limits.parts:
        raise GgufError(
            KEY_VALUE, f"key '{COUNT_KEY}' is {count}; 1 to {limits.parts} are supported", metadata.offset(COUNT_KEY)
        )
    return count


def read_set(opened: GgufPart, count: int, *, header_only: bool, limits: Limits) -> tuple[GgufPart, ...]:
    """All parts of the set that ``opened`` belongs to, in order; NPU-F026 names what is missing or does not fit."""
    name = PartName.parse(opened.path.name)
    if name is None or name.count != count or not 1 <= name.number <= count:
        raise GgufError(
            SPLIT,
            f"key '{COUNT_KEY}' says {count} parts, but the file's name does not end in -0000N-of-{count:05d}.gguf, so "
            "its sibling parts cannot be found",
            opened.metadata.offset(COUNT_KEY),
            opened.path,
        )
    paths = [opened.path.with_name(name.sibling(number)) for number in range(1, count + 1)]
    _all_there(paths, opened)
    parts: list[GgufPart] = []
    try:
        for number, path in enumerate(paths, start=1):
            own = number == name.number
            parts.append(opened if own else read_part(path, header_only=header_only, limits=limits))
            _check_keys(parts[-1], number, count)
        _check_tensors(parts)
    except BaseException:
        for part in parts:
            part.close()
        raise
    return tuple(parts)


def _all_there(paths: list[Path], opened: GgufPart) -> None:
    missing = [path.name for path in paths if not path.exists()]
    if missing:
        shown = ", ".join(quoted(name, 120) for name in missing[:_NAMED_MISSING])
        more = f" and {len(missing) - _NAMED_MISSING} more" if len(missing) > _NAMED_MISSING else ""
        raise GgufError(
            SPLIT,
            f"the model has {len(paths)} parts and {len(missing)} of them are not beside this one: {shown}{more}",
            opened.metadata.offset(COUNT_KEY),
            opened.path,
        )


def _check_keys(part: GgufPart, number: int, count: int) -> None:
    for key, expected in ((COUNT_KEY, count), (NUMBER_KEY, number - 1)):
        try:
            found = part.metadata.integer(key)
        except GgufError as error:
            raise GgufError(SPLIT, error.message, error.offset, part.path) from None
        if found != expected:
            raise GgufError(
                SPLIT,
                f"key '{key}' is {found} where part {number} of {count} must have {expected}: the file is of "
                "another set or was renamed",
                part.metadata.offset(key),
                part.path,
            )


def _check_tensors(parts: list[GgufPart]) -> None:
    owner: dict[str, GgufPart] = {}
    for part in parts:
        for tensor in part.tensors:
            if tensor.name in owner:
                raise GgufError(
                    DUPLICATE_TENSOR,
                    f"tensor {quoted(tensor.name)} stands in {quoted(owner[tensor.name].path.name, 120)} too",
                    tensor.header_at,
                    part.path,
                )
            owner[tensor.name] = part
    first = parts[0]
    total = first.metadata.integer(TENSORS_KEY, len(owner))
    if total != len(owner):
        raise GgufError(
            SPLIT,
            f"key '{TENSORS_KEY}' says {total} tensors, the {len(parts)} parts hold {len(owner)}",
            first.metadata.offset(TENSORS_KEY),
            first.path,
        )
