# SPDX-License-Identifier: Apache-2.0
"""``run MODEL -p TEXT``: continue a text, or answer one question through the model's chat template."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from reference_engine import tiny
from reference_engine.commands.options import (
    add_model_arguments,
    kernels_note,
    load_model,
    open_model_file,
    phase_notes,
    phases,
)
from reference_engine.errors import EXIT_INTERRUPTED, EngineError, UsageError
from reference_engine.gguf_errors import GgufError
from reference_engine.gguf_tensor import MissingPackage
from reports.contract import EXIT_OK
from reports.text import inert

if TYPE_CHECKING:
    from reference_engine.generate import Summary
    from reference_engine.gguf_file import GgufFile
    from reference_engine.model import Model
    from reference_engine.tokenizer import Tokenizer

HELP = "continue a text, or answer a question"
DEFAULT_TOKENS = 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser, default=tiny.DEFAULT)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-p", "--prompt", metavar="TEXT", help="the text")
    what.add_argument("-f", "--file", type=Path, metavar="FILE", help="the text out of a file; - is standard input")
    what.add_argument("--tokens", type=token_ids, metavar="IDS", help="token ids in place of a text, such as 1,2,3")
    parser.add_argument("--chat", action="store_true", help="the text is a question: put it into the chat template")
    parser.add_argument("--system", metavar="TEXT", help="with --chat: what the system message says")
    parser.add_argument(
        "-n", type=int, metavar="N", help=f"tokens to generate; -1 until the end (default {DEFAULT_TOKENS})"
    )
    parser.add_argument("--stop", action="append", default=[], metavar="TEXT", help="stop before this text; repeatable")
    parser.add_argument("--ignore-end", action="store_true", help="go on behind tokens that end the text")
    parser.add_argument("--temp", type=float, default=0.0, metavar="T", help="temperature; 0 (default) is greedy")
    parser.add_argument("--top-k", type=int, default=40, metavar="K", help="draw from the K likeliest (default 40)")
    parser.add_argument(
        "--top-p", type=float, default=0.95, metavar="P", help="and from this probability (default 0.95)"
    )
    parser.add_argument("--min-p", type=float, default=0.05, metavar="P", help="and above this share of the likeliest")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the draws (default 0)")
    parser.add_argument("--json", action="store_true", help="tokens, text and speeds as one JSON document")


def token_ids(text: str) -> list[int]:
    parts = text.replace(",", " ").split()
    if not parts or not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError("token ids are whole numbers with commas between them")
    return [int(part) for part in parts]


def run(values: argparse.Namespace) -> int:
    """Exit code 0 done (whatever ended the text), 2 usage, 3 could not run, 130 interrupted by Ctrl-C."""
    started = time.perf_counter()
    if values.system is not None and not values.chat:
        raise UsageError("--system goes with --chat")
    if values.tokens is not None and values.chat:
        raise UsageError("--chat needs a text, not --tokens")
    with open_model_file(values.model) as file:
        tokenizer = None if values.tokens is not None and not values.stop else _tokenizer(file)
        prompt = _prompt(values, tokenizer)
        tokenizer = tokenizer or _optional_tokenizer(file)
        with load_model(values, file, _context(values, file, len(prompt))) as model:
            return _generate(values, model, tokenizer, prompt, started)


def _generate(
    values: argparse.Namespace, model: Model, tokenizer: Tokenizer | None, prompt: list[int], started: float
) -> int:
    from reference_engine.generate import INTERRUPTED, generate  # noqa: PLC0415  brings numpy and the kernels
    from reference_engine.progress_bar import progress_bar  # noqa: PLC0415
    from reference_engine.sampling import SamplingOptions, make_sampler  # noqa: PLC0415
    from reference_engine.session import Session  # noqa: PLC0415

    options = SamplingOptions(values.temp, values.top_k, values.top_p, values.min_p, values.seed)
    printer = Printer(quiet=values.json or tokenizer is None, started=started)
    with progress_bar("prompt", sys.stderr) as bar:
        summary = generate(
            Session(model),
            prompt,
            make_sampler(options),
            limit=_limit(values),
            ends=() if values.ignore_end or tokenizer is None else tokenizer.eog,
            stops=values.stop,
            text=None if tokenizer is None else tokenizer.stream(),
            emit=printer.emit,
            progress=bar.show,
        )
    if values.json:
        print(json.dumps(_document(values, model, summary, prompt, printer), allow_nan=False))
    else:
        if tokenizer is None:
            print(" ".join(map(str, summary.tokens)), end="")
        print()
        print(_page(model, summary), file=sys.stderr)
    return EXIT_INTERRUPTED if summary.stop == INTERRUPTED else EXIT_OK


class Printer:
    """Text to standard output as it comes, and all of it kept; a terminal gets no control character of a model."""

    def __init__(self, *, quiet: bool, started: float) -> None:
        self.text: list[str] = []
        self.first_s: float | None = None
        self._quiet, self._started = quiet, started
        self._terminal = sys.stdout.isatty()

    def emit(self, text: str) -> None:
        if self.first_s is None:
            self.first_s = time.perf_counter() - self._started
        self.text.append(text)
        if not self._quiet:
            shown = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text) if self._terminal else text
            sys.stdout.buffer.write(shown.encode("utf-8", "replace"))
            sys.stdout.flush()


def _tokenizer(file: GgufFile) -> Tokenizer:
    from reference_engine.tokenizer import load_tokenizer  # noqa: PLC0415  not needed for token ids

    return load_tokenizer(file)


def _optional_tokenizer(file: GgufFile) -> Tokenizer | None:
    """For output alone: token ids are shown where the file has no vocabulary that can be used."""
    if "tokenizer.ggml.tokens" not in file.metadata:
        return None
    try:
        return _tokenizer(file)
    except (GgufError, MissingPackage) as error:
        print(f"rknpu-engine: token ids are shown, because {inert(error)}", file=sys.stderr)
        return None


def _prompt(values: argparse.Namespace, tokenizer: Tokenizer | None) -> list[int]:
    if tokenizer is None or values.tokens is not None:
        return list(values.tokens)
    from reference_engine.tokenizer import TokenizerError  # noqa: PLC0415  not needed for token ids

    text = values.prompt if values.file is None else read_text(values.file)
    try:
        if not values.chat:
            found = tokenizer.encode(text)
        else:
            system = [] if values.system is None else [{"role": "system", "content": values.system}]
            found = tokenizer.encode_chat([*system, {"role": "user", "content": text}])
    except TokenizerError as error:
        raise UsageError(f"The text cannot be used: {error}") from error
    for warning in tokenizer.warnings:
        print(f"rknpu-engine: {warning}", file=sys.stderr)
    if not found:
        raise UsageError("The text is empty: there is nothing to continue")
    return found


def read_text(path: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        return data.decode("utf-8")
    except OSError as error:
        raise EngineError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start})") from error


def _limit(values: argparse.Namespace) -> int:
    limit = DEFAULT_TOKENS if values.n is None else int(values.n)
    if limit < -1 or limit == 0:
        raise UsageError(f"-n is {limit}; it must be a positive number, or -1 for: until the end")
    return limit


def _context(values: argparse.Namespace, file: GgufFile, prompt: int) -> int:
    """Positions to provide: those asked for, else what prompt and answer need, up to what the model was trained for."""
    from reference_engine.gguf_hparams import load_hparams  # noqa: PLC0415  after the options are known to be sound

    limit = _limit(values)
    trained = load_hparams(file).integer("context_length")
    if values.ctx < 0:
        raise UsageError(f"--ctx is {values.ctx}; it must be a positive number")
    wanted = values.ctx or (trained if limit < 0 else min(trained, prompt + limit))
    if prompt > wanted or (values.n is not None and prompt + limit > wanted):
        more = "" if values.n is None else f" and {limit} more are asked for"
        raise UsageError(
            f"The text has {prompt} tokens{more}; the context has {wanted} positions, the model was trained for "
            f"{trained}. Nothing is shifted or dropped to make room: take a shorter text, a smaller -n, a larger --ctx"
        )
    return int(wanted)


def _document(
    values: argparse.Namespace, model: Model, summary: Summary, prompt: list[int], printer: Printer
) -> dict[str, object]:
    return {
        "model": str(model.file.path),
        "backend": model.backend.name,
        "kernels": None if model.backend.kernels is None else model.backend.kernels.path,
        "threads": model.threads,
        "n_ctx": model.n_ctx,
        "layers": list(model.layers),
        "seed": values.seed,
        "temperature": values.temp,
        "prompt": prompt,
        "tokens": summary.tokens,
        "text": "".join(printer.text),
        "stop": summary.stop,
        "first_text_s": printer.first_s,
        "prefill_s": summary.prefill_s,
        "prefill_tokens_per_s": summary.prefill_per_s,
        "decode_s": summary.decode_s,
        "decode_tokens_per_s": summary.decode_per_s,
        "phases": phases(model.backend),
    }


def _page(model: Model, summary: Summary) -> str:
    prefill, decode = summary.prefill_per_s, summary.decode_per_s
    lines = [
        f"stopped by: {summary.stop}",
        f"prompt: {summary.prompt_tokens} tokens"
        + (f", {prefill:.1f} tokens/s" if prefill is not None else ", not finished"),
        f"generated: {len(summary.tokens)} tokens" + (f", {decode:.1f} tokens/s" if decode is not None else ""),
        f"computed on this CPU by {model.backend.name}, {model.threads} threads, {kernels_note(model.backend)}",
    ]
    return "\n".join(lines + phase_notes(model.backend))
