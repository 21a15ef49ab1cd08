# SPDX-License-Identifier: Apache-2.0
"""What a check of a service works with: the service, the one beside it, and what is known of the model."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.bench import BaseBench, CannotOpen, NotServed
from conformance.server.client import Client, Loading, ServerError
from conformance.server.replies import Props
from conformance.server.texts import KINDS, fresh_prompt
from reference_engine.gguf_errors import GgufError
from reference_engine.gguf_file import open_gguf

WAIT_S = 30.0
"""For a service that is still loading its model."""

LEAST_CONTEXT = 512


@dataclass(kw_only=True)
class ServerBench(BaseBench):
    """``off`` is the same model without what ``server`` has on: speculation, or the NPU. None: there is none.

    ``f32``: the weights are F32 (None: unknown). ``kv_f32``: so is the KV cache, which no service tells.
    """

    server: Client
    props: Props
    off: Client | None = None
    off_props: Props | None = None
    f32: bool | None = None
    kv_f32: bool | None = None
    _sent: set[str] = field(default_factory=set)

    def fresh(self, count: int, kinds: tuple[str, ...] = KINDS) -> list[str]:
        """Prompts that this run has not sent yet, the kinds in turn. NotServed where the context cannot hold one."""
        if self.props.n_ctx is not None and self.props.n_ctx < LEAST_CONTEXT:
            held = f"{self.server.url} has a context of {self.props.n_ctx} tokens"
            raise NotServed(f"{held}, and a prompt with its answer takes up to {LEAST_CONTEXT}")
        made: list[str] = []
        while len(made) < count:
            text = fresh_prompt(kinds[len(made) % len(kinds)], self.random)
            if text not in self._sent:
                self._sent.add(text)
                made.append(text)
        return made

    @property
    def weights(self) -> str:
        """What is known of the weights, in words."""
        return {True: "F32 weights", False: "quantised weights", None: "weights of unknown type"}[self.f32]


def open_server(request: dict[str, Any], *, wait_s: float = WAIT_S) -> ServerBench:
    """Raises :class:`CannotOpen` where a service does not answer, or still loads after ``wait_s``."""
    timeout_s = max(1.0, 0.9 * float(request["deadline_s"]))
    server, props = _reach(request["server"], timeout_s, wait_s)
    off, off_props = (None, None)
    if request.get("server_off"):
        off, off_props = _reach(request["server_off"], timeout_s, wait_s)
        one, other = props.model, off_props.model
        if one and other and one != other:
            raise CannotOpen(f"--server serves {one}, --server-off {other}: both have to serve the same model")
    model = request.get("model")
    return ServerBench(
        level=request["level"],
        seed=int(request["seed"]),
        check=request["check"],
        server=server,
        props=props,
        off=off,
        off_props=off_props,
        f32=props.all_f32 if model is None else _all_f32(Path(model)),
        kv_f32={"f32": True, None: None}.get(request.get("server_kv"), False),
    )


def _reach(url: str, timeout_s: float, wait_s: float) -> tuple[Client, Props]:
    end = time.monotonic() + wait_s
    try:
        client = Client(url, timeout_s=timeout_s)
        while True:
            try:
                return client, client.props()
            except Loading as error:
                if time.monotonic() >= end:
                    raise CannotOpen(
                        f"{error}: it still loads after {wait_s:g} s; start the run again later"
                    ) from error
                time.sleep(0.2)
    except ServerError as error:
        raise CannotOpen(str(error)) from error


def _all_f32(path: Path) -> bool:
    try:
        with open_gguf(path, header_only=True) as model:
            return all(tensor.type.name == "F32" for tensor in model.tensors.values())
    except (GgufError, OSError) as error:
        raise CannotOpen(f"--model {path} is no readable GGUF: {error}") from error
