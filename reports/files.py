# SPDX-License-Identifier: Apache-2.0
"""Writing files a person asked for: never over an existing one unless told to, never half of one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


class OutputError(Exception):
    """A place that cannot be written, or a file that is in the way. The text is fit for the user."""


def check_output(path: Path, *, force: bool) -> None:
    """Refuse now what :func:`write_text` would refuse after a long run. Makes the directory.

    Raises OutputError naming the path, the cause and the way out.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot make the directory {path.parent}: {error.strerror}. Choose another place."
        ) from error
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise OutputError(f"cannot write in {path.parent}: permission denied. Choose another place.")
    if path.is_dir():
        raise OutputError(f"{path} is a directory. Name a file.")
    if os.path.lexists(path) and not force:
        raise OutputError(f"{path} exists already. Use --force to write over it, or choose another name.")


def write_text(path: Path, text: str, *, force: bool) -> None:
    """Write ``text`` to ``path`` whole or not at all: a temporary file beside it, flushed, then renamed.

    Without ``force`` an existing file is left alone even when it appeared a moment ago. Raises OutputError.
    """
    check_output(path, force=force)
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fchmod(stream.fileno(), 0o644)
            os.fsync(stream.fileno())
        if force:
            Path(temporary).replace(path)
        else:
            Path(path).hardlink_to(temporary)  # fails if the name is taken, which a rename would not
            Path(temporary).unlink()
    except FileExistsError as error:
        raise OutputError(f"{path} exists already. Use --force to write over it.") from error
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}. Choose another place.") from error
    finally:
        if temporary is not None and os.path.lexists(temporary):
            Path(temporary).unlink()
