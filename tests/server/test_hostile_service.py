# SPDX-License-Identifier: Apache-2.0
"""A service that is loading, gone, slow, or sends garbage: one sentence, in time, nothing raw of it."""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.bench import CannotOpen
from conformance.server.bench import open_server
from conformance.server.client import Client, Loading, NoAnswer, NotOffered, ServerError
from conformance.server.replies import Garbage, read_completion, read_metrics, read_openai, read_props
from tests.server.asked import failed, outcome
from tests.server.fake_server import serving

REPEATS = "greedy_is_repeatable"
REQUEST = {"check": REPEATS, "level": "quick", "seed": 1, "deadline_s": 5.0, "model": None}


def test_a_service_that_still_loads_is_waited_for() -> None:
    with serving(loading_s=0.7) as server:
        assert open_server({**REQUEST, "server": server.url}).props.model == "toy.gguf"


def test_a_service_that_loads_for_too_long_could_not_be_judged() -> None:
    with serving(loading_s=60.0) as server, pytest.raises(CannotOpen, match="still loads after"):
        open_server({**REQUEST, "server": server.url}, wait_s=0.3)


def test_nobody_listening_could_not_be_judged() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        told = outcome(REPEATS, f"http://127.0.0.1:{free.getsockname()[1]}")
    assert told["verdict"] == "could-not-run"
    assert "cannot be reached" in told["reason"]


@pytest.mark.parametrize("url", ["ftp://localhost", "localhost:8080", "http://", "http://me:secret@localhost"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ServerError, match="no address"):
        Client(url)


def test_a_service_that_hangs_up_has_failed() -> None:
    with serving(hang_up=True) as server:
        assert "did the service crash" in failed(outcome(REPEATS, server.url))


def test_a_service_that_does_not_answer_costs_its_deadline_and_no_more() -> None:
    with serving(stall_s=60.0) as server:
        client = Client(server.url, timeout_s=0.4)
        started = time.monotonic()
        with pytest.raises(NoAnswer, match=r"no answer within 0\.4 s"):
            client.complete("a", 4)
        assert time.monotonic() - started < 30


@pytest.fixture
def dripping() -> Iterator[str]:
    """A service that sends one byte every 50 ms, for ever: no single read ever waits long."""
    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def serve() -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not stop.wait(0.05):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    stop.set()
    listener.close()
    thread.join(5)


def test_a_service_that_drips_is_cut_off_as_well(dripping: str) -> None:
    with pytest.raises(NoAnswer, match="no answer within"):
        Client(dripping, timeout_s=0.5).complete("a", 4)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"<html>", b"[]", b"null", b"1", b'"x"', b"{}", b"[" * 100_000, b"\xff\xfe", b'{"content": 3}',
        b'{"content": "a", "tokens": [1, "x"]}', b'{"content": "a", "tokens": [-1]}', b'{"content": "a", "tokens": {}}',
        b'{"content": "a", "timings": []}', b'{"content": "a", "timings": {"prompt_n": "many"}}',
        b'{"content": "a", "timings": {"prompt_ms": NaN}}', b'{"content": "a", "completion_probabilities": 7}',
        b'{"content": "a", "completion_probabilities": [{"id": 1, "top_logprobs": [{"id": 2, "logprob": 5}]}]}',
        b'{"content": "a", "completion_probabilities": [{}]}',
    ],
)  # fmt: skip
def test_garbage_is_a_failure_of_the_service_in_one_sentence(body: bytes) -> None:
    with serving(raw={"/completion": body}) as server:
        reason = failed(outcome(REPEATS, server.url))
    assert "answers something else than a llama-server does" in reason or "nothing is generated" in reason
    assert reason.isprintable()


def test_an_endless_answer_is_cut_off() -> None:
    huge = b'{"content": "' + b"a" * 3_000_000 + b'"}'
    with serving(raw={"/completion": huge}) as server, pytest.raises(ServerError, match="more than 1 MiB"):
        Client(server.url, max_bytes=1 << 20).complete("a", 4)


def test_what_a_service_says_cannot_steer_the_terminal() -> None:
    wild = json.dumps({"error": {"message": "\x1b[2J\r\nPASSED \u202e", "code": 500}}).encode()
    with serving(raw={"/completion": wild}, status={"/completion": 500}) as server:
        reason = failed(outcome(REPEATS, server.url))
    assert reason.isascii()
    assert reason.isprintable()
    with serving(model="\x1b[31mred\n.gguf", ftype="\x07") as server:
        props = Client(server.url).props()
    assert props.model.isprintable()
    assert props.ftype.isprintable()


def test_a_redirect_is_not_followed() -> None:
    with serving(status={"/props": 302}) as server, pytest.raises(ServerError, match="302"):
        Client(server.url).props()


@pytest.mark.parametrize(("status", "kind"), [(404, NotOffered), (501, NotOffered), (503, Loading), (400, ServerError)])
def test_the_number_of_a_refusal_decides_what_it_means(status: int, kind: type[ServerError]) -> None:
    with serving(status={"/tokenize": status}) as server, pytest.raises(kind, match=str(status)):
        Client(server.url).tokenize("a")


def test_a_key_is_asked_for_where_it_is_needed() -> None:
    with serving(status={"/props": 401}) as server, pytest.raises(ServerError, match="LLAMA_API_KEY"):
        Client(server.url).props()


def test_a_service_that_has_neither_path_is_unsupported() -> None:
    with serving(completion=False, openai="") as server:
        told = outcome(REPEATS, server.url)
    assert told["verdict"] == "unsupported"
    assert "404" in told["reason"]


def test_a_service_that_is_busy_later_is_not_judged() -> None:
    with serving(status={"/completion": 503}) as server:
        told = outcome(REPEATS, server.url)
    assert told["verdict"] == "unsupported"
    assert "ready before" in told["reason"]


def test_missing_pages_leave_things_unknown() -> None:
    with serving(metrics=False, status={"/props": 404, "/slots": 404}) as server:
        client = Client(server.url)
        assert client.metrics() is None
        assert client.speculates() is None
        assert client.props().speculates is None
        assert client.props().all_f32 is None


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    with serving() as server:
        assert Client(server.url).props().model == "toy.gguf"


def test_zero_probability_is_minus_infinity() -> None:
    told = {"content": "a", "completion_probabilities": [{"id": 1, "top_logprobs": [{"id": 2, "logprob": -3.4e38}]}]}
    assert read_completion(told).rows[0].logprobs[2] == -math.inf


@pytest.mark.parametrize(
    ("ftype", "wanted"), [("all F32", True), ("(guessed) all F32", True), ("Q4_1", False), ("F16", False), ("", None)]
)
def test_f32_is_read_from_the_name_of_the_file_type(ftype: str, wanted: bool | None) -> None:
    assert read_props({"model_ftype": ftype}).all_f32 is wanted


FIELDS = (
    "content", "tokens", "timings", "completion_probabilities", "top_logprobs", "id", "token", "logprob", "choices",
    "text", "logprobs", "prompt_n", "prompt_ms", "draft_n", "default_generation_settings", "params", "model",
    "speculative.types", "n_ctx", "model_path", "model_ftype",
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)


@given(told=JSON)
@settings(max_examples=300, deadline=None)
def test_no_answer_raises_anything_but_garbage(told: Any) -> None:
    for read in (read_completion, read_openai, read_props):
        try:
            read(told)
        except Garbage as error:
            assert str(error).isprintable()


@given(text=st.text(max_size=200))
@settings(max_examples=100, deadline=None)
def test_no_page_of_counters_raises_anything_but_garbage(text: str) -> None:
    try:
        assert read_metrics(text).values
    except Garbage as error:
        assert str(error).isprintable()
