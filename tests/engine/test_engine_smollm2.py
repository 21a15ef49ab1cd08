# SPDX-License-Identifier: Apache-2.0
"""The engine on SmolLM2-135M-Instruct: it answers, and its bits depend on neither batch, threads nor kernels."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from reference_engine.backends import make_backend
from reference_engine.gguf_file import open_gguf
from reference_engine.kernels.library import load_library
from reference_engine.model import Model
from tests.real_model import need_model

pytestmark = pytest.mark.model
ROOT = Path(__file__).parents[2]
# "The capital of France is Paris, and the", as the model's own tokenizer has it.
TOKENS = [504, 3575, 282, 4649, 314, 7042, 28, 284, 260]
PARIS = 7042


@pytest.fixture(scope="module")
def path() -> Path:
    return need_model()


@pytest.fixture(scope="module", params=["float", "npu:w8a8-per-channel"])
def model(request: pytest.FixtureRequest, path: Path) -> Iterator[Model]:
    with Model.load(path, make_backend(request.param, threads=2), n_ctx=64, threads=2) as opened:
        yield opened


def test_it_knows_the_capital_of_france(model: Model) -> None:
    logits = model.forward(TOKENS[:5], model.new_cache()).logits[-1]
    assert int(np.argmax(logits)) == PARIS


def test_a_token_alone_and_in_any_batch_has_the_same_bits(model: Model) -> None:
    whole = model.forward(TOKENS, model.new_cache(), rows="all").logits
    assert np.isfinite(whole).all()
    for size in (1, 2, 4):
        cache = model.new_cache()
        parts = [model.forward(TOKENS[at : at + size], cache, rows="all").logits for at in range(0, len(TOKENS), size)]
        assert np.array_equal(np.concatenate(parts).view(np.int32), whole.view(np.int32))


def test_threads_and_kernels_leave_no_trace(model: Model, path: Path) -> None:
    """Over three layers: numpy alone needs seconds for each."""
    library = load_library()
    if library is None:
        pytest.skip("the kernels are not built")
    bits = []
    for kernels, threads in ((library, 1), (library, 3), (None, 1)):
        backend = make_backend(model.backend.name, threads=threads, kernels=kernels)
        with Model.load(path, backend, n_ctx=16, layers=range(3), threads=threads, head=False) as three:
            bits.append(three.forward(TOKENS, three.new_cache(), rows="all").hidden.view(np.int32))
    assert np.array_equal(bits[0], bits[1])
    assert np.array_equal(bits[0], bits[2])


def test_a_question_is_answered_through_the_chat_template(path: Path) -> None:
    command = [sys.executable, "-m", "reference_engine", "run", "smollm2", "--chat", "-n", "16", "--json"]
    done = subprocess.run(
        [*command, "-p", "What is the capital of France?", "--stop", "."],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    document = json.loads(done.stdout)
    assert document["text"] == "The capital of France is Paris"
    assert document["stop"] == "stop text"


def test_the_weights_of_the_npu_take_no_more_memory_than_an_eight_bit_file(path: Path) -> None:
    """Peak memory of loading, beside what Python with numpy takes anyway; nothing is held twice."""
    code = (
        "import resource, sys\n"
        "from reference_engine.backends import make_backend\n"
        "from reference_engine.model import Model\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "backend = make_backend('npu:w8a8-per-channel', threads=2)\n"
        "before = peak()\n"
        "with Model.load(sys.argv[1], backend, n_ctx=64, threads=2) as model:\n"
        "    model.forward([504, 3575, 282], model.new_cache())\n"
        "    print(peak() - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, cwd=ROOT, check=True)
    with open_gguf(path) as file:
        in_eight_bits = sum(tensor.n_elements for tensor in file.tensors.values()) * 34 // 32
    if load_library() is None:
        pytest.skip("the kernels are not built")
    assert int(done.stdout) < 1.2 * in_eight_bits
