# SPDX-License-Identifier: Apache-2.0
"""The fetched models, for tests marked ``model``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reference_engine.model_cache import MODELS, find_model

OF_CI = "smollm2"


def need_model(name: str = OF_CI) -> Path:
    """The file. Where it was not fetched the test is skipped; with CI set it fails: there make model has run."""
    path = find_model(name)
    if path is None:
        if os.environ.get("CI") and name == OF_CI:
            pytest.fail(f"{MODELS[name].file} is not there: make model was not run")
        pytest.skip(f"{MODELS[name].file} is not there: make model MODEL={name} brings it")
    return path
