# SPDX-License-Identifier: Apache-2.0
"""The suite ``server``: a llama-server compatible service, by what it answers over HTTP."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from conformance.bench import Check, NotServed, Wrong
from conformance.server.bench import ServerBench, open_server
from conformance.server.cheat import repeated_prompt_is_not_faster
from conformance.server.client import Loading, NotOffered, ServerError
from conformance.server.npu import npu_is_used_in_prefill
from conformance.server.repeat import greedy_is_repeatable, greedy_takes_the_most_likely
from conformance.server.speculation import speculation_changes_nothing
from conformance.server.trapped import trap_model_gives_its_tokens

__all__ = ["CHECKS", "open_bench"]


def open_bench(request: dict[str, Any]) -> ServerBench:
    """``request``: server, server_off, model, level, seed, check, deadline_s. Raises ``CannotOpen``."""
    return open_server(request)


def _heard(function: Callable[[ServerBench], str]) -> Callable[[ServerBench], str]:
    """What a service refuses is unsupported; what it answers wrongly, or not at all, is a failure of it."""

    @functools.wraps(function)
    def check(bench: ServerBench) -> str:
        try:
            return function(bench)
        except NotOffered as error:
            raise NotServed(str(error)) from error
        except Loading as error:
            raise NotServed(f"{error}, though it was ready before: others use it, or it loads again") from error
        except ServerError as error:
            raise Wrong(str(error)) from error

    return check


_DEADLINES_S = {
    greedy_is_repeatable: 300.0,
    greedy_takes_the_most_likely: 200.0,
    speculation_changes_nothing: 600.0,
    trap_model_gives_its_tokens: 120.0,
    repeated_prompt_is_not_faster: 600.0,
    npu_is_used_in_prefill: 600.0,
}
"""A board decodes one to ten tokens a second."""

CHECKS = {
    function.__name__: Check(function.__name__, _heard(function), seconds) for function, seconds in _DEADLINES_S.items()
}
