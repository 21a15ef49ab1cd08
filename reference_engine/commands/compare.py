# SPDX-License-Identifier: Apache-2.0
"""``compare MODEL TEXTFILE``: what a back end, or a KV cache type, costs the model in quality."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reference_engine.commands.options import (
    KV_TYPES,
    layer_range,
    make_named_backend,
    model_path,
    open_model_file,
    thread_count,
)
from reference_engine.commands.run import read_text, token_ids
from reference_engine.errors import UsageError
from reports.contract import EXIT_FINDINGS, EXIT_OK

if TYPE_CHECKING:
    from reference_engine.model import KvOptions, Model
    from reference_engine.quality.evaluate import Text

HELP = "what a back end or a KV cache type costs a model in quality"
CHUNK_TOKENS = 512
DEFAULT_BACKENDS = "float,npu:w8a8-per-channel"
_IDS = "tokens:"
_BETWEEN = re.compile(r",(?=(?:float|npu|device)(?::|,|$))")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", help="a GGUF file, or the name of a fetched model or of the kit's own"
    )
    # Not optional: argparse before 3.12.7 would not find it behind an option then.
    parser.add_argument(
        "text", metavar="TEXTFILE", help="the text; - is standard input, tokens:1,2,3 are token ids in place of a text"
    )
    parser.add_argument(
        "--backends",
        type=backend_list,
        default=backend_list(DEFAULT_BACKENDS),
        metavar="A,B[,...]",
        help=f"the first is the reference (default {DEFAULT_BACKENDS})",
    )
    parser.add_argument(
        "--ctx", type=int, metavar="N", help=f"tokens of a chunk (default {CHUNK_TOKENS}, or all that the model takes)"
    )
    parser.add_argument("--chunks", type=int, metavar="N", help="at most so many chunks (default: the whole text)")
    parser.add_argument(
        "--skip", type=int, default=0, metavar="N", help="rows at the start of each chunk that are not judged"
    )
    parser.add_argument(
        "--kv",
        type=kv_list,
        metavar="T,T[,...]",
        help="compare KV types (K/V where they differ, as q8_0/f16) on the first back end; the first is the reference",
    )
    parser.add_argument(
        "--depth", type=depth_list, default=(0,), metavar="N[,N]", help="with --kv: context before (default 0)"
    )
    parser.add_argument("--judged", type=int, default=64, metavar="N", help="with --kv: tokens judged at each depth")
    parser.add_argument("--no-rotate", action="store_true", help="with --kv: quantised rows are not rotated first")
    parser.add_argument(
        "--matmuls", action="store_true", help="hold the integers of each matmul against the reference's (slow)"
    )
    parser.add_argument("--no-floor", action="store_true", help="leave out what noise of 1e-7 alone would do")
    parser.add_argument("--max-kl", type=float, metavar="X", help="exit with 1 where a mean KL divergence is above")
    parser.add_argument("--layers", type=layer_range, metavar="A-B", help="load and run these layers only")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="threads (default: one for each CPU)")
    parser.add_argument("--json", action="store_true", help="the same as one JSON document")


def backend_list(text: str) -> list[str]:
    """Back ends with commas between them and in them: a new one begins with float, npu: or device:."""
    found = [part.strip() for part in _BETWEEN.split(text)]
    if not all(part.strip() for name in found for part in name.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} has an empty name in it")
    if sum(name.startswith("device") for name in found) > 1:
        raise argparse.ArgumentTypeError("one device back end at a time: each takes the NPU for itself")
    return found


def kv_list(text: str) -> list[tuple[str, str]]:
    """ "f16,q8_0/f16" to pairs of types of K and V."""
    pairs = [tuple(part.split("/")) for part in text.split(",")]
    if any(len(pair) > 2 or any(kind not in KV_TYPES for kind in pair) for pair in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of KV types; known are {', '.join(KV_TYPES)}")
    return [(pair[0], pair[-1]) for pair in pairs]


def depth_list(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError("whole numbers with commas between them are needed")
    return tuple(int(part) for part in parts)


def run(values: argparse.Namespace) -> int:
    """Exit code 0 compared, 1 a KL divergence above --max-kl or a matmul that differs, 2 usage, 3 could not run."""
    from reference_engine.quality.document import FORMAT, FORMAT_VERSION  # noqa: PLC0415  brings numpy
    from reference_engine.quality.page import render  # noqa: PLC0415

    _check(values)
    tokens, bos = _tokens(values)
    document: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "model": str(model_path(values.model)),
        "text": None,
        "backends": [],
        "kv": [],
        "notes": [],
    }
    if values.kv is None:
        _compare_backends(values, tokens, bos, document)
    else:
        _compare_kv(values, tokens, document)
    print(json.dumps(document, indent=1, allow_nan=False) if values.json else render(document), end="")
    return _exit_code(values, document)


def _check(values: argparse.Namespace) -> None:
    for name, least in (("ctx", 3), ("skip", 0), ("judged", 2), ("chunks", 1)):
        given = getattr(values, name)
        if given is not None and given < least:
            raise UsageError(f"--{name} is {given}; it must be at least {least}")
    if values.kv is None and len(values.backends) < 2:
        raise UsageError("one back end has nothing to be compared with; name a second one, or KV types with --kv")
    if values.matmuls and (values.kv is not None or "float" in values.backends):
        raise UsageError(
            "--matmuls compares integers, which float and KV types have none of; name back ends such as "
            "--backends npu:w8a8-per-channel,device:w8a8-per-channel"
        )


def _tokens(values: argparse.Namespace) -> tuple[list[int], int | None]:
    """The text's tokens, and the token that begins each chunk, where the model has one."""
    if values.text.startswith(_IDS):
        try:
            return token_ids(values.text[len(_IDS) :]), None
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"{values.text}: {error}") from error
    from reference_engine.tokenizer import TokenizerError, load_tokenizer  # noqa: PLC0415  not needed for token ids

    text = read_text(Path(values.text))
    with open_model_file(values.model) as file:
        tokenizer = load_tokenizer(file)
        try:
            found = tokenizer.encode(text)
        except TokenizerError as error:
            raise UsageError(f"The text cannot be used: {error}") from error
    if not found:
        raise UsageError("The text is empty: there is nothing to compare")
    return found, tokenizer.bos if tokenizer.add_bos else None


def _compare_backends(values: argparse.Namespace, tokens: list[int], bos: int | None, document: dict[str, Any]) -> None:
    from reference_engine.progress_bar import progress_bar  # noqa: PLC0415  brings numpy and the kernels
    from reference_engine.quality.document import other_entry, reference_entry  # noqa: PLC0415
    from reference_engine.quality.evaluate import cut, evaluate, noise_floor  # noqa: PLC0415

    n_ctx = values.ctx or min(CHUNK_TOKENS, _trained(values))
    try:
        text = cut(tokens, n_ctx, bos, values.chunks, values.skip)
    except ValueError as error:
        raise UsageError(str(error)) from error
    with contextlib.ExitStack() as stack:
        models = [(name, stack.enter_context(_model(values, name, n_ctx))) for name in values.backends]
        with progress_bar("comparing", sys.stderr, unit="tok") as bar:
            outcomes = evaluate(models, text, matmuls=values.matmuls, progress=bar.show)
        floors = [None if values.no_floor else noise_floor(model, text.chunks[0]) for _, model in models]
        (name, first), *others = models
        document["backends"].append(reference_entry(name, outcomes[1].rows, first.backend, floors[0]))
        for (_, model), outcome, floor in zip(others, outcomes[1:], floors[1:], strict=True):
            document["backends"].append(other_entry(outcome, outcomes[0], model.backend, floor))
    document["text"] = _text_entry(text, len(outcomes[1].rows.kl))
    document["notes"] = _notes(values, document)


def _trained(values: argparse.Namespace) -> int:
    from reference_engine.gguf_hparams import load_hparams  # noqa: PLC0415  for the default alone

    with open_model_file(values.model) as file:
        return load_hparams(file).integer("context_length")


def _text_entry(text: Text, rows: int) -> dict[str, int]:
    return {"tokens": text.tokens, "chunks": len(text.chunks), "skip": text.skip, "rows": rows}


def _compare_kv(values: argparse.Namespace, tokens: list[int], document: dict[str, Any]) -> None:
    from reference_engine.model import KvOptions  # noqa: PLC0415  brings numpy and the kernels
    from reference_engine.progress_bar import progress_bar  # noqa: PLC0415
    from reference_engine.quality.document import kv_entries  # noqa: PLC0415
    from reference_engine.quality.kv import KvTask, compare_kv, repeated  # noqa: PLC0415

    kinds: Sequence[KvOptions] = [KvOptions(k, v, rotate=not values.no_rotate) for k, v in values.kv]
    needed = max(values.depth) + values.judged
    full, again = repeated(tokens, needed)
    with (
        _model(values, values.backends[0], needed) as model,
        progress_bar("comparing", sys.stderr, unit="tok") as bar,
    ):
        found = compare_kv(model, KvTask(kinds, values.depth, full, values.judged), bar.show)
    document["kv"] = kv_entries(found)
    rows = values.judged * len(set(values.depth))
    document["text"] = {"tokens": needed, "chunks": 1, "skip": 0, "rows": rows}
    document["notes"] = [f"Computed by {values.backends[0]}."]
    if again:
        document["notes"].append(f"The text was too short for this depth and begins anew {again} times.")


def _model(values: argparse.Namespace, name: str, n_ctx: int) -> Model:
    from reference_engine.model import Model  # noqa: PLC0415  brings numpy and the kernels
    from reference_engine.progress_bar import progress_bar  # noqa: PLC0415

    threads = thread_count(values.threads)
    backend = make_named_backend(name, threads)
    try:
        with progress_bar(f"loading {name}", sys.stderr, unit="B") as bar:
            return Model.load(
                model_path(values.model),
                backend,
                n_ctx=n_ctx,
                layers=values.layers,
                threads=threads,
                progress=bar.show,
            )
    except BaseException:
        backend.close()
        raise


def _notes(values: argparse.Namespace, document: dict[str, Any]) -> list[str]:
    notes = []
    above = [
        entry["backend"]
        for entry in document["backends"][1:]
        if entry["floor"] is not None and entry["kl_mean"]["value"] <= 2 * entry["floor"]["kl_mean"]["value"]
    ]
    if above:
        notes.append(
            f"{', '.join(above)}: the distance is no more than twice what noise of 1e-7 does to it; a smaller one "
            "could not be told from another engine's rounding."
        )
    if values.layers is not None:
        notes.append("Some layers only were run: the figures say nothing about the model as a whole.")
    return notes


def _exit_code(values: argparse.Namespace, document: dict[str, Any]) -> int:
    entries = [*document["backends"][1:], *document["kv"]]
    far = values.max_kl is not None and any(entry["kl_mean"]["value"] > values.max_kl for entry in entries)
    wrong = any("matmuls" in entry and not entry["matmuls"]["equal"] for entry in entries)
    return EXIT_FINDINGS if far or wrong else EXIT_OK
