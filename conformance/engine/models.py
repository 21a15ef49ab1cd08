# SPDX-License-Identifier: Apache-2.0
"""Whole models: the same bits however a text is cut, statistics against float, goldens, speculation, traps, caches."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from conformance.bench import NotServed, Wrong
from conformance.cache_cheat import LEAST, Speeds, compare_speeds
from conformance.engine.bench import EngineBench
from conformance.engine.runs import greedy, speculator
from conformance.engine.targets import Target, distinct_prompts
from conformance.goldens.engine import GOLDENS, N_TOKENS
from conformance.goldens.manifest import Entry, ManifestError, file_sha256, ids_sha256, read
from reference_engine.kv_cache import KvCache
from reference_engine.model import Model

F32 = NDArray[np.float32]

_BRIEF = "npu:w8a8-per-channel"
_CUTS = (1, 2, 3, 4, 5, 8, 17, 64)


def batch_invariance(bench: EngineBench) -> str:
    """The logits of a token have the same bits however many others were computed with it, and run after run.

    Source: llama.cpp's CPU back end does not hold this (flash attention beyond 256 positions, sgemm for M > 1), which
    is why speculation there changes tokens; the NPU's integer rows do (unimatrix099's batchdiff). This engine
    promises it.
    """
    names = []
    widths = (1, 17) if bench.brief else bench.pick((1, 5, 17), _CUTS)
    for target, pipeline in _runs(
        bench, bench.pick(("w8a8-per-channel",), ("w8a8-segment", "w4a4-hadamard", "w16a16"))
    ):
        model = bench.model(target, bench.backend(pipeline))
        prompt = bench.prompt(target, "copy")[: 40 if bench.brief else bench.pick(80, 200)]
        together = _logits(model, [prompt])
        _equal(f"{target.name}, {bench.engine}:{pipeline}, the same pass again", _logits(model, [prompt]), together)
        for width in widths:
            parts = [prompt[at : at + width] for at in range(0, len(prompt), width)]
            where = f"{target.name}, {bench.engine}:{pipeline}, in batches of {width} instead of one of {len(prompt)}"
            _equal(where, _logits(model, parts), together)
        if bench.engine == "npu" and bench.kernels is not None:
            twin = bench.model(target, bench.backend(pipeline, kernels=None))
            rows = prompt[:12]
            _equal(f"{target.name}, npu:{pipeline}, numpy against the C kernels", _logits(twin, [rows]), together[:12])
        names.append(f"{target.name} {bench.engine}:{pipeline} ({len(prompt)} tokens)")
    twice = ", twice, and twelve tokens by numpy" if bench.engine == "npu" else ", twice"
    return f"{'; '.join(names)}: in batches of {', '.join(map(str, widths))} and at once{twice}"


def kv_rollback(bench: EngineBench) -> str:
    """Rejected drafts leave no trace: after a roll back, logits and cache are as if they had never been computed.

    Source: llama.cpp's ring cache puts later tokens into other cells after a removal (seq_rm moves its head), so sums
    change; recurrent states are not rolled back there at all.
    """
    trials = 0
    runs = _runs(bench, bench.pick(("w8a8-per-channel",), ("w8a8-hadamard",)))[: 1 if bench.brief else None]
    for target, pipeline in runs:
        model = bench.model(target, bench.backend(pipeline))
        prompt = bench.prompt(target, "copy")
        for length in (70,) if bench.brief else bench.pick((7, 70), (7, 33, 70, 130)):
            for drafts in (1, 5, 16):
                text = prompt[:length]
                junk = [int(t) for t in bench.random.integers(0, model.n_vocab, drafts)]
                rest = prompt[length : length + 6]
                clean = _rows_after(model, text, [], rest)
                _equal(
                    f"{target.name}, {bench.engine}:{pipeline}, {drafts} drafts at position {length} rolled back",
                    _rows_after(model, text, junk, rest),
                    clean,
                )
                trials += 1
    names = " and ".join(dict.fromkeys(target.name for target, _ in runs))
    return f"{trials} roll backs of 1, 5 and 16 rejected tokens in {names}: the same bits in six tokens after each"


def losslessness(bench: EngineBench) -> str:
    """Every strategy gives the tokens of greedy decoding, and drafts while it does.

    Source: on quantised weights five strategies of llama.cpp (b11434, CPU) part from its own greedy decoding at tokens
    6, 29 or 67, because its batches have other sums; with rows that do not depend on their batch there is no excuse.
    """
    parts = []
    # On the device each product goes to another process: one pipeline and text until level long.
    slow = bench.engine == "device" and bench.level != "long"
    for number, target in enumerate(bench.targets[: 1 if bench.brief else None]):
        pipelines = bench.pick(("w8a8-per-channel",), ("w8a8-per-channel", "w8a8-segment", "w4a4-hadamard"))
        count = bench.pick(128, 512) if target.embedded else bench.pick(32, 96)
        if slow and (bench.brief or number):
            count = min(count, bench.pick(32, 128))
        for pipeline in pipelines[: 1 if slow or not target.embedded else None]:
            model = bench.model(target, bench.backend(pipeline))
            it = speculator(bench, target, model, bench.backend(pipeline, judged=False))
            for name in ("copy",) if slow or bench.level == "quick" else target.prompts:
                prompt = bench.prompt(target, name)
                plain = greedy(model, prompt, min(count, model.n_ctx - len(prompt) - 1)).ids
                # The last ones are a draft model or MTP head and the stacks, which have all parts in them.
                strategies = it.strategies[-3:] if bench.brief else it.strategies
                drafted = {strategy: it.drafted(strategy, prompt, plain) for strategy in strategies}
                idle = [strategy for strategy, n in drafted.items() if not n]
                if name == "copy" and len(idle) == len(drafted):
                    raise Wrong(f"{target.name}: no strategy drafted anything in a text that repeats itself")
                parts.append(
                    f"{target.name} {bench.engine}:{pipeline} {name}: {len(plain)} tokens, {len(drafted)} strategies"
                    + (f" (nothing drafted by {', '.join(idle)})" if idle else "")
                )
    more = "; 512 tokens at level medium" if bench.level == "quick" else ""
    return f"{'; '.join(parts)}: all tokens are those of greedy decoding{more}"


def goldens(bench: EngineBench) -> str:
    """Greedy tokens are those of the manifest: by model, pipeline and prompt, the same on every machine.

    Source: conformance/goldens/engine.json, which says how each entry is made anew and how far each of its steps was
    from another token.
    """
    try:
        entries = read(GOLDENS)
    except ManifestError as error:
        raise Wrong(f"the goldens cannot be used: {error}") from error
    judged, margins = 0, []
    for target in bench.targets[: 1 if bench.brief else None]:
        sha = file_sha256(target.path)
        own = [entry for entry in entries if entry.model_sha256 == sha]
        if not own and target.embedded:
            raise Wrong(
                f"the goldens are of another {target.name} than this one (sha256 {sha[:16]}): {_again(entries, target)}"
            )
        for pipeline in dict.fromkeys(entry.pipeline for entry in own):
            model = None if bench.brief and pipeline != _BRIEF else _golden_model(bench, target, pipeline)
            if model is None:
                continue
            for entry in own:
                if entry.pipeline == pipeline and (entry.prompt == "copy" or not bench.brief):
                    _golden(bench, target, model, entry)
                    margins.append(min(entry.margins_nats))
                    judged += 1
    if not judged:
        raise NotServed("there are no goldens of this model; those of the kit's own models are in conformance/goldens")
    return (
        f"greedy runs of {N_TOKENS} tokens by model, pipeline and prompt: {judged}; the narrowest step of all stood "
        f"{min(margins):.4f} nats above its second token"
    )


def _golden_model(bench: EngineBench, target: Target, pipeline: str) -> Model | None:
    kind, _, preset = pipeline.partition(":")
    if kind == "float":
        return bench.model(target, bench.float_backend()) if bench.engine == "npu" else None
    return bench.model(target, bench.backend(preset))


def _golden(bench: EngineBench, target: Target, model: Model, entry: Entry) -> None:
    where = f"{target.name}, {entry.pipeline}, prompt {entry.prompt}"
    prompt = bench.prompt(target, entry.prompt)
    if ids_sha256(prompt) != entry.prompt_ids_sha256:
        raise Wrong(f"{where}: the tokenizer gives other ids for the prompt than the golden was made of")
    found = greedy(model, prompt, entry.n_tokens)
    if ids_sha256(found.ids) == entry.token_ids_sha256:
        return
    changed = [i for i, (a, b) in enumerate(zip(found.margins, entry.margins_nats, strict=True)) if abs(a - b) > 2e-4]
    first = changed[0] if changed else 0
    raise Wrong(
        f"{where}: the tokens are not those of the golden; the first step whose margin differs is {first} "
        f"({found.margins[first]:.4f} nats, in the golden {entry.margins_nats[first]:.4f}); made by: {entry.regenerate}"
    )


def _again(entries: Sequence[Entry], target: Target) -> str:
    known = next((entry.regenerate for entry in entries if entry.model == target.name), None)
    return f"make them anew with {known or 'python -m conformance.goldens --write'}"


def cache_cheat(bench: EngineBench) -> str:
    """A prompt that was computed before is not faster than one that is new: what is timed is computed.

    Source: benchmarks that repeat one prompt measure the prompt cache of a server; rates above the chip's own peak have
    been published so. On a service with a cache it has to be switched off (cache_prompt false).
    """
    target = bench.targets[0]
    model = bench.model(target, bench.backend("w8a8-per-channel"))
    # CPU time of this process: other processes do not lengthen it. The device answers from another one.
    clock = time.process_time if bench.engine == "npu" else time.perf_counter
    length, rounds = bench.pick(192, 256), bench.pick(7, 15)
    flagged = 0
    for attempt in range(4):
        prompts = distinct_prompts(rounds + 1, length, model.n_vocab, [bench.seed, attempt])
        found = _speeds(model, prompts, clock)
        if found.cheats:
            flagged += 1
            if flagged == 2:
                raise Wrong(f"{target.name}, {bench.engine}, measured twice: {found.sentence()}")
            continue
        if found.cheats is False:
            return f"{rounds} new and {rounds} repeated prompts of {length} tokens: {found.sentence()}"
        rounds *= 2
    raise NotServed(f"the machine is too busy for this: {found.sentence()}")


def _speeds(model: Model, prompts: Sequence[Sequence[int]], clock: Callable[[], float]) -> Speeds:
    """The first prompt is the repeated one; both kinds take turns, so that a slow spell meets both."""

    def timed(prompt: Sequence[int]) -> float:
        cache = model.new_cache()
        start = clock()
        model.forward(prompt, cache)
        return max(clock() - start, 1e-9)

    repeated, *others = prompts
    assert len(others) >= LEAST
    timed(repeated)
    pairs = [(timed(prompt), timed(repeated)) for prompt in others]
    return compare_speeds([a for a, _ in pairs], [b for _, b in pairs])


def _runs(bench: EngineBench, more: Sequence[str]) -> list[tuple[Target, str]]:
    """Every model in W8A8 per channel, the first one in others too."""
    first = bench.targets[0]
    plain = [(target, "w8a8-per-channel") for target in bench.targets[: 2 if bench.brief else None]]
    return plain + [(first, name) for name in more if name != "w8a8-per-channel"]


def _logits(model: Model, parts: Sequence[Sequence[int]]) -> F32:
    cache = model.new_cache()
    return np.concatenate([model.forward(part, cache, rows="all").logits for part in parts])


def _rows_after(model: Model, text: Sequence[int], junk: Sequence[int], rest: Sequence[int]) -> F32:
    """Logits of ``rest``, token by token, behind ``text``; ``junk`` is computed with its last token and rolled back."""
    cache = model.new_cache()
    model.forward(text[:-1], cache, rows=[])
    found = [model.forward([text[-1], *junk], cache, rows="all").logits[:1]]
    cache.truncate(len(text))
    found += [model.forward([token], cache).logits for token in rest]
    return np.concatenate([*found, _cache_bits(cache, len(model.layers), found[0].shape[1])])


def _cache_bits(cache: KvCache, layers: int, width: int) -> F32:
    """A digest of the cells in use, as one row beside the logits: sums of them could hide a difference."""
    digest = hashlib.sha256()
    for index in range(layers):
        if cache.has_layer(index):
            layer = cache.layer(index)
            at = np.arange(max(layer.oldest, 0), cache.n_past) % layer.capacity
            digest.update(np.ascontiguousarray(layer.v_codes[:, at]).view(np.uint8).data)
            tiles, lanes = np.divmod(at, 16)
            digest.update(np.ascontiguousarray(layer.k_codes[:, tiles, :, lanes]).view(np.uint8).data)
    row = np.zeros((1, width), np.float32)
    row[0, :32] = np.frombuffer(digest.digest(), np.uint8)
    return row


def _equal(where: str, found: F32, want: F32) -> None:
    wrong = (found.view(np.uint32) != want.view(np.uint32)).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        largest = float(np.abs(found[row].astype(np.float64) - want[row]).max())
        raise Wrong(
            f"{where}: {int(wrong.sum())} of {len(wrong)} rows are not the same bits, first row {row} (its logits "
            f"differ by up to {largest:.3g}): results depend on the batch, on the run or on what was computed before"
        )
