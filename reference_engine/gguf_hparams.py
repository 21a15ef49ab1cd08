# SPDX-License-Identifier: Apache-2.0
"""Hyper-parameters of a model, held against the table of its architecture before anything computes with them.

A head count of 0 divides by zero, a ragged grouping of KV heads reads beyond its array: such files are refused with the
key's name (known from readers that crashed on them: 1bit-MONSTER issues 455, 366 and 1333).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Union

from reference_engine.gguf_errors import ARCHITECTURE, KEY_MISSING, KEY_VALUE, GgufError, quoted
from reference_engine.gguf_file import GgufFile
from reference_engine.gguf_hparam_table import ARCHITECTURES, SAME, Architecture, Key
from reference_engine.gguf_types import INTEGERS, ValueType
from reference_engine.gguf_values import GgufArray, Metadata
from reference_engine.gguf_vocabulary import special_token_warnings, vocabulary_size

Parameter = Union[int, float, str, tuple[int, ...], tuple[bool, ...], None]


@dataclass(frozen=True)
class Hparams:
    """Checked values by suffix (without ``<architecture>.``), defaults filled in.

    ``per_layer`` keys are tuples of one integer for each layer; an absent key without default is None.
    """

    architecture: str
    values: Mapping[str, Parameter]
    n_vocab: int

    def integer(self, suffix: str) -> int:
        value = self.values[suffix]
        if not isinstance(value, int):
            raise TypeError(f"hyper-parameter {suffix} is no integer: {value!r}")
        return value

    def number(self, suffix: str) -> float:
        value = self.values[suffix]
        if not isinstance(value, (int, float)):
            raise TypeError(f"hyper-parameter {suffix} is no number: {value!r}")
        return float(value)

    def optional_integer(self, suffix: str) -> int:
        """0 where the architecture or the file does not have it."""
        return 0 if self.values.get(suffix) is None else self.integer(suffix)

    def layers(self, suffix: str) -> tuple[int, ...]:
        """One value for each layer."""
        value = self.values[suffix]
        if not isinstance(value, tuple):
            raise TypeError(f"hyper-parameter {suffix} is not per layer: {value!r}")
        return value

    def head_size(self, layer: int, what: str = "key") -> int:
        """Elements of one head of a layer; layers in a window may have others. ``what``: key or value."""
        suffix = f"attention.{what}_length"
        return self.integer(f"{suffix}_swa" if f"{suffix}_swa" in self.values and self.in_window(layer) else suffix)

    def in_window(self, layer: int) -> bool:
        """The layer attends to a window of positions only."""
        return "attention.sliding_window_pattern" in self.values and bool(
            self.layers("attention.sliding_window_pattern")[layer]
        )

    def kv_source(self, layer: int) -> int:
        """The layer whose keys and values this one reads: itself, or an earlier one of its kind (gemma4).

        llama.cpp b11434 (llama-model.cpp): of the layers that share, those in a window read the last layer but one that
        has its own, the others the last one.
        """
        first = self.n_layer - self.optional_integer("attention.shared_kv_layers")
        return layer if layer < first else first - (2 if self.in_window(layer) else 1)

    @property
    def n_layer(self) -> int:
        """Layers of the model proper: blocks behind them that predict further tokens are not counted."""
        if self.architecture == "gemma4-assistant":  # all of its blocks predict
            return self.n_layer_all
        return self.n_layer_all - self.optional_integer("nextn_predict_layers")

    @property
    def n_layer_all(self) -> int:
        return self.integer("block_count")

    def recurrent(self, layer: int) -> bool:
        """The layer is a gated delta net (qwen35): as the file says, else all but each full_attention_interval-th."""
        if "full_attention_interval" not in self.values or layer >= self.n_layer:
            return False
        given = self.layers("attention.recurrent_layers")
        return bool(given[layer]) if any(given) else (layer + 1) % self.integer("full_attention_interval") != 0

    @property
    def n_embd(self) -> int:
        return self.integer("embedding_length")


@dataclass(frozen=True)
class HparamCheck:
    """``hparams`` is None where a problem stands in the way; ``problems`` holds all that were found."""

    hparams: Hparams | None
    problems: tuple[GgufError, ...]
    warnings: tuple[GgufError, ...] = ()


def load_hparams(model: GgufFile) -> Hparams:
    """The checked hyper-parameters. GgufError for the first problem; its message names the key."""
    check = check_hparams(model)
    if check.hparams is None:
        raise check.problems[0]
    return check.hparams


def check_hparams(model: GgufFile) -> HparamCheck:
    """Hold every key of the model's architecture against the table, and go on after a problem to find them all."""
    metadata = model.metadata
    try:
        name = model.architecture
    except GgufError as error:
        return HparamCheck(None, (_at(error, model),))
    table = ARCHITECTURES.get(name)
    if table is None:
        known = ", ".join(ARCHITECTURES)
        unknown = GgufError(
            ARCHITECTURE,
            f"architecture {quoted(name)} is not one of those this kit knows ({known})",
            metadata.offset("general.architecture"),
        )
        return HparamCheck(None, (_at(unknown, model),))
    problems: list[GgufError] = []
    values: dict[str, Parameter] = {}
    for key in table.keys:
        try:
            values[key.suffix] = _read(metadata, table, key, values)
        except GgufError as error:
            problems.append(error)
    if not problems:
        _fill_head_sizes(values, table, metadata, problems)
    if not problems:
        for relation in _RELATIONS:
            relation(values, table, metadata, problems)
    n_vocab = 0
    try:
        declared = values.get("vocab_size")
        n_vocab = vocabulary_size(model, declared if isinstance(declared, int) else None)
    except GgufError as error:
        problems.append(error)
    warnings = special_token_warnings(metadata, n_vocab) if n_vocab else ()
    for problem in (*problems, *warnings):
        _at(problem, model)
    return HparamCheck(None if problems else Hparams(name, values, n_vocab), tuple(problems), warnings)


def _at(error: GgufError, model: GgufFile) -> GgufError:
    error.path = model.parts[0].path
    return error


def _read(metadata: Metadata, table: Architecture, key: Key, values: Mapping[str, Parameter]) -> Parameter:
    full = f"{table.name}.{key.suffix}"
    if full not in metadata:
        if key.required:
            raise GgufError(KEY_MISSING, f"key {quoted(full)} is missing")
        return _default(key, values)
    if key.kind == "text":
        return _choice(metadata, full, key)
    if key.kind == "flags":
        return _flags(metadata, full, key, values)
    if key.kind == "number":
        return _bounded(metadata, full, key, metadata.number(full))
    if not key.per_layer:
        return int(_bounded(metadata, full, key, metadata.integer(full)))
    return _per_layer(metadata, full, key, values)


def _default(key: Key, values: Mapping[str, Parameter]) -> Parameter:
    if isinstance(key.default, str) and key.default.startswith(SAME):
        return values.get(key.default[len(SAME) :])
    if key.kind == "flags":
        period = int(key.default or 1)
        return tuple((i + 1) % period != 0 for i in range(_layers(values)))
    return key.default


def _layers(values: Mapping[str, Parameter]) -> int:
    count = values.get("block_count")
    return count if isinstance(count, int) else 0


def _bounded(metadata: Metadata, full: str, key: Key, value: float, item: str = "") -> float:
    """``value`` unless it is out of bounds; NaN is out of any."""
    inside = (
        (key.low is None or value >= key.low)
        and (key.high is None or value <= key.high)
        and (key.above is None or value > key.above)
    )
    if inside:
        return value
    low = f"above {key.above:g}" if key.above is not None else f"from {key.low:g}" if key.low is not None else ""
    high = f"up to {key.high:g}" if key.high is not None else ""
    bounds = f"{low} {high}".strip()
    if key.low == key.high:
        bounds = f"{key.low:g}"
    if key.unsupported:
        # Nothing is wrong with such a file; the engine cannot run it.
        sentence = f"key {quoted(full)} is {value}, and {key.unsupported} are not supported"
        raise GgufError(ARCHITECTURE, sentence, metadata.offset(full))
    raise GgufError(KEY_VALUE, f"key {quoted(full)}{item} is {value}; it must be {bounds}", metadata.offset(full))


def _choice(metadata: Metadata, full: str, key: Key) -> str:
    value = metadata.text(full)
    if value not in key.choices:
        choices = ", ".join(key.choices)
        raise GgufError(KEY_VALUE, f"key {quoted(full)} is {quoted(value)}; known are {choices}", metadata.offset(full))
    return value


def _per_layer(metadata: Metadata, full: str, key: Key, values: Mapping[str, Parameter]) -> tuple[int, ...]:
    n_layer = _layers(values)
    if metadata.value_type(full) is not ValueType.ARRAY:
        return (int(_bounded(metadata, full, key, metadata.integer(full))),) * n_layer
    found = metadata.array(full, INTEGERS, "integers")
    _one_each(metadata, full, found, n_layer)
    return tuple(int(_bounded(metadata, full, key, value, f"[{i}]")) for i, value in enumerate(found))


def _flags(metadata: Metadata, full: str, key: Key, values: Mapping[str, Parameter]) -> tuple[bool, ...]:
    """An array of booleans, true where the layer attends to a window only; or a period, whose last layer sees all."""
    n_layer = _layers(values)
    if metadata.value_type(full) is not ValueType.ARRAY:
        period = int(_bounded(metadata, full, key, metadata.integer(full)))
        return tuple((i + 1) % period != 0 for i in range(n_layer))
    found = metadata.array(full, INTEGERS | {ValueType.BOOL}, "booleans")
    _one_each(metadata, full, found, n_layer)
    return tuple(bool(value) for value in found)


def _one_each(metadata: Metadata, full: str, found: GgufArray, n_layer: int) -> None:
    # Where the number of layers itself was refused there is nothing to compare with.
    if n_layer and len(found) != n_layer:
        raise GgufError(
            KEY_VALUE,
            f"key {quoted(full)} has {len(found)} items; one for each of the {n_layer} layers is needed",
            metadata.offset(full),
        )
    if len(found) > 1 << 16:
        raise GgufError(KEY_VALUE, f"key {quoted(full)} has {len(found)} items", metadata.offset(full))


Values = dict[str, Parameter]
Relation = Callable[[Values, Architecture, Metadata, list[GgufError]], None]


def _refuse(problems: list[GgufError], table: Architecture, metadata: Metadata, suffix: str, sentence: str) -> None:
    full = f"{table.name}.{suffix}"
    problems.append(GgufError(KEY_VALUE, f"key {quoted(full)} {sentence}", metadata.offset(full)))


def _ints(values: Values, suffix: str) -> tuple[int, ...]:
    value = values[suffix]
    return value if isinstance(value, tuple) else (int(value or 0),)


def _fill_head_sizes(values: Values, table: Architecture, metadata: Metadata, problems: list[GgufError]) -> None:
    """Key and value length default to embedding_length / head_count, which must be whole and alike in all layers."""
    heads = set(_ints(values, "attention.head_count"))
    (n_embd,) = _ints(values, "embedding_length")
    for suffix in ("attention.key_length", "attention.value_length"):
        if values[suffix] is not None:
            continue
        ragged = [count for count in heads if n_embd % count]
        if ragged or len(heads) > 1:
            what = f"{ragged[0]} does not divide embedding_length {n_embd}" if ragged else "differs between layers"
            sentence = f"{what}, and there is no key '{table.name}.{suffix}'"
            _refuse(problems, table, metadata, "attention.head_count", sentence)
            return
        values[suffix] = n_embd // next(iter(heads))
    if values["rope.dimension_count"] is None:
        values["rope.dimension_count"] = values["attention.key_length"]
    if values["rope.scaling.factor"] is None:
        values["rope.scaling.factor"] = values["rope.scale_linear"] or 1.0


def _kv_heads_divide_heads(values: Values, table: Architecture, metadata: Metadata, problems: list[GgufError]) -> None:
    pairs = zip(_ints(values, "attention.head_count"), _ints(values, "attention.head_count_kv"), strict=True)
    for layer, (heads, kv_heads) in enumerate(pairs):
        if heads % kv_heads:
            _refuse(
                problems,
                table,
                metadata,
                "attention.head_count_kv",
                f"is {kv_heads}, which does not divide head_count {heads} (layer {layer})",
            )
            return


def _rope_turns_pairs_of_the_head(
    values: Values, table: Architecture, metadata: Metadata, problems: list[GgufError]
) -> None:
    (n_rot,), (head,) = _ints(values, "rope.dimension_count"), _ints(values, "attention.key_length")
    given = f"{table.name}.rope.dimension_count" in metadata
    suffix = "rope.dimension_count" if given else "attention.key_length"  # which then serves for both
    if n_rot % 2:
        _refuse(problems, table, metadata, suffix, f"is {n_rot}; dimensions turn in pairs")
    elif n_rot > head:
        _refuse(problems, table, metadata, suffix, f"is {n_rot}, more than key_length {head}")
    elif table.rope_is_whole_head and n_rot != head:
        # llama.cpp refuses it too: its llama graph turns the whole head.
        _refuse(problems, table, metadata, suffix, f"is {n_rot}; it must equal key_length {head}")


def _key_equals_value_length(
    values: Values, table: Architecture, metadata: Metadata, problems: list[GgufError]
) -> None:
    (key,), (value,) = _ints(values, "attention.key_length"), _ints(values, "attention.value_length")
    if key != value:
        _refuse(problems, table, metadata, "attention.value_length", f"is {value}; it must equal key_length {key}")


def _heads_in_a_window(values: Values, table: Architecture, metadata: Metadata, problems: list[GgufError]) -> None:
    if "attention.key_length_swa" not in values:
        return
    (key,), (value,) = _ints(values, "attention.key_length_swa"), _ints(values, "attention.value_length_swa")
    (n_rot,) = _ints(values, "rope.dimension_count_swa")
    if key != value:
        sentence = f"is {value}; it must equal key_length_swa {key}"
        _refuse(problems, table, metadata, "attention.value_length_swa", sentence)
    elif n_rot != key or n_rot % 2:
        given = f"{table.name}.rope.dimension_count_swa" in metadata
        suffix = "rope.dimension_count_swa" if given else "attention.key_length_swa"
        sentence = f"is {n_rot}; it must be even and equal key_length_swa {key}"
        _refuse(problems, table, metadata, suffix, sentence)


def _shared_layers_have_a_source(
    values: Values, table: Architecture, metadata: Metadata, problems: list[GgufError]
) -> None:
    """The layers that others read must be of their kind, as llama.cpp takes for granted."""
    shared = values.get("attention.shared_kv_layers")
    if not shared or table.name == "gemma4-assistant":
        return
    flags, suffix = values["attention.sliding_window_pattern"], "attention.shared_kv_layers"
    first = _layers(values) - int(shared)  # type: ignore[arg-type]
    if first < 2:
        _refuse(problems, table, metadata, suffix, f"is {shared}; at least two of the layers must have their own")
    elif isinstance(flags, tuple):
        for layer in range(first, len(flags)):
            source = first - (2 if flags[layer] else 1)
            if bool(flags[source]) != bool(flags[layer]):
                kind = "in a window" if flags[layer] else "global"
                sentence = f"is {shared}: layer {layer} is {kind} and would read layer {source}, which is not"
                _refuse(problems, table, metadata, suffix, sentence)
                return


def _every_layer_of_a_drafter_predicts(
    values: Values, table: Architecture, metadata: Metadata, problems: list[GgufError]
) -> None:
    if table.name != "gemma4-assistant":
        return
    predicting, suffix = values["nextn_predict_layers"], "nextn_predict_layers"
    if predicting != _layers(values):
        _refuse(problems, table, metadata, suffix, f"is {predicting}; it must equal block_count {_layers(values)}")
    if values["embedding_length_out"] == values["embedding_length"]:
        # llama.cpp refuses it too: it could not tell the drafter's width from the target's.
        _refuse(problems, table, metadata, "embedding_length_out", "equals embedding_length; it is the target's width")


def _delta_net_sizes_fit(values: Values, table: Architecture, metadata: Metadata, problems: list[GgufError]) -> None:
    if "ssm.state_size" not in values:
        return
    (size,), (heads,) = _ints(values, "ssm.state_size"), _ints(values, "ssm.time_step_rank")
    (groups,), (inner,) = _ints(values, "ssm.group_count"), _ints(values, "ssm.inner_size")
    if inner != size * heads:
        sentence = f"is {inner}; it must be state_size {size} times time_step_rank {heads}"
        _refuse(problems, table, metadata, "ssm.inner_size", sentence)
    elif heads % groups:
        _refuse(problems, table, metadata, "ssm.group_count", f"is {groups}, which does not divide {heads} heads")
    elif _ints(values, "nextn_predict_layers")[0] >= _layers(values):
        _refuse(problems, table, metadata, "nextn_predict_layers", "leaves no layer of the model proper")


_RELATIONS: tuple[Relation, ...] = (
    _kv_heads_divide_heads,
    _rope_turns_pairs_of_the_head,
    _key_equals_value_length,
    _heads_in_a_window,
    _shared_layers_have_a_source,
    _every_layer_of_a_drafter_predicts,
    _delta_net_sizes_fit,
)
