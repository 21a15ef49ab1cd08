# SPDX-License-Identifier: Apache-2.0
"""Checks a report against the JSON Schema in ``reports/schema`` without any package.

It understands the part of JSON Schema 2020-12 that schema uses, and refuses to start with a schema that uses more.
Two depths: ``problems`` applies all of it; ``misshapen`` only what a reader cannot do without (sections, records,
types), so that a report with a word this version does not know can still be shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from reports.text import inert

SCHEMA = Path(__file__).resolve().parent / "schema" / "capability_report.schema.json"

Schema = dict[str, Any]
Problem = tuple[str, str]
"""Where (a JSON pointer) and what is wrong there."""

_NAMES = frozenset({"$schema", "$id", "$defs", "title", "description"})
_STRICT_ONLY = frozenset({"pattern", "minimum", "minLength", "minItems", "propertyNames", "if", "then", "else"})
_RULES = frozenset(
    {"type", "required", "properties", "items", "additionalProperties", "allOf", "const", "enum", "$ref", *_STRICT_ONLY}
)


def problems(value: Any, limit: int = 100, *, schema: Path = SCHEMA) -> list[Problem]:
    """What the schema (that of capability reports, if not said) has against ``value``, the first ``limit`` of it."""
    found: list[Problem] = []
    root = load_schema(schema)
    for problem in _Checker(root, strict=True).check(value, root, ""):
        found.append(problem)
        if len(found) == limit:
            break
    return found


def misshapen(report: Any) -> str | None:
    """The first thing that keeps readers from using ``report``, as words; None for a usable one."""
    root = load_schema(SCHEMA)
    for where, what in _Checker(root, strict=False).check(report, root, ""):
        return f"{where or 'the whole'}: {what}"
    return None


@lru_cache(maxsize=4)
def load_schema(path: Path) -> Schema:
    """The schema in ``path``. Raises ValueError when it uses a word this module does not know."""
    schema: Schema = json.loads(path.read_text(encoding="utf-8"))
    for part in _parts(schema):
        unknown = set(part) - _NAMES - _RULES
        if unknown:
            raise ValueError(f"{path.name} uses {sorted(unknown)}, which reports/shape.py does not know")
    return schema


def _parts(schema: Schema) -> Iterator[Schema]:
    yield schema
    for key in ("items", "additionalProperties", "propertyNames", "if", "then", "else"):
        if key in schema:
            yield from _parts(schema[key])
    for key in ("properties", "$defs"):
        for part in schema.get(key, {}).values():
            yield from _parts(part)
    for part in schema.get("allOf", ()):
        yield from _parts(part)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
}


def _type_of(value: Any) -> str:
    return next(
        name for name in ("null", "boolean", "integer", "number", "string", "array", "object") if _TYPES[name](value)
    )


@dataclass(frozen=True)
class _Checker:
    root: Schema
    strict: bool

    def check(self, value: Any, schema: Schema, where: str) -> Iterator[Problem]:
        if "$ref" in schema:
            yield from self.check(value, self.root["$defs"][schema["$ref"].rpartition("/")[2]], where)
        kinds = schema.get("type")
        if kinds is not None:
            kinds = [kinds] if isinstance(kinds, str) else kinds
            if not _TYPES[kinds[0]](value) and not any(_TYPES[kind](value) for kind in kinds[1:]):
                yield where, f"{_type_of(value)} in place of {' or '.join(kinds)}"
                return
        if "const" in schema or "enum" in schema:
            yield from self._one_of(value, schema.get("enum", [schema.get("const")]), where)
        if isinstance(value, dict):
            yield from self._object(value, schema, where)
        elif isinstance(value, list):
            yield from self._array(value, schema, where)
        elif self.strict:
            yield from _plain(value, schema, where)
        for part in schema.get("allOf", ()):
            yield from self.check(value, part, where)
        if self.strict and "if" in schema:
            holds = next(self.check(value, schema["if"], where), None) is None
            yield from self.check(value, schema.get("then" if holds else "else", {}), where)

    def _one_of(self, value: Any, words: list[Any], where: str) -> Iterator[Problem]:
        if self.strict:
            if not any(value == word and isinstance(value, bool) == isinstance(word, bool) for word in words):
                shown = ", ".join(json.dumps(word) for word in words)
                yield where, f"{inert(json.dumps(value), 60)} in place of {shown}"
        elif not any(_type_of(value) == _type_of(word) for word in words):
            yield where, f"{_type_of(value)} in place of {_type_of(words[0])}"

    def _array(self, value: list[Any], schema: Schema, where: str) -> Iterator[Problem]:
        if self.strict and len(value) < schema.get("minItems", 0):
            yield where, f"{len(value)} items; at least {schema['minItems']} belong here"
        if "items" in schema:
            for index, item in enumerate(value):
                yield from self.check(item, schema["items"], f"{where}/{index}")

    def _object(self, value: dict[str, Any], schema: Schema, where: str) -> Iterator[Problem]:
        for key in schema.get("required", ()):
            if key not in value:
                yield where, f"{key} is missing"
        known = schema.get("properties", {})
        for key, part in known.items():
            if key in value:
                yield from self.check(value[key], part, f"{where}/{key}")
        more, names = schema.get("additionalProperties"), schema.get("propertyNames")
        for key, item in value.items():
            if self.strict and names is not None:
                for _, what in self.check(key, names, where):
                    yield where, f"the key {inert(key, 60)!r}: {what}"
            if more is not None and key not in known:
                yield from self.check(item, more, f"{where}/{inert(key, 60)}")


def _plain(value: Any, schema: Schema, where: str) -> Iterator[Problem]:
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield where, "an empty text"
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield where, f"{inert(value, 60)!r} does not match {schema['pattern']}"
    elif _is_number(value) and "minimum" in schema and value < schema["minimum"]:
        yield where, f"{value} is less than {schema['minimum']}"
