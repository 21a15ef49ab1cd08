# SPDX-License-Identifier: Apache-2.0
"""Special tokens are taken out of a text before it is tokenized: longest first, each wherever it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

Fragment = Union[str, int]
"""A stretch of text, or the id of a special token."""


def partition(text: str, special: Sequence[tuple[str, int]]) -> list[Fragment]:
    """``text`` in fragments; ``special`` are texts (none empty) and ids in the order in which they are looked for."""
    fragments: list[Fragment] = [text] if text else []
    for token, token_id in special:
        if token not in text:
            continue
        parted: list[Fragment] = []
        for fragment in fragments:
            if isinstance(fragment, int):
                parted.append(fragment)
                continue
            for index, stretch in enumerate(fragment.split(token)):
                if index:
                    parted.append(token_id)
                if stretch:
                    parted.append(stretch)
        fragments = parted
    return fragments
