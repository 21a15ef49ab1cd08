# SPDX-License-Identifier: Apache-2.0
"""A model's chat template, rendered in a child process: the template is a program out of an untrusted file.

jinja2's immutable sandbox keeps it from attributes and from changing what it is given, but not from looping or from
multiplying strings; a child with limits on processor time, memory and output does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reference_engine.gguf_errors import quoted
from reference_engine.gguf_tensor import MissingPackage
from reference_engine.tokenizer.errors import TokenizerError

CHILD = Path(__file__).with_name("chat_child.py")

CPU_SECONDS = 5
WALL_SECONDS = 30.0
MEMORY_BYTES = 512 << 20
OUTPUT_CHARACTERS = 4 << 20


def render_chat(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    add_generation_prompt: bool,
    bos_token: str,
    eos_token: str,
    values: Mapping[str, Any] | None = None,
    cpu_seconds: int = CPU_SECONDS,
) -> str:
    """The prompt that ``template`` makes of ``messages``.

    ``values`` are further variables (tools, enable_thinking, ...); the time that ``strftime_now`` tells is the
    machine's, unless ``values`` has ``now``, seconds since 1970. TokenizerError with one sentence for whatever goes
    wrong in the template, a limit included; MissingPackage without jinja2.
    """
    try:
        request = json.dumps(
            {
                "template": template,
                "values": {
                    **(values or {}),
                    "messages": list(messages),
                    "add_generation_prompt": add_generation_prompt,
                    "bos_token": bos_token,
                    "eos_token": eos_token,
                },
                "cpu_seconds": cpu_seconds,
                "memory_bytes": MEMORY_BYTES,
                "output_characters": OUTPUT_CHARACTERS,
            }
        )
    except (TypeError, ValueError) as error:
        raise TokenizerError(f"the messages cannot be handed to the chat template: {error}") from error
    return _outcome(*_run_child(request))


def _run_child(request: str) -> tuple[int, bytes]:
    """Exit code and standard output of the child, killed at the deadline."""
    try:
        done = subprocess.run(
            [sys.executable, str(CHILD)],
            input=request.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=WALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TokenizerError(
            f"the chat template did not come to an end in {WALL_SECONDS:g} seconds; use a model with another template"
        ) from error
    except OSError as error:
        raise TokenizerError(f"no process could be started to render the chat template: {error}") from error
    return done.returncode, done.stdout


def _outcome(code: int, output: bytes) -> str:
    try:
        answer = json.loads(output) if output else {}
    except ValueError:
        answer = {}
    if "text" in answer:
        return str(answer["text"])
    if answer.get("kind") == "missing":
        raise MissingPackage(
            f"A chat template needs the jinja2 package, which cannot be imported ({answer['message']}): "
            "in the checkout: pip install '.[engine]'"
        )
    if answer.get("kind") == "raised":
        raise TokenizerError(f"the chat template refuses these messages: {quoted(answer['message'], 300)}")
    if "message" in answer:
        raise TokenizerError(f"the chat template cannot be rendered: {quoted(answer['message'], 300)}")
    ended = f"signal {-code}" if code < 0 else f"exit code {code}"
    raise TokenizerError(
        f"the chat template exceeded its limits of {CPU_SECONDS} s of processor time and {MEMORY_BYTES >> 20} MiB, or "
        f"its process was ended from outside ({ended}); use a model with another template"
    )
