# SPDX-License-Identifier: Apache-2.0
"""Options that the commands which run a model have in common, and what they make of them."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from reference_engine import tiny
from reference_engine.errors import EngineError, UsageError
from reference_engine.gguf_file import GgufFile, open_gguf
from reference_engine.model_cache import MODELS, find_model

if TYPE_CHECKING:
    from reference_engine.backends import Backend
    from reference_engine.model import KvOptions, Model

KV_TYPES = ("f32", "f16", "q8_0", "q4_0")
MOST_THREADS = 64
"""Workers that the kernels' pool has at the most (gemm_pool.c)."""


def add_model_arguments(parser: argparse.ArgumentParser, *, default: str | None = None) -> None:
    """MODEL and everything that decides how it is computed; ``default``: the model where none is named."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        nargs=1 if default is None else "?",
        action=_One,
        default=default,
        help=f"a GGUF file (any part of a split one), a model that make model brought ({', '.join(MODELS)}), or one "
        f"of the kit's own ({', '.join(tiny.NAMES)}{f'; default {default}' if default else ''})",
    )
    parser.add_argument(
        "--backend",
        default="float",
        metavar="NAME",
        help="float (default), npu:PRESET or device:PRESET, such as npu:w8a8-per-channel",
    )
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="threads (default: one for each CPU)")
    parser.add_argument("--ctx", type=int, default=0, metavar="N", help="positions of the context")
    parser.add_argument("--layers", type=layer_range, metavar="A-B", help="load and run these layers only, such as 0-3")
    parser.add_argument(
        "--kv",
        type=kv_types,
        default=("f16", "f16"),
        metavar="K[,V]",
        help=f"types of the KV cache: {', '.join(KV_TYPES)} (default f16)",
    )
    parser.add_argument(
        "--no-rotate", action="store_true", help="quantise the KV cache without rotating its rows first"
    )
    parser.add_argument("--flash", action="store_true", help="attention in blocks of positions (online softmax)")
    parser.add_argument(
        "--gelu-table", action="store_true", help="GELU through 16-bit floats, as ggml's CPU back end has it"
    )


class _One(argparse.Action):
    """Keeps the one value of an argument that may be left out."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        del parser, option_string
        setattr(namespace, self.dest, values[0] if isinstance(values, list) else values)


def layer_range(text: str) -> range:
    """ "4-7" or "4" to the layers 4 to 7, or 4."""
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no range of layers; write one as 0-3")
    start, stop = int(first), int(last if dash else first) + 1
    if stop <= start:
        raise argparse.ArgumentTypeError(f"{text!r} ends before it begins")
    return range(start, stop)


def kv_types(text: str) -> tuple[str, str]:
    """ "f16" or "q8_0,f16" to the types of K and V."""
    types = tuple(text.split(","))
    if len(types) not in (1, 2) or any(kind not in KV_TYPES for kind in types):
        raise argparse.ArgumentTypeError(f"{text!r} is no pair of KV types; known are {', '.join(KV_TYPES)}")
    return types[0], types[-1]


def thread_count(wanted: int) -> int:
    if not 0 <= wanted <= MOST_THREADS:
        raise UsageError(f"--threads is {wanted}; it must be from 1 to {MOST_THREADS}, or 0 for one each CPU")
    return wanted or min(len(os.sched_getaffinity(0)), MOST_THREADS)


def model_path(text: str) -> Path:
    """The file: as it stands, or by the name of a model that was fetched or comes with the kit."""
    path = Path(text)
    if path.exists():
        return path
    if text in tiny.NAMES:
        return tiny.tiny_model(text)
    if text not in MODELS:
        return path
    found = find_model(text)
    if found is None:
        raise EngineError(f"The model {text} is not there yet; bring it with: make model MODEL={text}")
    return found


def open_model_file(text: str) -> GgufFile:
    return open_gguf(model_path(text))


def make_named_backend(text: str, threads: int) -> Backend:
    """The back end; UsageError for a name that means nothing, EngineError where it cannot be had here."""
    from reference_engine.backends import BackendError, make_backend  # noqa: PLC0415  brings numpy and the kernels
    from reference_engine.kernels.library import KernelLibraryError  # noqa: PLC0415

    try:
        return make_backend(text, threads=threads)
    except BackendError as error:
        raise UsageError(str(error)) from error
    except KernelLibraryError as error:
        raise EngineError(str(error)) from error


def kv_options(values: argparse.Namespace) -> KvOptions:
    from reference_engine.model import KvOptions  # noqa: PLC0415  brings numpy and the kernels

    return KvOptions(values.kv[0], values.kv[1], rotate=not values.no_rotate)


def load_model(values: argparse.Namespace, file: GgufFile, n_ctx: int) -> Model:
    """The model of the common options, with a progress bar on a terminal."""
    from reference_engine.model import Model  # noqa: PLC0415  brings numpy and the kernels
    from reference_engine.progress_bar import progress_bar  # noqa: PLC0415

    threads = thread_count(values.threads)
    backend = make_named_backend(values.backend, threads)
    try:
        with progress_bar("loading", sys.stderr, unit="B") as bar:
            return Model.load(
                file,
                backend,
                n_ctx=n_ctx,
                layers=values.layers,
                kv=kv_options(values),
                threads=threads,
                gelu_half_table=values.gelu_table,
                flash=values.flash,
                progress=bar.show,
            )
    except BaseException:
        backend.close()
        raise


def phases(backend: Backend) -> dict[str, Any] | None:
    """Times and shares of prepare A, run and collect C, where the back end has a device to run on."""
    report = getattr(backend, "phase_report", None)
    return None if report is None else cast("dict[str, Any]", report())


def phase_notes(backend: Backend) -> list[str]:
    """The same as lines of a page, with what is to be said of a simulated device."""
    report = phases(backend)
    if report is None:
        return []
    from reference_engine.backends.device_phases import phase_lines  # noqa: PLC0415  for a device alone

    return phase_lines(report)


def kernels_note(backend: Backend) -> str:
    """One line on what computes: the CPU path, or why it is slow."""
    from reference_engine.kernels.library import why_absent  # noqa: PLC0415  brings numpy and the kernels

    if backend.kernels is not None:
        return f"kernels: {backend.kernels.path}"
    return f"kernels: none ({why_absent()})"
