# SPDX-License-Identifier: Apache-2.0
"""A service with a trap model behind it: the right tokens, or the fault that the wrong ones prove."""

from __future__ import annotations

from pathlib import Path

from conformance.bench import NotServed, Wrong
from conformance.server.bench import ServerBench
from conformance.server.client import NotOffered
from conformance.traps import Trap, diagnose, expected, first_difference, manifest


def trap_model_gives_its_tokens(bench: ServerBench) -> str:
    """A trap model gives its expected tokens, however its prompt is cut into batches.

    The margins of a trap are wide by construction (3 nats and more on every step under every correct pipeline), so a
    wrong token is a fault of the engine, and which one names it. Start the service with one of the files that
    ``python -m conformance.traps --write FOLDER`` writes; it is known by its name.
    """
    trap = served_trap(bench.props.model)
    if trap is None:
        served = bench.props.model or "a model whose name it does not tell"
        raise NotServed(
            f"{bench.server.url} serves {served}, which is no trap model; write them with "
            "python -m conformance.traps --write FOLDER and start it with -m on one of the files"
        )
    _same_vocabulary(bench, trap)
    ways: dict[str, str | tuple[int, ...]] = {"text": trap.prompt_text, "ids": trap.prompt}
    done, drafted, accepted = [], 0, 0
    for name, prompt in ways.items():
        told = bench.server.complete(prompt, len(trap.tokens), ignore_eos=True)
        _right(trap, told.tokens, (), f"prompt as {name}")
        done.append(f"prompt as {name}")
        drafted, accepted = drafted + (told.timings.draft_n or 0), accepted + (told.timings.draft_n_accepted or 0)
    for count in sorted({1, len(trap.tokens) // 2, len(trap.tokens) - 1} - {0}):
        # The prompt and the first right tokens as one prefill: another batch shape for the same positions.
        prefix = trap.prompt + trap.tokens[:count]
        told = bench.server.complete(prefix, len(trap.tokens) - count, ignore_eos=True)
        _right(trap, told.tokens, trap.tokens[:count], f"{count} of its tokens read with the prompt")
        done.append(f"{count} tokens read with the prompt")
    if len(trap.prompt) > 1:
        bench.server.complete(trap.prompt[:-1], 1, ignore_eos=True, cache_prompt=True)
        told = bench.server.complete(trap.prompt, len(trap.tokens), ignore_eos=True, cache_prompt=True)
        _right(trap, told.tokens, (), "prompt continued from the cache")
        done.append("prompt continued from the cache")
    drafts = f"; {accepted} of {drafted} drafted tokens accepted" if drafted else ""
    return (
        f"trap {trap.name}: {len(trap.tokens)} tokens right by each way ({', '.join(done)}{drafts}); "
        f"not found: {trap.fault}"
    )


def served_trap(model: str) -> Trap | None:
    """The trap of that file name, None where it is none."""
    stem = Path(model).name.removesuffix(".gguf")
    for row in manifest()["traps"]:
        if stem == str(row["file"]).removesuffix(".gguf"):
            return expected(row["name"])
    return None


def _same_vocabulary(bench: ServerBench, trap: Trap) -> None:
    try:
        ids = bench.server.tokenize(trap.prompt_text)
    except NotOffered:
        return
    if ids != trap.prompt:
        raise Wrong(
            f"trap {trap.name}: its prompt {trap.prompt_text!r} is tokenized to {list(ids)} and not to "
            f"{list(trap.prompt)}: another file under this name, or a tokenizer that adds or joins tokens"
        )


def _right(trap: Trap, tokens: tuple[int, ...] | None, before: tuple[int, ...], way: str) -> None:
    if tokens is None:
        raise NotServed("it gives no token ids, by which the answer of a trap is judged")
    ids = before + tokens
    if first_difference(trap, ids) is not None:
        raise Wrong(f"{diagnose(trap, ids)} ({way})")
