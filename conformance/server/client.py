# SPDX-License-Identifier: Apache-2.0
"""HTTP to a service that may be anything: bounded in time and size, no redirects, no proxies, text made inert.

Paths and fields are those of llama.cpp's server (b11434, tools/server: server.cpp, server-task.cpp); where
``/completion`` is not served, ``/v1/completions`` with the fields of OpenAI's interface is used.
"""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from conformance.server.replies import (
    Completion,
    Garbage,
    Metrics,
    Props,
    read_completion,
    read_metrics,
    read_openai,
    read_props,
    read_tokens,
)
from reports.text import inert

T = TypeVar("T")

MAX_BYTES = 16 << 20
"""Of one answer. 512 tokens with ten alternatives each take 1 MB."""

TIMEOUT_S = 120.0
KEY_VARIABLE = "LLAMA_API_KEY"
"""Name of the environment variable that holds the service's key; llama.cpp's own name for it."""

GREEDY: Mapping[str, Any] = {
    "temperature": 0.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
    "xtc_probability": 0.0,
    "dynatemp_range": 0.0,
    "mirostat": 0,
    "seed": 1,
    "stream": False,
    "cache_prompt": False,
    "return_tokens": True,
}
"""The highest logit wins, whatever the service was started with, and nothing is kept of an earlier prompt."""


class ServerError(Exception):
    """The service gave no usable answer; the message says what was asked and what came."""


class NoAnswer(ServerError):
    """It does not listen, or the connection ended, or the time was over."""


class Loading(ServerError):
    """It answers 503: the model is still loading, or no slot is free."""


class NotOffered(ServerError):
    """It does not know this path, or refuses this request by rule (404, 405, 501)."""


class Client:
    """One service. ``timeout_s`` holds for each whole exchange, not for each packet."""

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S, max_bytes: int = MAX_BYTES) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise ServerError(f"{inert(url, 200)} is no address such as http://localhost:8080")
        self.url = inert(url.rstrip("/"), 200)
        self._base, self._timeout_s, self._max_bytes = url.rstrip("/"), timeout_s, max_bytes
        self._open = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect()).open

    def props(self) -> Props:
        """What it says of itself. All unknown where it has no ``/props``."""
        try:
            return self._told("/props", lambda text: read_props(_json(text)))
        except NotOffered:
            return Props()

    def metrics(self) -> Metrics | None:
        """Its counters since it began; None where it was started without ``--metrics``."""
        try:
            return self._told("/metrics", read_metrics)
        except NotOffered:
            return None

    def speculates(self) -> bool | None:
        """Whether a slot speculates, by ``/slots``; None where it does not say."""
        try:
            slots = self._told("/slots", _json)
        except NotOffered:
            return None
        if not isinstance(slots, list) or not slots or not isinstance(slots[0], dict):
            return None
        flag = slots[0].get("speculative")
        return flag if isinstance(flag, bool) else None

    def tokenize(self, text: str, *, add_special: bool = True) -> tuple[int, ...]:
        """Token ids of a text. NotOffered where it has no ``/tokenize``."""
        body = {"content": text, "add_special": add_special, "parse_special": True}
        return self._told("/tokenize", lambda answer: read_tokens(_json(answer)), body)

    def complete(self, prompt: str | tuple[int, ...], n_predict: int, **options: Any) -> Completion:
        """Greedy continuation of a text or of ids. ``options`` go into the request (``n_probs``, ``ignore_eos``)."""
        asked = list(prompt) if isinstance(prompt, tuple) else prompt
        started = time.monotonic()
        try:
            body = {**GREEDY, "prompt": asked, "n_predict": n_predict, **options}
            told = self._told("/completion", lambda text: read_completion(_json(text)), body)
        except NotOffered:
            told = self._told(
                "/v1/completions", lambda text: read_openai(_json(text)), _openai(asked, n_predict, options)
            )
        return told.taking(time.monotonic() - started)

    def _told(self, path: str, read: Callable[[str], T], body: Mapping[str, Any] | None = None) -> T:
        text = self._exchange(path, body)
        try:
            return read(text)
        except Garbage as error:
            raise ServerError(f"{self.url}{path} answers something else than a llama-server does: {error}") from error

    def _exchange(self, path: str, body: Mapping[str, Any] | None) -> str:
        deadline = time.monotonic() + self._timeout_s
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/plain"}
        if os.environ.get(KEY_VARIABLE):
            headers["Authorization"] = f"Bearer {os.environ[KEY_VARIABLE]}"
        data = None if body is None else json.dumps(body).encode()
        where = f"{self.url}{path}"
        try:
            request = urllib.request.Request(self._base + path, data, headers)
            with self._open(request, timeout=self._timeout_s) as answer:
                return _text(answer, deadline, self._max_bytes, where)
        except urllib.error.HTTPError as error:
            with error:
                raise _refusal(error, deadline, where) from error
        except TimeoutError as error:
            raise NoAnswer(f"{where}: no answer within {self._timeout_s:g} s") from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise NoAnswer(f"{where}: no answer within {self._timeout_s:g} s") from error
            raise NoAnswer(f"{where} cannot be reached: {inert(error.reason, 160)}") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            told = inert(f"{type(error).__name__}: {error}", 160)
            raise NoAnswer(
                f"{where}: the connection ended without an answer ({told}); did the service crash?"
            ) from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would take the prompts, and the key, to a place that nobody named."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _text(answer: Any, deadline: float, max_bytes: int, where: str) -> str:
    parts: list[bytes] = []
    size = 0
    while part := answer.read1(1 << 16):
        size += len(part)
        parts.append(part)
        if size > max_bytes:
            raise ServerError(f"{where} answers with more than {max_bytes >> 20} MiB: no answer to this is so long")
        if time.monotonic() > deadline:
            raise TimeoutError
    if answer.length:
        raise NoAnswer(f"{where}: the connection ended in the middle of the answer; did the service crash?")
    return b"".join(parts).decode("utf-8", "replace")


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Garbage(f"it is not JSON ({inert(error, 100)}), but begins with {inert(text, 60)!r}") from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _refusal(error: urllib.error.HTTPError, deadline: float, where: str) -> ServerError:
    try:
        text = _text(error, deadline, 1 << 16, where)
        told = json.loads(text)
        text = told["error"]["message"] if isinstance(told["error"], dict) else told["error"]
    except Exception:  # the body of a refusal may be anything; the number is what counts
        text = ""
    sentence = f"{where} answers {error.code} ({inert(text or error.reason, 160)})"
    if error.code == http.HTTPStatus.SERVICE_UNAVAILABLE:
        return Loading(sentence)
    if error.code in (404, 405, 501):
        return NotOffered(sentence)
    if error.code in (401, 403):
        return ServerError(f"{sentence}: its key has to be in the environment as {KEY_VARIABLE}")
    return ServerError(sentence)


def _openai(prompt: Any, n_predict: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The same request in the words of OpenAI's interface. ``ignore_eos`` is an extension that most services take."""
    body = {"prompt": prompt, "max_tokens": n_predict, "temperature": 0, "seed": 1, "stream": False}
    if options.get("n_probs"):
        body["logprobs"] = options["n_probs"]
    if options.get("ignore_eos"):
        body["ignore_eos"] = True
    return body
