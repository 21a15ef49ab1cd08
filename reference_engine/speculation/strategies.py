# SPDX-License-Identifier: Apache-2.0
"""Strategies by llama.cpp's names, with its defaults for what is not asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reference_engine.speculation.draft_model import DraftModel
from reference_engine.speculation.drafter import Drafter, SpeculationError
from reference_engine.speculation.mtp import Mtp, MtpHead
from reference_engine.speculation.ngram_cache import Counts, NgramCache
from reference_engine.speculation.ngram_cache_file import read_counts
from reference_engine.speculation.ngram_map import NgramMap
from reference_engine.speculation.ngram_map_compat import NgramMapCompat
from reference_engine.speculation.ngram_mod import NgramMod
from reference_engine.speculation.ngram_simple import NgramSimple
from reference_engine.speculation.stack import ORDER, Stack
from reference_engine.speculation.verify import SequenceModel

ALIASES = {"mtp": "draft-mtp", "draft": "draft-simple"}


@dataclass(frozen=True)
class NgramSizes:
    """What ngram-simple, ngram-map-k or ngram-map-k4v has of its own; None: what is said for all three."""

    size_n: int | None = None
    size_m: int | None = None
    min_hits: int | None = None


@dataclass(frozen=True)
class StrategyOptions:
    """Parameters under llama.cpp's names (``--spec-draft-n-max`` is ``draft_n_max``). None: the strategy's default.

    ``size_n``, ``size_m`` and ``min_hits`` are for the three strategies that have them; ``own`` goes before, by name.
    """

    draft_n_max: int = 3
    draft_n_min: int = 0
    draft_p_min: float = 0.0
    size_n: int | None = None
    size_m: int | None = None
    min_hits: int | None = None
    own: Mapping[str, NgramSizes] = field(default_factory=dict)
    n_match: int | None = None
    n_min: int | None = None
    n_max: int | None = None
    lookup_cache_static: Path | None = None
    lookup_cache_dynamic: Path | None = None
    compat: bool = False


def strategy_names(text: str) -> list[str]:
    """ "mtp,ngram-simple" to llama.cpp's names. SpeculationError for one that is unknown or named twice."""
    names = [ALIASES.get(name, name) for name in text.split(",")]
    for name in names:
        if name not in ORDER:
            known = ", ".join([*ORDER, *ALIASES])
            raise SpeculationError(f"there is no strategy {name!r}; known are {known}")
    if len(set(names)) != len(names):
        raise SpeculationError(f"a strategy is named twice: {text}")
    return names


def make_stack(
    names: Sequence[str],
    options: StrategyOptions,
    *,
    draft: Callable[[], SequenceModel] | None = None,
    mtp: Callable[[], MtpHead] | None = None,
) -> Stack:
    """Fresh strategies. SpeculationError where one needs a draft model that was not given."""
    return Stack([_made(name, options, draft, mtp) for name in names])


def _made(
    name: str,
    o: StrategyOptions,
    draft: Callable[[], SequenceModel] | None,
    mtp: Callable[[], MtpHead] | None,
) -> Drafter:
    if name == "draft-simple":
        if draft is None:
            raise SpeculationError("draft-simple needs a draft model: name one with --draft")
        return DraftModel(draft(), o.draft_n_max, o.draft_n_min, o.draft_p_min)
    if name == "draft-mtp":
        if mtp is None:
            raise SpeculationError("draft-mtp needs a drafter trained on the target (--draft), or a nextn block in it")
        return Mtp(mtp(), o.draft_n_max, o.draft_n_min, o.draft_p_min, compat=o.compat)
    return _ngram(name, o)


def _ngram(name: str, o: StrategyOptions) -> Drafter:
    own = o.own.get(name, NgramSizes())
    n, m = _first(own.size_n, o.size_n, 12), _first(own.size_m, o.size_m, 48)
    if name == "ngram-simple":
        return NgramSimple(n, m, compat=o.compat)
    if name == "ngram-mod":
        return NgramMod(_first(o.n_match, 24), _first(o.n_min, 48), _first(o.n_max, 64), compat=o.compat)
    if name == "ngram-cache":
        return NgramCache(_counts(o.lookup_cache_static), _counts(o.lookup_cache_dynamic), compat=o.compat)
    kind = NgramMapCompat if o.compat else NgramMap
    return kind(n, m, _first(own.min_hits, o.min_hits, 1), only_keys=name == "ngram-map-k")


def _first(*values: int | None) -> int:
    """The first that is given."""
    return next(value for value in values if value is not None)


def _counts(path: Path | None) -> Counts:
    return {} if path is None else read_counts(path)
