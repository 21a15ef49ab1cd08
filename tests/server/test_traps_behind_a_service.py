# SPDX-License-Identifier: Apache-2.0
"""Trap models over HTTP: right tokens pass by every way; a wrong one is named."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.server.trapped import served_trap
from conformance.traps import manifest
from tests.server.asked import failed, outcome, passed
from tests.server.fake_server import serving

CHECK = "trap_model_gives_its_tokens"
ROWS: list[dict[str, Any]] = manifest()["traps"]


def scripted(row: dict[str, Any], wrong: dict[int, int] | None = None, in_one_go: bool = False) -> dict[str, Any]:
    """A service that answers this trap by heart. ``wrong``: tokens by step, in a prefill that holds them or in all."""
    prompt, tokens = tuple(row["prompt_ids"]), tuple(row["token_ids"])
    bad = tuple((wrong or {}).get(step, token) for step, token in enumerate(tokens))
    answers = {prompt + tokens[:k]: (bad if k or not in_one_go else tokens)[k:] for k in range(len(tokens))}
    text = row["prompt"]
    return {"model": row["file"], "answers": answers, "vocabulary": {text: prompt}}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["name"]))
def test_the_right_tokens_pass_by_every_way(row: dict[str, Any]) -> None:
    with serving(**scripted(row)) as server:
        said = passed(outcome(CHECK, server.url))
    assert row["name"] in said
    assert "prompt as text" in said


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["name"]))
def test_a_wrong_token_is_named_by_the_fault_that_it_proves(row: dict[str, Any]) -> None:
    key, fault = next(iter(row["wrong"].items()))
    step, token = map(int, key.split(":")) if ":" in key else (0, int(key))
    with serving(**scripted(row, {step: token})) as server:
        reason = failed(outcome(CHECK, server.url))
    assert fault in reason
    assert f"token {step} of the answer is {token}" in reason


def test_a_fault_of_one_batch_shape_alone_is_caught() -> None:
    row = ROWS[0]
    last = len(row["token_ids"]) - 1
    with serving(**scripted(row, {last: 14}, in_one_go=True)) as server:
        assert "read with the prompt" in failed(outcome(CHECK, server.url))


def test_another_file_under_the_name_of_a_trap_is_caught() -> None:
    row = ROWS[0]
    with serving(model=row["file"]) as server:
        assert "another file under this name" in failed(outcome(CHECK, server.url))


def test_any_other_model_is_told_how_to_serve_a_trap() -> None:
    with serving() as server:
        told = outcome(CHECK, server.url)
    assert told["verdict"] == "unsupported"
    assert "python -m conformance.traps" in told["reason"]


def test_a_trap_is_known_by_its_file_name_alone() -> None:
    assert served_trap("trap-int8-wrap.gguf") is not None
    assert served_trap("trap-int8-wrap") is not None
    for name in ("", "trap", "int8-wrap.gguf", "my-trap-int8-wrap.gguf", "trap-int8-wrap-Q4_0.gguf"):
        assert served_trap(name) is None
