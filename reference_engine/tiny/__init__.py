# SPDX-License-Identifier: Apache-2.0
"""Tiny models that come with the kit, trained by ``tools/tiny_models``: every command runs without a download."""

from __future__ import annotations

from pathlib import Path

NAMES = ("tiny-llama", "tiny-llama-draft", "tiny-gemma4", "tiny-gemma4-mtp", "tiny-qwen35")
DEFAULT = "tiny-llama"

DRAFTERS = {"tiny-llama": "tiny-llama-draft", "tiny-gemma4": "tiny-gemma4-mtp"}
"""What drafts for a model."""

_CODE = '''def mean(values):
    """Return the mean of a list of numbers."""
    total = 0
    for value in values:
        total += value
    return total / len(values)
'''
PROMPTS = {
    "prose": '"""The reader takes one line after the other from a file and gives each of them to the parser.\n\nIt',
    "copy": f"{_CODE}\n\n# the same once more\n{_CODE}\n\n# the same once more\n",
}
"""Texts for these models: one to go on with, one that repeats itself."""


def tiny_model(name: str) -> Path:
    """The file. KeyError for a name that is not in ``NAMES``."""
    if name not in NAMES:
        raise KeyError(name)
    return Path(__file__).with_name(f"{name}.gguf")
