# SPDX-License-Identifier: Apache-2.0
"""Reads goldens and holds the engine's logits against the samples in them.

A golden is JSON: ``magic``, ``version``, ``made`` (peer, its version, its settings, the command or call), and for each
model the sha256 of the file that the peer was given. Logits are samples, not whole matrices: ``rows`` (positions in the
text) by ``columns`` (token ids), the float32 numbers of the peer.

To make one anew: load the F32 conversion of the file (llama-quantize --allow-requantize IN OUT F32; its weights are the
dequantised ones, bit for bit) in the peer with the settings that ``made`` names, evaluate ``tokens`` in one batch, and
store its logits at ``rows`` and ``columns``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC, VERSION = "rknpu-kit golden", 1

F32 = NDArray[np.float32]

NOISE_FACTOR = 3.0
"""How many times the distance of the peer from itself (one batch against token by token) the engine may be from it."""


def read_golden(name: str) -> dict[str, Any]:
    """The golden file of this name beside this module. AssertionError where it is not one of this version."""
    golden: dict[str, Any] = json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    assert (golden["magic"], golden["version"]) == (MAGIC, VERSION), f"{name} is no golden of version {VERSION}"
    assert golden["made"], "a golden without how it was made is worth nothing"
    return golden


def sample(logits: F32, golden: Mapping[str, Any]) -> NDArray[np.float64]:
    """The golden's rows and columns of ``logits`` [positions, n_vocab]."""
    return logits[np.ix_(golden["rows"], golden["columns"])].astype(np.float64)


def nmse(found: NDArray[np.float64], golden: Mapping[str, Any]) -> float:
    """Squared distance of a sample from the golden's, over the squared size of the golden's."""
    expected = _expected(golden)
    return float(np.square(found - expected).sum() / np.square(expected).sum())


def nmse_by_row(found: NDArray[np.float64], golden: Mapping[str, Any]) -> NDArray[np.float64]:
    """The same for each row of the sample."""
    expected = _expected(golden)
    by_row: NDArray[np.float64] = np.square(found - expected).sum(axis=1) / np.square(expected).sum(axis=1)
    return by_row


def _expected(golden: Mapping[str, Any]) -> NDArray[np.float64]:
    expected = np.array(golden["logits"], dtype=np.float64)
    assert expected.shape == (len(golden["rows"]), len(golden["columns"]))
    assert expected.std() > 0.1, "numbers that are all alike would show nothing"
    return expected
