# SPDX-License-Identifier: Apache-2.0
"""The child of ``chat_template``: one request as JSON on standard input, one answer as JSON on standard output.

Run as a script; it imports jinja2 and nothing of the kit.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn


class Raised(Exception):
    """``raise_exception`` of a template."""


def main() -> None:
    """Set the limits, render, answer."""
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [entry for entry in sys.path if str(Path(entry or ".").resolve()) != here]
    request = json.loads(sys.stdin.buffer.read())
    cpu = int(request["cpu_seconds"])
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    resource.setrlimit(resource.RLIMIT_AS, (request["memory_bytes"],) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.write(json.dumps(answer(request)))


def answer(request: dict[str, Any]) -> dict[str, str]:
    """``{"text"}``, or ``{"kind", "message"}`` where there is none."""
    try:
        import jinja2  # noqa: PLC0415  under the limits, and its absence is an answer
    except ImportError as error:
        return {"kind": "missing", "message": str(error)}
    try:
        return {"text": render(request["template"], request["values"], int(request["output_characters"]))}
    except Raised as error:
        return {"kind": "raised", "message": str(error)}
    except jinja2.TemplateSyntaxError as error:
        return {"kind": "failed", "message": f"line {error.lineno}: {error.message}"}
    except MemoryError:
        return {"kind": "failed", "message": "it needs more memory than is allowed"}
    except RecursionError:
        return {"kind": "failed", "message": "it nests or recurses too deeply"}
    except Exception as error:  # a template can raise whatever an expression can
        return {"kind": "failed", "message": f"{type(error).__name__}: {error}"}


def render(template: str, values: dict[str, Any], most: int) -> str:
    """The text, with the settings and helpers that chat templates are written for (transformers' own)."""
    import jinja2  # noqa: PLC0415
    from jinja2 import ext, nodes, sandbox  # noqa: PLC0415

    class Generation(ext.Extension):
        """``{% generation %}`` marks what the assistant says; for a prompt the mark means nothing."""

        tags = {"generation"}  # noqa: RUF012  jinja2 asks for a class attribute

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    environment = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, ext.loopcontrols]
    )
    now = float(values.pop("now", time.time()))
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: time.strftime(form, time.localtime(now))
    pieces: list[str] = []
    length = 0
    stream: Iterator[str] = environment.from_string(template).generate(**values)
    for piece in stream:
        length += len(piece)
        if length > most:
            raise jinja2.TemplateRuntimeError(f"its output is longer than {most} characters")
        pieces.append(piece)
    return "".join(pieces)


def refuse(message: object = "") -> NoReturn:
    """What a template calls for messages that it does not take."""
    raise Raised(str(message))


def to_json(value: Any, indent: int | None = None, ensure_ascii: bool = False, sort_keys: bool = False) -> str:
    """JSON as transformers' filter writes it; jinja2's own escapes HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, sort_keys=sort_keys)


if __name__ == "__main__":
    main()
