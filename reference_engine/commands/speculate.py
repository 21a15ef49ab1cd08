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
    group.add_argument("--spec-draft-n-max", type=int, default=3, metavar="N", help="tokens of a draft (default 3)")
    group.add_argument("--spec-draft-n-min", type=int, default=0, metavar="N", help="drop shorter drafts (default 0)")
    group.add_argument("--spec-draft-p-min", type=float, default=0.0, metavar="P", help="stop below this probability")
    group.add_argument("--spec-ngram-size-n", type=int, metavar="N", help="tokens of the key (default 12)")
    group.add_argument("--spec-ngram-size-m", type=int, metavar="M", help="tokens drafted (default 48)")
    group.add_argument(
        "--spec-ngram-min-hits", type=int, default=1, metavar="N", help="hits before a draft (default 1)"
    )
    group.add_argument("--spec-ngram-mod-n-match", type=int, metavar="N", help="tokens of the key (default 24)")
    group.add_argument("--spec-ngram-mod-n-min", type=int, metavar="N", help="drop shorter drafts (default 48)")
    group.add_argument("--spec-ngram-mod-n-max", type=int, metavar="N", help="tokens drafted (default 64)")
    group.add_argument("--lookup-cache-static", type=Path, metavar="FILE", help="counts of a corpus for ngram-cache")
    group.add_argument("--lookup-cache-dynamic", type=Path, metavar="FILE", help="counts of earlier texts")


def run(values: argparse.Namespace) -> int:
    """Exit code 0 the same tokens, 1 not, 2 usage, 3 could not run."""
    from reference_engine.speculation.strategies import strategy_names  # noqa: PLC0415  brings numpy

    if values.tokens < 1:
        raise UsageError(f"--tokens is {values.tokens}; it must be a positive number")
    if values.draft is None:
        values.draft = tiny.DRAFTERS.get(values.model)
    names = strategy_names(values.strategy)
    with open_model_file(values.model) as file:
        prompt = _prompt(values, file)
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
    return EXIT_OK if compared.lossless else EXIT_FINDINGS


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
    return head_of(model, open_model_file(values.draft), make_named_backend(values.backend, threads))


def _vocabularies(values: argparse.Namespace, model: Model, names: list[str]) -> Comparison | None:
    """The draft's beside the target's; None where there is no draft, or one of the two has none."""
    from reference_engine.speculation.vocabulary import compare  # noqa: PLC0415

    if values.draft is None or not {"draft-simple", "draft-mtp"} & set(names):
        return None
    with open_model_file(values.draft) as file:
        found = compare(model.file, file)
    return found if found.target.n_tokens and found.draft.n_tokens else None


def _options(values: argparse.Namespace) -> StrategyOptions:
    from reference_engine.speculation.strategies import StrategyOptions  # noqa: PLC0415  brings numpy

    return StrategyOptions(
        draft_n_max=values.spec_draft_n_max,
        draft_n_min=values.spec_draft_n_min,
        draft_p_min=values.spec_draft_p_min,
        size_n=values.spec_ngram_size_n,
        size_m=values.spec_ngram_size_m,
        min_hits=values.spec_ngram_min_hits,
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

    file = open_model_file(values.draft)
    found = compare(target.file, file)
    if not found.compatible:
        raise EngineError(f"{inert(values.draft)} cannot draft for this model: {found.difference}")
    return load_model(values, file, target.n_ctx)


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
