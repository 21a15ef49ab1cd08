# SPDX-License-Identifier: Apache-2.0
"""The two sides of a comparison, with and without speculation: two services, or one that a request can switch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.bench import NotServed
from conformance.server.bench import ServerBench
from conformance.server.client import Client, NotOffered
from conformance.server.replies import Completion, Props, Row

N_PROBS = 10


@dataclass(frozen=True)
class Side:
    """One way to ask. ``options`` go into each request."""

    name: str
    client: Client
    options: Mapping[str, Any] = field(default_factory=dict)

    def ask(self, prompt: str | tuple[int, ...], n: int, **options: Any) -> Completion:
        """A greedy continuation of ``n`` tokens; the end token does not end it."""
        return self.client.complete(prompt, n, ignore_eos=True, **self.options, **options)

    def ids_before(self, prompt: str, answer: Completion, index: int) -> tuple[int, ...] | None:
        """Ids of the prompt and of the first ``index`` tokens of the answer; None where the service gives no ids."""
        if answer.tokens is None:
            return None
        try:
            return self.client.tokenize(prompt) + answer.tokens[:index]
        except NotOffered:
            return None

    def row_after(self, prefix: tuple[int, ...] | None) -> Row | None:
        """The choice after a prefix that is read in one go: no draft takes part in the first token."""
        if prefix is None:
            return None
        rows = self.ask(prefix, 1, n_probs=N_PROBS).rows
        return rows[0] if rows and rows[0].logprobs else None


def sides_of(bench: ServerBench) -> tuple[Side, Side]:
    """Without and with speculation. NotServed where there is nothing to compare."""
    if speculates(bench.props, bench.server) is False:
        raise NotServed(
            f"{bench.server.url} does not speculate; start it with --spec-type ngram-mod, or with a draft model, and a "
            "second one without for --server-off"
        )
    on = Side("with", bench.server)
    if bench.off is not None and bench.off_props is not None:
        if speculates(bench.off_props, bench.off):
            raise NotServed(f"{bench.off.url} (--server-off) speculates too")
        return Side("without", bench.off), on
    if bench.props.switchable:
        return Side("without", bench.server, {"speculative.n_max": 0}), on
    raise NotServed(
        "no request can switch speculation off there (llama.cpp takes it out in recent versions); start the same model "
        "without --spec-type on another port and name it with --server-off"
    )


def speculates(props: Props, client: Client) -> bool | None:
    """By ``/slots``, else by ``/props``; None where neither says.

    ``none`` in ``/props`` says nothing: llama.cpp b11434 writes it there whatever it was started with.
    """
    told = client.speculates()
    return told if told is not None else (True if props.speculates else None)
