# SPDX-License-Identifier: Apache-2.0
"""``speculate MODEL --strategy …``: is speculative output greedy output, token for token, and what does it save?"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from reference_engine import tiny
from reference_engine.commands.options import (
    add_model_arguments,
    kernels_note,
    load_model,
    make_named_backend,
    open_model_file,
    thread_count,
)
from reference_engine.errors import EngineError, UsageError
from reference_engine.gguf_errors import GgufError
from reports.contract import EXIT_FINDINGS, EXIT_OK
from reports.text import inert

if TYPE_CHECKING:
    from reference_engine.gguf_file import GgufFile
    from reference_engine.model import Model
    from reference_engine.speculation.compared import Compared
    from reference_engine.speculation.engine_sequence import EngineSequence
    from reference_engine.speculation.mtp import MtpHead
    from reference_engine.speculation.stack import Stack
    from reference_engine.speculation.strategies import StrategyOptions
    from reference_engine.speculation.vocabulary import Comparison

HELP = "generate with and without speculation, compare, and say what it saves"
_DEFAULT_TOKENS = 512
_LARGEST = 1024
"""Most tokens of a key or an n-gram draft that llama.cpp takes."""

_SIZED = ("ngram-simple", "ngram-map-k", "ngram-map-k4v")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser, default=tiny.DEFAULT)
    parser.add_argument(
        "--strategy",
        "--spec-type",
        default="ngram-simple",
        metavar="NAMES",
        help="draft-simple (draft), draft-mtp (mtp), ngram-simple, ngram-map-k, ngram-map-k4v, ngram-mod, ngram-cache; "
        "several with commas are asked in llama.cpp's order (default ngram-simple)",
    )
    parser.add_argument("--draft", metavar="MODEL", help="the draft model of draft-simple, or the drafter of draft-mtp")
    parser.add_argument("--tokens", type=int, default=_DEFAULT_TOKENS, metavar="N", help="tokens to generate")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("-p", "--prompt", metavar="TEXT", help="the text to continue (default: code that repeats itself)")
    what.add_argument("-f", "--file", type=Path, metavar="FILE", help="the text out of a file")
    what.add_argument("--token-ids", metavar="IDS", help="token ids in place of a text, such as 1,2,3")
    parser.add_argument("--ignore-end", action="store_true", help="go on behind tokens that end the text")
    parser.add_argument("--compat", action="store_true", help="with the known defects of llama.cpp's strategies")
    _add_parameters(parser.add_argument_group("parameters of the strategies, under llama.cpp's names"))
    parser.add_argument("--json", action="store_true", help="the same as one JSON document")


def _add_parameters(group: argparse._ArgumentGroup) -> None:
    least_0, size = _whole(0), _whole(1, _LARGEST)
    group.add_argument("--spec-draft-n-max", type=least_0, default=3, metavar="N", help="tokens of a draft (default 3)")
    group.add_argument(
        "--spec-draft-n-min", type=least_0, default=0, metavar="N", help="drop shorter drafts (default 0)"
    )
    group.add_argument(
        "--spec-draft-p-min", type=_probability, default=0.0, metavar="P", help="stop below this probability"
    )
    for kind in ("", *(f"{name.removeprefix('ngram-')}-" for name in _SIZED)):
        of = f"of ngram-{kind[:-1]} alone" if kind else f"of {', '.join(_SIZED)}"
        for name, limits, what in (
            ("size-n", size, "tokens of the key (default 12)"),
            ("size-m", size, "tokens drafted (default 48)"),
            ("min-hits", _whole(1), "hits before a draft (default 1)"),
        ):
            more = what[: what.index(" (")] if kind else what
            group.add_argument(f"--spec-ngram-{kind}{name}", type=limits, metavar="N", help=f"{more}, {of}")
    group.add_argument("--spec-ngram-mod-n-match", type=size, metavar="N", help="tokens of the key (default 24)")
    group.add_argument(
        "--spec-ngram-mod-n-min", type=_whole(0, _LARGEST), metavar="N", help="drop shorter drafts (default 48)"
    )
    group.add_argument(
        "--spec-ngram-mod-n-max", type=_whole(0, _LARGEST), metavar="N", help="tokens drafted (default 64)"
    )
    group.add_argument(
        "-lcs", "--lookup-cache-static", type=Path, metavar="FILE", help="counts of a corpus for ngram-cache"
    )
    group.add_argument("-lcd", "--lookup-cache-dynamic", type=Path, metavar="FILE", help="counts of earlier texts")
    group.add_argument(
        "--lookup-corpus", type=Path, metavar="TEXT", help="first count this text and write --lookup-cache-static"
    )
    group.add_argument(
        "--lookup-cache-save",
        type=Path,
        metavar="FILE",
        help="in the end write the counts of earlier texts with those of this one added",
    )


def _whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """A whole number within llama.cpp's limits (b11434, common/arg.cpp)."""
    limits = f"of {least} or more" if most is None else f"from {least} to {most}"

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number {limits}")
        return int(text)

    return parse


def _probability(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no probability from 0 to 1")
    return value


def run(values: argparse.Namespace) -> int:
    """Exit code 0 the same tokens, 1 not, 2 usage, 3 could not run."""
    if values.tokens < 1:
        raise UsageError(f"--tokens is {values.tokens}; it must be a positive number")
    names = _names(values)
    with open_model_file(values.model) as file:
        prompt = _prompt(values, file)
        if values.lookup_corpus is not None:
            _count_corpus(values, file)
        with load_model(values, file, values.ctx or _context(file, len(prompt) + values.tokens + 1)) as model:
            compared = _compare(values, model, names, prompt)
            vocabularies = _vocabularies(values, model, names)
            if values.json:
                shared = None if vocabularies is None else vocabularies.document()
                print(json.dumps(compared.document() | {"vocabulary": shared}, allow_nan=False))
            else:
                print("\n".join(compared.lines()))
                if vocabularies is not None:
                    print(inert(vocabularies.sentence()))
                print(kernels_note(model.backend), file=sys.stderr)
            if values.lookup_cache_save is not None:
                _save_counts(values, [*prompt, *compared.greedy.tokens])
    return EXIT_OK if compared.lossless else EXIT_FINDINGS


def _names(values: argparse.Namespace) -> list[str]:
    """The strategies; UsageError where one is unknown, or lacks what it needs, or something is given that none uses."""
    from reference_engine.speculation.drafter import SpeculationError  # noqa: PLC0415  brings numpy
    from reference_engine.speculation.strategies import strategy_names  # noqa: PLC0415

    try:
        names = strategy_names(values.strategy)
    except SpeculationError as error:
        raise UsageError(f"--strategy: {error}") from error
    if values.draft is not None and not {"draft-simple", "draft-mtp"} & set(names):
        raise UsageError(f"--draft is given and {','.join(names)} uses none: add draft or mtp to --strategy")
    caches = ("lookup_cache_static", "lookup_cache_dynamic", "lookup_corpus", "lookup_cache_save")
    given = next((name for name in caches if getattr(values, name) is not None), None)
    if given is not None and "ngram-cache" not in names:
        raise UsageError(f"--{given.replace('_', '-')} is given: it is of ngram-cache, which is not in --strategy")
    if values.lookup_corpus is not None and values.lookup_cache_static is None:
        raise UsageError("--lookup-corpus needs --lookup-cache-static: the file that its counts go to")
    values.draft = values.draft or tiny.DRAFTERS.get(values.model)
    if values.draft is None and "draft-simple" in names:
        raise UsageError("draft-simple needs a draft model: name one with --draft")
    return names


def _count_corpus(values: argparse.Namespace, file: GgufFile) -> None:
    """As llama-lookup-create: what follows each pair of tokens of the text."""
    from reference_engine.commands.run import read_text  # noqa: PLC0415
    from reference_engine.speculation.ngram_cache import NGRAM_STATIC, Counts, count  # noqa: PLC0415  brings numpy
    from reference_engine.speculation.ngram_cache_file import write_counts  # noqa: PLC0415
    from reference_engine.tokenizer import load_tokenizer  # noqa: PLC0415

    tokens = load_tokenizer(file).encode(read_text(values.lookup_corpus))
    counts: Counts = {}
    count(counts, tokens, len(tokens), range(NGRAM_STATIC, NGRAM_STATIC + 1))
    write_counts(values.lookup_cache_static, counts)


def _save_counts(values: argparse.Namespace, text: list[int]) -> None:
    """As llama-lookup in the end: the dynamic counts, and those of this text."""
    from reference_engine.speculation.ngram_cache import Counts, count, merge  # noqa: PLC0415  brings numpy
    from reference_engine.speculation.ngram_cache_file import read_counts, write_counts  # noqa: PLC0415

    counts: Counts = {}
    count(counts, text, len(text))
    if values.lookup_cache_dynamic is not None:
        merge(counts, read_counts(values.lookup_cache_dynamic))
    write_counts(values.lookup_cache_save, counts)


def _compare(values: argparse.Namespace, model: Model, names: list[str], prompt: list[int]) -> Compared:
    from reference_engine.speculation.compared import compare  # noqa: PLC0415  brings numpy and the kernels
    from reference_engine.speculation.engine_sequence import EngineSequence  # noqa: PLC0415
    from reference_engine.speculation.strategies import make_stack  # noqa: PLC0415

    options = _options(values)
    draft = _draft_model(values, model) if values.draft is not None and "draft-simple" in names else None
    head_of = _head(values, model) if "draft-mtp" in names else None

    def make() -> tuple[EngineSequence, Stack]:
        target = EngineSequence(model)
        return target, make_stack(
            names,
            options,
            draft=None if draft is None else lambda: EngineSequence(draft),
            mtp=None if head_of is None else lambda: head_of(target),
        )

    return compare(make, prompt, n_predict=values.tokens, eog=() if values.ignore_end else _ends(model.file))


def _head(values: argparse.Namespace, model: Model) -> Callable[[EngineSequence], MtpHead]:
    from reference_engine.speculation.mtp_head import head_of  # noqa: PLC0415  brings numpy and the kernels

    threads = thread_count(values.threads)
    if values.draft is None:
        return head_of(model, None, None)
    return head_of(model, _draft_file(values), make_named_backend(_beside(values.backend), threads))


def _beside(backend: str) -> str:
    """The back end of a draft. The NPU has one user: beside a target on the device the emulation has the same bits."""
    kind, colon, preset = backend.partition(":")
    return f"npu:{preset}" if kind == "device" and colon else backend


def _vocabularies(values: argparse.Namespace, model: Model, names: list[str]) -> Comparison | None:
    """The draft's beside the target's; None where there is no draft, or one of the two has none."""
    from reference_engine.speculation.vocabulary import compare  # noqa: PLC0415

    if values.draft is None or not {"draft-simple", "draft-mtp"} & set(names):
        return None
    with open_model_file(values.draft) as file:
        found = compare(model.file, file)
    return found if found.target.n_tokens and found.draft.n_tokens else None


def _options(values: argparse.Namespace) -> StrategyOptions:
    from reference_engine.speculation.strategies import NgramSizes, StrategyOptions  # noqa: PLC0415  brings numpy

    def own(name: str) -> NgramSizes:
        prefix = f"spec_{name.replace('-', '_')}"
        return NgramSizes(*(getattr(values, f"{prefix}_{field}") for field in ("size_n", "size_m", "min_hits")))

    return StrategyOptions(
        draft_n_max=values.spec_draft_n_max,
        draft_n_min=values.spec_draft_n_min,
        draft_p_min=values.spec_draft_p_min,
        size_n=values.spec_ngram_size_n,
        size_m=values.spec_ngram_size_m,
        min_hits=values.spec_ngram_min_hits,
        own={name: own(name) for name in _SIZED},
        n_match=values.spec_ngram_mod_n_match,
        n_min=values.spec_ngram_mod_n_min,
        n_max=values.spec_ngram_mod_n_max,
        lookup_cache_static=values.lookup_cache_static,
        lookup_cache_dynamic=values.lookup_cache_dynamic,
        compat=values.compat,
    )


def _draft_model(values: argparse.Namespace, target: Model) -> Model:
    """The draft, if its vocabulary is the target's."""
    from reference_engine.speculation.vocabulary import compare  # noqa: PLC0415

    file = _draft_file(values)
    found = compare(target.file, file)
    if not found.compatible:
        raise EngineError(f"{inert(values.draft)} cannot draft for this model: {found.difference}")
    own = {"backend": _beside(values.backend), "layers": None}
    return load_model(argparse.Namespace(**{**vars(values), **own}), file, target.n_ctx)


def _draft_file(values: argparse.Namespace) -> GgufFile:
    """EngineError that names the file: there are two."""
    try:
        return open_model_file(values.draft)
    except GgufError as error:
        raise EngineError(f"--draft {values.draft}: {error}") from error


def _prompt(values: argparse.Namespace, file: GgufFile) -> list[int]:
    if values.token_ids is not None:
        from reference_engine.commands.run import token_ids  # noqa: PLC0415

        try:
            return token_ids(values.token_ids)
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"--token-ids: {error}") from error
    from reference_engine.commands.run import read_text  # noqa: PLC0415
    from reference_engine.tokenizer import load_tokenizer  # noqa: PLC0415

    text = tiny.PROMPTS["copy"] if values.prompt is None else values.prompt
    found = load_tokenizer(file).encode(text if values.file is None else read_text(values.file))
    if not found:
        raise UsageError("The text is empty: there is nothing to continue")
    return found


def _context(file: GgufFile, wanted: int) -> int:
    from reference_engine.gguf_hparams import load_hparams  # noqa: PLC0415

    return min(wanted, load_hparams(file).integer("context_length"))


def _ends(file: GgufFile) -> tuple[int, ...]:
    from reference_engine.tokenizer import load_tokenizer  # noqa: PLC0415

    if "tokenizer.ggml.tokens" not in file.metadata:
        return ()
    return tuple(load_tokenizer(file).eog)
