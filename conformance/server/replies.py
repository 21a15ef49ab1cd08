# SPDX-License-Identifier: Apache-2.0
"""What a service answers, read field by field: what is used is checked, what is missing is None, nothing is trusted.

Names of fields: llama.cpp b11434, tools/server/server-task.cpp and server-common.cpp (``timings``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reports.text import inert

MAX_TOKENS = 1 << 20
MAX_TEXT = 1 << 22
MAX_ID = 1 << 31


class Garbage(ValueError):
    """The answer is none of this kind; the message names the field."""


@dataclass(frozen=True)
class Row:
    """The choice at one step: the token that was taken, and the log-probabilities (nats) of the most likely ones.

    ``token`` and the keys of ``logprobs`` are ids where the service gives ids, else texts. ``logprobs`` is empty where
    the service gives none: llama.cpp b11434 fills it for no token that came out of a verified draft
    (server-context.cpp, "set result.probs").
    """

    token: int | str
    logprobs: Mapping[int | str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Timings:
    """Counts of tokens, and milliseconds; None is what the service does not say. ``draft_n`` counts drafted tokens."""

    cache_n: int | None = None
    prompt_n: int | None = None
    prompt_ms: float | None = None
    predicted_n: int | None = None
    predicted_ms: float | None = None
    draft_n: int | None = None
    draft_n_accepted: int | None = None

    @property
    def prefill_tps(self) -> float | None:
        """Tokens of the prompt per second, cached ones not counted."""
        return _rate(self.prompt_n, self.prompt_ms)

    @property
    def decode_tps(self) -> float | None:
        """Generated tokens per second."""
        return _rate(self.predicted_n, self.predicted_ms)


@dataclass(frozen=True)
class Completion:
    """One continuation. ``tokens``: ids, or None where the service gives none; ``seconds``: of the whole exchange."""

    text: str
    tokens: tuple[int, ...] | None
    rows: tuple[Row, ...]
    timings: Timings
    model: str = ""
    seconds: float = 0.0

    @property
    def steps(self) -> tuple[int | str, ...]:
        """What is compared: ids, else the texts of tokens, else characters."""
        if self.tokens is not None:
            return self.tokens
        return tuple(row.token for row in self.rows) or tuple(self.text)

    def taking(self, seconds: float) -> Completion:
        """The same with the time it took."""
        return replace(self, seconds=seconds)


@dataclass(frozen=True)
class Props:
    """What a service says of itself; empty or None is unknown.

    ``spec_types``: names of the strategies, ``none`` for no speculation. ``switchable``: a request can set
    ``speculative.n_max`` (older llama.cpp; b11434 has that code, compiled out). ``eos``: text of the end token.
    """

    model: str = ""
    ftype: str = ""
    build: str = ""
    spec_types: str | None = None
    switchable: bool = False
    n_ctx: int | None = None
    eos: str = ""

    @property
    def all_f32(self) -> bool | None:
        """Whether the weights are F32: llama.cpp's name of that file type is ``all F32``. None where it is not said."""
        return None if not self.ftype else self.ftype.replace("(guessed)", "").strip() == "all F32"

    @property
    def speculates(self) -> bool | None:
        """Whether strategies are configured, None where it is not said."""
        return None if self.spec_types is None else self.spec_types.strip().lower() not in ("", "none")


@dataclass(frozen=True)
class Metrics:
    """Counters of ``/metrics``, by name without the prefix ``llamacpp:``."""

    values: Mapping[str, float]

    def get(self, name: str) -> float | None:
        """One of them, None where it is not there."""
        return self.values.get(name)


def read_completion(told: Any) -> Completion:
    """The answer of ``/completion``. :class:`Garbage` for anything else."""
    record = _object(told, "the answer")
    text = _text(record, "content")
    if text is None:
        raise Garbage("it has no field 'content'")
    tokens = None
    if record.get("tokens") not in (None, []):
        tokens = read_ids(record["tokens"])
    rows = _rows(record.get("completion_probabilities"))
    if tokens is None and rows and all(isinstance(row.token, int) for row in rows):
        tokens = tuple(int(row.token) for row in rows)
    return Completion(text, tokens, rows, _timings(record.get("timings")), inert(record.get("model") or "", 120))


def read_openai(told: Any) -> Completion:
    """The answer of ``/v1/completions``, with log-probabilities in the old form (lists) or in llama.cpp's."""
    record = _object(told, "the answer")
    choices = record.get("choices")
    if not isinstance(choices, list) or not choices:
        raise Garbage("it has no 'choices'")
    choice = _object(choices[0], "choices[0]")
    text = _text(choice, "text")
    if text is None:
        raise Garbage("choices[0] has no field 'text'")
    given = choice.get("logprobs")
    rows: tuple[Row, ...] = ()
    if isinstance(given, dict):
        rows = _rows(given["content"]) if "content" in given else _listed(given)
    ids = tuple(row.token for row in rows if isinstance(row.token, int))
    tokens = ids if rows and len(ids) == len(rows) else None
    return Completion(text, tokens, rows, _timings(record.get("timings")), inert(record.get("model") or "", 120))


def read_props(told: Any) -> Props:
    """The answer of ``/props``: fields that are not there are unknown."""
    record = _object(told, "the answer")
    settings = record.get("default_generation_settings")
    settings = settings if isinstance(settings, dict) else {}
    nested = settings.get("params")
    params = nested if isinstance(nested, dict) else settings
    types = params.get("speculative.types", params.get("speculative.type"))
    path = record.get("model_path") or record.get("model_alias") or ""
    n_ctx = settings.get("n_ctx")
    return Props(
        model=inert(str(path).replace("\\", "/").rsplit("/", 1)[-1], 120),
        ftype=inert(record.get("model_ftype") or "", 60),
        build=inert(record.get("build_info") or "", 60),
        spec_types=inert(types, 120) if isinstance(types, str) else None,
        switchable="speculative.n_max" in params,
        n_ctx=n_ctx if isinstance(n_ctx, int) and not isinstance(n_ctx, bool) and n_ctx > 0 else None,
        eos=inert(record.get("eos_token") or "", 60),
    )


_SAMPLE = re.compile(r"^(?:llamacpp:)?([A-Za-z_][A-Za-z0-9_]{0,80})\s+([-+0-9.eE]{1,40})\s*$")


def read_metrics(text: str) -> Metrics:
    """Samples without labels of a Prometheus page; :class:`Garbage` where there is none."""
    found: dict[str, float] = {}
    for line in text.splitlines()[:10_000]:
        match = _SAMPLE.match(line[:200])
        if match is None:
            continue
        try:
            value = float(match[2])
        except ValueError:
            continue
        if math.isfinite(value):
            found[match[1]] = value
    if not found:
        raise Garbage(f"there is no sample in it; it begins with {inert(text, 60)!r}")
    return Metrics(found)


def read_tokens(told: Any) -> tuple[int, ...]:
    """The answer of ``/tokenize``."""
    return read_ids(_object(told, "the answer").get("tokens"))


def read_ids(told: Any) -> tuple[int, ...]:
    """A list of token ids."""
    if not isinstance(told, list) or len(told) > MAX_TOKENS:
        raise Garbage("'tokens' is no list of token ids")
    for item in told:
        if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < MAX_ID:
            raise Garbage(f"'tokens' has {inert(item, 40)} in place of a token id")
    return tuple(told)


def _object(told: Any, what: str) -> dict[str, Any]:
    if not isinstance(told, dict):
        raise Garbage(f"{what} is {type(told).__name__} in place of an object")
    return told


def _text(record: Mapping[str, Any], name: str) -> str | None:
    value = record.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise Garbage(f"'{name}' is no text")
    return value


def _rows(told: Any) -> tuple[Row, ...]:
    """One object for each token: id, token, logprob, top_logprobs."""
    if told is None:
        return ()
    if not isinstance(told, list) or len(told) > MAX_TOKENS:
        raise Garbage("the log-probabilities are no list")
    found = []
    for item in told:
        record = _object(item, "a step of the log-probabilities")
        top = record.get("top_logprobs") or []
        if not isinstance(top, list):
            raise Garbage("'top_logprobs' is no list")
        likely = {}
        for other in top[:1000]:
            one = _object(other, "an item of 'top_logprobs'")
            likely[_name(one)] = _logprob(one.get("logprob"))
        found.append(Row(_name(record), likely))
    return tuple(found)


def _listed(told: Mapping[str, Any]) -> tuple[Row, ...]:
    """The old form: lists ``tokens`` and ``top_logprobs`` side by side."""
    tokens, top = told.get("tokens"), told.get("top_logprobs")
    if not isinstance(tokens, list) or len(tokens) > MAX_TOKENS or not all(isinstance(item, str) for item in tokens):
        raise Garbage("'logprobs' has no list of tokens")
    rows: list[Mapping[int | str, float]] = [{} for _ in tokens]
    if isinstance(top, list) and len(top) == len(tokens):
        rows = [_likely(item) for item in top]
    return tuple(Row(token, likely) for token, likely in zip(tokens, rows, strict=True))


def _likely(told: Any) -> dict[int | str, float]:
    return {} if told is None else {name: _logprob(value) for name, value in _object(told, "a step").items()}


def _name(record: Mapping[str, Any]) -> int | str:
    number = record.get("id")
    if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < MAX_ID:
        return number
    text = record.get("token")
    if not isinstance(text, str):
        raise Garbage("a step of the log-probabilities names no token")
    return text


def _logprob(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -1e30 < value <= 1e-3:
        # llama.cpp writes the lowest float32 for a probability of zero.
        if isinstance(value, (int, float)) and value <= -1e30:
            return -math.inf
        raise Garbage(f"'logprob' is {inert(value, 40)} in place of a logarithm of a probability")
    return float(value)


def _timings(told: Any) -> Timings:
    """All None where there are none; a field that is no number is refused."""
    if told is None:
        return Timings()
    record = _object(told, "'timings'")
    return Timings(
        cache_n=_count(record, "cache_n"),
        prompt_n=_count(record, "prompt_n"),
        prompt_ms=_positive(record, "prompt_ms"),
        predicted_n=_count(record, "predicted_n"),
        predicted_ms=_positive(record, "predicted_ms"),
        draft_n=_count(record, "draft_n"),
        draft_n_accepted=_count(record, "draft_n_accepted"),
    )


def _count(record: Mapping[str, Any], name: str) -> int | None:
    value = record.get(name)
    if value is None or (isinstance(value, int) and value < 0):
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value > MAX_ID:
        raise Garbage(f"timings: '{name}' is {inert(value, 40)} in place of a count")
    return value


def _positive(record: Mapping[str, Any], name: str) -> float | None:
    value = record.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise Garbage(f"timings: '{name}' is {inert(value, 40)} in place of milliseconds")
    return float(value) if value > 0 else None


def _rate(count: int | None, milliseconds: float | None) -> float | None:
    return None if not count or not milliseconds else count * 1e3 / milliseconds
