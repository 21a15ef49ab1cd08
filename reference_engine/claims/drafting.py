# SPDX-License-Identifier: Apache-2.0
"""Claims about speculation: decided on the tiny models, in passes and work, never in seconds."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from reference_engine.backends import make_backend
from reference_engine.claims.claim import UNDECIDED, Verdict, decided
from reference_engine.gguf_file import open_gguf
from reference_engine.model import Model
from reference_engine.speculation.draft_model import DraftModel
from reference_engine.speculation.drafter import Drafter, Round
from reference_engine.speculation.engine_sequence import EngineSequence
from reference_engine.speculation.explain import explain
from reference_engine.speculation.mtp import Mtp
from reference_engine.speculation.mtp_head import head_of
from reference_engine.speculation.ngram_cache import NgramCache
from reference_engine.speculation.ngram_mod import NgramMod
from reference_engine.speculation.ngram_simple import NgramSimple
from reference_engine.speculation.perturbed import AnotherOrder
from reference_engine.speculation.stack import Stack
from reference_engine.speculation.verify import Run, generate
from reference_engine.tiny import DRAFTERS, PROMPTS, tiny_model
from reference_engine.tokenizer import load_tokenizer

N_PREDICT = 160
N_SHORT = 64

COPY = '''def area(width, height):
    """Return the area of a rectangle."""
    return width * height

# the same function once more
'''
TEXT = '''class Reader:
    """Read lines from a file and'''


@lru_cache(maxsize=4)
def model(name: str) -> Model:
    return Model.load(tiny_model(name), make_backend("float", threads=1), threads=1, n_ctx=1024)


@lru_cache(maxsize=8)
def prompt(name: str, text: str) -> tuple[int, ...]:
    return tuple(load_tokenizer(model(name).file).encode(text * (3 if text == COPY else 1)))


@lru_cache(maxsize=2)
def _heads(name: str) -> Callable[[EngineSequence], object]:
    drafter = DRAFTERS.get(name)
    if drafter is None:
        return head_of(model(name), None, None)
    return head_of(model(name), open_gguf(tiny_model(drafter)), make_backend("float", threads=1))


def mtp(name: str, sequence: EngineSequence, n_max: int = 3) -> Mtp:
    return Mtp(_heads(name)(sequence), n_max)  # type: ignore[arg-type]


def ran(
    name: str, text: str, make: Callable[[EngineSequence], list[Drafter]], n_predict: int = N_PREDICT
) -> tuple[Run, Stack]:
    sequence = EngineSequence(model(name))
    stack = Stack(make(sequence))
    return generate(sequence, stack, prompt(name, text), n_predict=n_predict), stack


def acceptance_does_not_predict_speed() -> Verdict:
    """Work in reads of the target's weights: a draft as large as the target is always right, and costs all it saves."""
    name = "tiny-llama"
    twin, twin_stack = ran(name, COPY, lambda _: [DraftModel(EngineSequence(model(name)))])
    found, found_stack = ran(name, COPY, lambda _: [NgramSimple(4, 16)])
    drafted = twin_stack.statistics[0].n_gen_tokens
    work = (len(twin.steps) + drafted) / len(twin.tokens), len(found.steps) / len(found.tokens)
    rates = twin_stack.statistics[0].acceptance or 0.0, found_stack.statistics[0].acceptance or 0.0
    return decided(
        rates[0] > rates[1] and work[0] > work[1],
        f"a draft as large as its target is accepted at {rates[0]:.2f} and reads the weights {work[0]:.2f} times for "
        f"each token, ngram-simple is accepted at {rates[1]:.2f} and reads them {work[1]:.2f} times",
    )


def nextn_layers_cap_the_draft() -> Verdict:
    name = "tiny-gemma4"
    layers = open_gguf(tiny_model(DRAFTERS[name])).metadata.integer("gemma4-assistant.nextn_predict_layers")
    _, stack = ran(name, COPY, lambda sequence: [mtp(name, sequence, n_max=2 * layers + 1)])
    longest = len(stack.statistics[0].n_acc_tokens_per_pos)
    return decided(
        longest <= layers,
        f"the drafter has nextn_predict_layers = {layers} and got {longest} tokens of one draft accepted: all its "
        "layers make one step, and only chained heads (step35) are capped",
    )


def ngram_cache_is_no_prompt_lookup() -> Verdict:
    """It is said to read a static file alone; without any it drafts from the prompt, and from nothing after it."""
    name = "tiny-llama"
    text = list(prompt(name, COPY))
    cache = NgramCache(compat=True)
    from_prompt = cache.draft(Round(text[:-1], text[-1], 8))
    new = [(7 * i) % 1000 for i in range(40)]
    steady = NgramCache(compat=True)
    for i in range(1, len(new)):
        steady.draft(Round([*text, *new[: i - 1]], new[i - 1], 8))
    learnt = steady.draft(Round([*text, *new, *new[:3]], new[3], 8))
    return decided(
        not from_prompt,
        f"without a file it drafts {len(from_prompt)} tokens from the prompt; from {len(new)} tokens generated one by "
        f"one it learns {'nothing' if not learnt else 'something'}, a defect that makes it weak (compat)",
    )


def stacking_costs_passes() -> Verdict:
    name = "tiny-gemma4"
    alone, _ = ran(name, TEXT, lambda sequence: [mtp(name, sequence)])
    both, stack = ran(name, TEXT, lambda sequence: [mtp(name, sequence), NgramCache(compat=True)])
    if not stack.statistics[0].n_gen_drafts:
        return Verdict(UNDECIDED, "the n-grams never drafted, so nothing was stacked")
    more, fewer = both.passes_per_token, alone.passes_per_token
    return decided(
        more > fewer,
        f"{more:.3f} passes for a token with ngram-cache beside MTP, {fewer:.3f} with MTP alone: the n-grams are asked "
        f"first and drafted {stack.statistics[0].n_gen_drafts} times, in whose rounds MTP was not asked; it is of "
        "the text, and tiny models repeat themselves: where n-grams are wrong more often than MTP they cost",
    )


def ngram_mod_diverges() -> Verdict:
    name = "tiny-llama"
    text = prompt(name, COPY)
    plain = generate(EngineSequence(model(name)), None, text, n_predict=N_PREDICT)
    run, stack = ran(name, COPY, lambda _: [NgramMod(4, 1, 16)])

    def on_sums_in_another_order() -> tuple[AnotherOrder, Stack]:
        return AnotherOrder(model(name)), Stack([NgramMod(4, 1, 16)])

    found = explain(on_sums_in_another_order, text, n_predict=N_PREDICT)
    elsewhere = "no divergence" if found is None else found.cause
    drafted = stack.statistics[0].n_gen_tokens
    return decided(
        run.tokens != plain.tokens or not drafted,
        f"all {len(run.tokens)} tokens are those of greedy with {drafted} drafted, because sums here do not depend on "
        f"the batch; on a target whose sums do, the same strategy shows: {elsewhere}",
    )


def identical_prompts_fake_acceptance() -> Verdict:
    """A text that does not repeat itself within the answer: whatever is drafted comes from the answer before."""
    name = "tiny-llama"
    found = []
    for compat in (True, False):
        strategy = NgramMod(compat=compat)  # with the defaults that such a benchmark has

        def again(_: EngineSequence, strategy: NgramMod = strategy) -> list[Drafter]:
            return [strategy]

        requests = [ran(name, PROMPTS["prose"], again, n_predict=N_SHORT)[1].statistics[0] for _ in range(2)]
        found.append(requests)
    (first, warm), (_, cold) = found
    if first.n_acc_tokens:
        return Verdict(UNDECIDED, f"the first answer repeats itself: {first.n_acc_tokens} tokens are drafted from it")
    return decided(
        (warm.acceptance or 0) > 0.95 and not cold.n_acc_tokens,
        f"the first request drafts {first.n_gen_tokens} tokens, the second with the same prompt is accepted at "
        f"{warm.acceptance or 0:.2f} and takes {warm.n_acc_tokens} of {N_SHORT} tokens from the table of the first; "
        f"with a table of its own it takes {cold.n_acc_tokens}",
    )
