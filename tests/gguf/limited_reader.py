# SPDX-License-Identifier: Apache-2.0
"""Child of the memory tests: opens every file of a folder with 64 MB of address space to spare, prints the codes."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from reference_engine.gguf_file import GgufError, open_gguf
from reference_engine.gguf_inspect import inspect
from reference_engine.gguf_page import render

SPARE = 64 * 10**6


def spare_only() -> None:
    """From here on the process may grow by ``SPARE`` bytes and no more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + SPARE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main(folder: str) -> None:
    render(inspect(Path("/nonexistent")).document)  # imports done before the limit stands
    spare_only()
    if folder == "--greedy":
        print(len(bytearray(SPARE + SPARE // 8)))
        return
    for path in sorted(Path(folder).iterdir()):
        try:
            open_gguf(path).close()
            print("parsed")
        except GgufError as error:
            print(error.code)


if __name__ == "__main__":
    main(sys.argv[1])
