# SPDX-License-Identifier: Apache-2.0
"""A llama-server look-alike in this process, with a toy model whose every answer is known, and faults to switch on.

The toy: a token is a byte of text; the tokens that may follow depend on the last four by a hash. Nothing here is shared
with the client or the checks.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LETTERS = b"abcdefghijklmnopqrstuvwxyz"
N_TOP = 10


@dataclass
class Behaviour:
    """Everything at its default is a right service without speculation.

    ``gap``: nats between the first and the second choice, everywhere. ``flip_at``: index of the generated token at
    which the second choice is taken; ``cut``: tokens lost at the end; ``wobble``: numbers of the requests in which
    token 3 is. ``prefill_gap``: the gap in the row of a first token, where it is another.
    ``draft``: (drafted, accepted) of each answer. ``forget``: fields left out of an answer. ``raw``: what is sent in
    place of an answer, by path. ``status``: code of the answers, by path. ``prefill_tps`` and ``decode_tps``: what its
    timings say. ``repeat_factor``: how much faster it says it is with a prompt that it has
    seen, and ``repeat_draft`` what it drafts then. ``answers`` are learned by heart, by prompt; ``vocabulary``: ids of
    texts that are not their bytes.
    """

    gap: float = 1.5
    prefill_gap: float | None = None
    flip_at: int | None = None
    flip_to: int = 1
    cut: int = 0
    wobble: tuple[int, ...] = ()
    draft: tuple[int, int] | None = None
    spec_types: str | None = "none"
    switchable: bool = False
    ftype: str = "Q4_1"
    model: str = "toy.gguf"
    n_ctx: int = 2048
    metrics: bool = True
    tokenizes: bool = True
    probs: bool = True
    completion: bool = True
    openai: str = "llama"
    forget: tuple[str, ...] = ()
    raw: dict[str, bytes] = field(default_factory=dict)
    status: dict[str, int] = field(default_factory=dict)
    loading_s: float = 0.0
    stall_s: float = 0.0
    hang_up: bool = False
    prefill_tps: float = 200.0
    decode_tps: float = 20.0
    spread: float = 0.02
    keeps_prompts: bool = False
    repeat_factor: float = 1.0
    repeat_draft: tuple[int, int] | None = None
    timings: dict[str, Any] = field(default_factory=dict)
    answers: dict[tuple[int, ...], tuple[int, ...]] = field(default_factory=dict)
    vocabulary: dict[str, tuple[int, ...]] = field(default_factory=dict)


def choices(context: tuple[int, ...]) -> list[int]:
    """The ten likeliest next tokens after a context, best first."""
    digest = hashlib.sha256(bytes(value % 256 for value in context[-4:])).digest()
    order = random.Random(digest)
    return order.sample(list(LETTERS), N_TOP)


def greedy(context: tuple[int, ...], n: int) -> tuple[int, ...]:
    """What the right toy generates."""
    made: list[int] = []
    for _ in range(n):
        made.append(choices((*context, *made))[0])
    return tuple(made)


def row(context: tuple[int, ...], gap: float) -> dict[int, float]:
    """Log-probabilities: the first one on top, the second ``gap`` below it, each further one a nat below that."""
    logits = [0.0, *(-gap - i for i in range(N_TOP - 1))]
    total = math.log(sum(map(math.exp, logits)))
    return {token: logit - total for token, logit in zip(choices(context), logits, strict=True)}


class FakeServer:
    """``requests`` holds the bodies of all completions in the order they came, ``times`` when each did."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.requests: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.seen: set[tuple[int, ...]] = set()
        self.drafted = self.accepted = 0
        self.started = time.monotonic()
        self._random = random.Random(5)
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                return

            def do_GET(self) -> None:
                outer.serve(self, None)

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                outer.serve(self, json.loads(self.rfile.read(length)))

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    def serve(self, handler: BaseHTTPRequestHandler, body: dict[str, Any] | None) -> None:
        """One request."""
        it, path = self.behaviour, handler.path
        if time.monotonic() - self.started < it.loading_s:
            told = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
            self._send(handler, 503, json.dumps(told).encode())
            return
        if it.hang_up and path == "/completion":
            handler.connection.close()
            return
        if it.stall_s and path == "/completion":
            time.sleep(it.stall_s)
        if path in it.raw or path in it.status:
            self._send(handler, it.status.get(path, 200), it.raw.get(path, b'{"error":{"message":"no"}}'))
            return
        with self._lock:
            answer = self._answer(path, body)
        if answer is None:
            self._send(handler, 404, b'{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}')
            return
        text = answer if isinstance(answer, str) else json.dumps(answer)
        self._send(handler, 200, text.encode())

    def _send(self, handler: BaseHTTPRequestHandler, status: int, data: bytes) -> None:
        with contextlib.suppress(OSError):
            handler.send_response(status)
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data)

    def _answer(self, path: str, body: dict[str, Any] | None) -> Any:
        it = self.behaviour
        if path == "/props":
            params: dict[str, Any] = {} if it.spec_types is None else {"speculative.types": it.spec_types}
            if it.switchable:
                params["speculative.n_max"] = 16
            told = {"default_generation_settings": {"params": params, "n_ctx": it.n_ctx}, "model_ftype": it.ftype}
            return {**told, "model_path": f"/models/{it.model}", "build_info": "b11434-toy", "eos_token": "</s>"}
        if path == "/health":
            return {"status": "ok"}
        if path == "/slots":
            return [{"id": 0, "speculative": it.draft is not None}]
        if path == "/metrics" and it.metrics:
            return (
                "# TYPE llamacpp:prompt_tokens_total counter\nllamacpp:prompt_tokens_total 5\n"
                f"llamacpp:spec_decode_num_draft_tokens_total {self.drafted}\n"
                f"llamacpp:spec_decode_num_accepted_tokens_total {self.accepted}\n"
                'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 3\n'
            )
        if path == "/tokenize" and it.tokenizes and body is not None:
            return {"tokens": list(self._ids(body["content"]))}
        if path == "/completion" and it.completion and body is not None:
            return self._completion(body)
        if path == "/v1/completions" and it.openai and body is not None:
            return self._openai(body)
        return None

    def _ids(self, prompt: str | list[int]) -> tuple[int, ...]:
        if isinstance(prompt, str):
            return self.behaviour.vocabulary.get(prompt, tuple(prompt.encode()))
        return tuple(prompt)

    def _generated(self, prompt: tuple[int, ...], n: int, quiet: bool) -> tuple[int, ...]:
        it = self.behaviour
        if prompt in it.answers:
            return it.answers[prompt][:n]
        made: list[int] = []
        for i in range(n if quiet else max(1, n - it.cut)):
            options = choices((*prompt, *made))
            flips = it.flip_at == i and n > 1 and not quiet
            flips = flips or (i == 3 and len(self.requests) in it.wobble)
            made.append(options[it.flip_to if flips else 0])
        return tuple(made)

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        it = self.behaviour
        self.requests.append(body)
        self.times.append(time.monotonic())
        prompt = self._ids(body["prompt"])
        n, quiet = body["n_predict"], body.get("speculative.n_max") == 0
        made = self._generated(prompt, n, quiet)
        told: dict[str, Any] = {"content": bytes(made).decode("latin-1"), "tokens": list(made), "model": it.model}
        if body.get("n_probs") and it.probs:
            told["completion_probabilities"] = self._rows(prompt, made, body["n_probs"])
        told["timings"] = self._timings(prompt, n, quiet)
        return {name: value for name, value in told.items() if name not in it.forget}

    def _rows(self, prompt: tuple[int, ...], made: tuple[int, ...], n: int) -> list[dict[str, Any]]:
        it, rows = self.behaviour, []
        for i, token in enumerate(made):
            gap = it.prefill_gap if i == 0 and it.prefill_gap is not None else it.gap
            likely = row((*prompt, *made[:i]), gap)
            top = [{"id": key, "token": chr(key), "logprob": value} for key, value in list(likely.items())[:n]]
            rows.append({"id": token, "token": chr(token), "logprob": likely.get(token, -20.0), "top_logprobs": top})
            if it.draft is not None and i % 3 == 2:  # out of a verified draft: no probabilities
                rows[-1] |= {"logprob": 0.0, "top_logprobs": []}
        return rows

    def _timings(self, prompt: tuple[int, ...], n: int, quiet: bool) -> dict[str, Any]:
        it = self.behaviour
        known, self.seen = prompt in self.seen, self.seen | {prompt}
        cached = len(prompt) - 1 if known and it.keeps_prompts else 0
        factor = it.repeat_factor if known else 1.0
        noise = [1 + it.spread * (self._random.random() - 0.5) for _ in range(2)]
        told: dict[str, Any] = {
            "cache_n": cached,
            "prompt_n": len(prompt) - cached,
            "prompt_ms": 1e3 * (len(prompt) - cached) / (it.prefill_tps * noise[0]),
            "predicted_n": n,
            "predicted_ms": 1e3 * n / (it.decode_tps * noise[1] * factor),
        }
        if it.draft is not None and not quiet:
            drafted, accepted = it.repeat_draft if known and it.repeat_draft else it.draft
            told["draft_n"], told["draft_n_accepted"] = drafted, accepted
            self.drafted, self.accepted = self.drafted + drafted, self.accepted + accepted
        return {name: value for name, value in {**told, **it.timings}.items() if name not in it.forget}

    def _openai(self, body: dict[str, Any]) -> dict[str, Any]:
        it = self.behaviour
        self.requests.append(body)
        self.times.append(time.monotonic())
        prompt = self._ids(body["prompt"])
        made = self._generated(prompt, body["max_tokens"], quiet=False)
        choice: dict[str, Any] = {"text": bytes(made).decode("latin-1"), "index": 0, "logprobs": None}
        if body.get("logprobs") and it.probs:
            rows = self._rows(prompt, made, body["logprobs"])
            if it.openai == "llama":
                choice["logprobs"] = {"content": rows}
            else:
                top = [{item["token"]: item["logprob"] for item in one["top_logprobs"]} for one in rows]
                choice["logprobs"] = {"tokens": [one["token"] for one in rows], "top_logprobs": top}
        return {"choices": [choice], "model": it.model, "object": "text_completion"}


@contextlib.contextmanager
def serving(**behaviour: Any) -> Iterator[FakeServer]:
    """A fake that listens for the length of the block."""
    server = FakeServer(Behaviour(**behaviour))
    try:
        yield server
    finally:
        server.close()
