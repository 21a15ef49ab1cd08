# SPDX-License-Identifier: Apache-2.0
"""``run`` as a user has it: what goes to which stream, exit codes, and one sentence for each mistake."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reference_engine.__main__ import COMMANDS, main
from reference_engine.commands.run import Printer
from reference_engine.errors import EXIT_INTERRUPTED
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_OK, EXIT_USAGE
from tests.gguf import crafted_gguf as craft
from tests.gguf.random_models import ARCHITECTURES, CONTEXT, Recipe

ROOT = Path(__file__).parents[2]
Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
LIVELY = Recipe("llama", frozenset({"untied"}))


@pytest.fixture
def path(model_file: Write) -> str:
    return str(model_file(LIVELY))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("backend", ["float", "npu:w8a8-per-channel"])
def test_every_architecture_runs_from_the_command_line(
    architecture: str, backend: str, model_file: Write, capfd: pytest.CaptureFixture[str]
) -> None:
    file = str(model_file(Recipe(architecture, kind=craft.GGML_Q8_0)))
    assert main(["run", file, "-p", "hello", "-n", "3", "--ignore-end", "--backend", backend]) == EXIT_OK
    page = capfd.readouterr().err
    assert "prompt: 4 tokens" in page  # "he" is one token
    assert "generated: 3 tokens" in page
    assert f"computed on this CPU by {backend}" in page


def test_the_text_goes_to_the_output_and_the_summary_to_the_error_stream(
    path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", path, "--tokens", "3,1,4", "-n", "8", "--ignore-end", "--json"]) == EXIT_OK
    document = json.loads(capfd.readouterr().out)
    assert main(["run", path, "--tokens", "3,1,4", "-n", "8", "--ignore-end"]) == EXIT_OK
    streams = capfd.readouterr()
    assert streams.out == document["text"] + "\n"
    assert "tokens/s" not in streams.out
    assert "generated: 8 tokens" in streams.err


def test_json_has_the_tokens_and_what_computed_them(path: str, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", path, "--tokens", "3, 1 4", "-n", "5", "--ignore-end", "--json", "--threads", "2"]
    assert main(arguments) == EXIT_OK
    document = json.loads(capfd.readouterr().out)
    assert document["prompt"] == [3, 1, 4]
    assert len(document["tokens"]) == 5
    assert (document["stop"], document["backend"], document["threads"]) == ("length", "float", 2)
    assert document["n_ctx"] == 8
    assert document["phases"] is None
    assert document["prefill_tokens_per_s"] > 0
    assert document["first_text_s"] >= document["prefill_s"]


def test_a_seed_repeats_and_greedy_needs_none(path: str, capfd: pytest.CaptureFixture[str]) -> None:
    def tokens(*more: str) -> list[int]:
        assert main(["run", path, "--tokens", "3,1,4", "-n", "20", "--ignore-end", "--json", *more]) == EXIT_OK
        found: list[int] = json.loads(capfd.readouterr().out)["tokens"]
        return found

    assert tokens("--temp", "2", "--seed", "5") == tokens("--temp", "2", "--seed", "5")
    assert tokens("--temp", "2", "--seed", "5") != tokens("--temp", "2", "--seed", "6")
    assert tokens() == tokens("--seed", "9", "--threads", "2")


def test_a_model_without_a_vocabulary_takes_and_shows_token_ids(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.gguf.random_models._vocabulary_keys", list)
    file = tmp_path / "bare.gguf"
    file.write_bytes(LIVELY.file())
    assert main(["run", str(file), "--tokens", "3,1,4", "-n", "4"]) == EXIT_OK
    shown = capfd.readouterr().out.split()
    assert len(shown) == 4
    assert all(token.isdecimal() for token in shown)
    assert main(["run", str(file), "-p", "text"]) == EXIT_COULD_NOT_RUN
    assert "tokenizer.ggml.model" in capfd.readouterr().err


def test_token_ids_run_a_model_whose_vocabulary_is_unusable(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tests.gguf.random_models._vocabulary_keys",
        lambda: [
            craft.key_text("tokenizer.ggml.model", "never heard of"),
            craft.key_array("tokenizer.ggml.tokens", craft.STRING, ["x"] * LIVELY.vocab),
        ],
    )
    file = tmp_path / "odd.gguf"
    file.write_bytes(LIVELY.file())
    assert main(["run", str(file), "--tokens", "3,1,4", "-n", "4"]) == EXIT_OK
    streams = capfd.readouterr()
    assert len(streams.out.split()) == 4
    assert "token ids are shown, because" in streams.err


def test_text_comes_from_a_file_or_standard_input(path: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "text.txt"
    text.write_text("hello", encoding="utf-8")
    outputs = []
    for arguments in (["-p", "hello"], ["-f", str(text)]):
        assert main(["run", path, *arguments, "-n", "4", "--json"]) == EXIT_OK
        outputs.append(json.loads(capfd.readouterr().out)["tokens"])
    child = subprocess.run(
        [sys.executable, "-m", "reference_engine", "run", path, "-f", "-", "-n", "4", "--json"],
        input="hello",
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    outputs.append(json.loads(child.stdout)["tokens"])
    assert outputs[0] == outputs[1] == outputs[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tokens", "1,2", "-n", str(CONTEXT)], f"The text has 2 tokens and {CONTEXT} more are asked for"),
        (["--tokens", "1,2,3", "--ctx", "2"], "Nothing is shifted or dropped to make room"),
        (["--tokens", "1,2", "--ctx", str(CONTEXT + 1)], f"trained for {CONTEXT} positions"),
        (["--tokens", "1,2", "--layers", "2-3"], "the model has layers 0-2"),
        (["--tokens", "1,2", "-n", "0"], "-n is 0"),
        (["--tokens", "1,2", "--threads", "-1"], "--threads is -1"),
        (["--tokens", "1,2", "--threads", "65"], "from 1 to 64"),
        (["--tokens", "1,2", "--ctx", "-5"], "--ctx is -5"),
        (["--tokens", "1,2", "--temp", "-1"], "temperature"),
        (["--tokens", "1,2", "--backend", "gpu"], "no back end 'gpu'"),
        (["--tokens", "1,2", "--backend", "npu:w1a1"], "no preset 'w1a1'"),
        (["--tokens", "1,2", "--chat"], "--chat needs a text"),
        (["--tokens", "1,2", "--stop", ""], "empty"),
        (["-p", "x", "--system", "y"], "--system goes with --chat"),
        (["-p", ""], "The text is empty"),
        (["-p", "x", "--chat"], "the model has no chat template"),
    ],
)
def test_a_request_that_cannot_be_is_one_sentence_and_exit_code_2(
    arguments: list[str], said: str, path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", path, *arguments]) == EXIT_USAGE
    error = capfd.readouterr().err.strip()
    assert said in error
    assert error.count("\n") == 0


@pytest.mark.parametrize(
    "arguments", [[], ["--tokens", "a"], ["-p", "x", "--layers", "3-1"], ["-p", "x", "--kv", "q2"]]
)
def test_arguments_that_mean_nothing_are_usage_errors(
    arguments: list[str], path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["run", path, *arguments])
    assert caught.value.code == EXIT_USAGE
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("model", "arguments", "said"),
    [
        ("missing.gguf", ["-p", "x"], "NPU-F033"),
        ("", ["--tokens", "1,9999"], "Token 9999 is not in the vocabulary"),
        ("", ["-f", "/nonexistent/text"], "cannot be read"),
    ],
)
def test_what_cannot_run_is_one_sentence_and_exit_code_3(
    model: str, arguments: list[str], said: str, path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", model or path, *arguments]) == EXIT_COULD_NOT_RUN
    error = capfd.readouterr().err.strip()
    assert said in error
    assert error.count("\n") == 0


def test_ctrl_c_leaves_a_summary_and_exit_code_130(model_file: Write) -> None:
    file = str(model_file(Recipe("llama", frozenset({"untied"}), layers=12)))
    child = subprocess.Popen(
        [sys.executable, "-u", "-m", "reference_engine", "run", file, "--tokens", "1,2,3", "-n", "-1", "--ignore-end"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "RKNPU_KIT_KERNELS": "numpy"},
    )
    try:
        assert child.stdout is not None
        assert child.stdout.read(1)  # generation has begun
        child.send_signal(signal.SIGINT)
        _, error = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == EXIT_INTERRUPTED
    assert b"stopped by: interrupted" in error
    assert b"prompt: 3 tokens" in error
    assert b"Traceback" not in error


def test_ctrl_c_while_loading_is_one_line(
    path: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("reference_engine.commands.run.load_model", interrupted)
    assert main(["run", path, "--tokens", "1,2"]) == EXIT_INTERRUPTED
    assert capfd.readouterr().err == "rknpu-engine: interrupted\n"


def test_too_little_memory_is_one_line(
    path: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError("no memory for the weight x")

    monkeypatch.setattr("reference_engine.commands.run.load_model", exhausted)
    assert main(["run", path, "--tokens", "1,2"]) == EXIT_COULD_NOT_RUN
    assert capfd.readouterr().err.startswith("rknpu-engine: there is not enough memory (no memory for the weight x)")


class Screen(io.TextIOWrapper):
    def __init__(self, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_gets_no_control_characters_of_a_model_and_a_pipe_gets_all(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stdout", screen)
    printer = Printer(quiet=False, started=time.perf_counter())
    printer.emit("a\x1b[31mb\n\tc\x9bd\u00e9\u202e")
    shown = screen.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert shown == ("a\ufffd[31mb\n\tc\ufffdd\u00e9\ufffd" if terminal else "a\x1b[31mb\n\tc\x9bd\u00e9\u202e")
    assert "".join(printer.text) == "a\x1b[31mb\n\tc\x9bd\u00e9\u202e"


def test_help_needs_neither_numpy_nor_the_kernels() -> None:
    """A usage error must not cost the time of loading what only a run needs."""
    code = (
        "import sys\nfrom reference_engine.__main__ import COMMAND_LINE\nCOMMAND_LINE.parser([])\n"
        "print(sorted(m for m in ('numpy', 'cffi', 'tqdm', 'tokenizers', 'gguf', 'jinja2') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert caught.value.code == 0
    assert f"rknpu-engine {name}" in capsys.readouterr().out


def test_a_reader_that_goes_away_is_no_traceback(path: str) -> None:
    command = f"{sys.executable} -m reference_engine run {path} --tokens 1,2,3 -n 200 --ignore-end | head -c 1"
    began = time.monotonic()
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, cwd=ROOT, check=False)
    assert time.monotonic() - began < 120
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["run {} --tokens 1,2,3 -n 2", "inspect {}", "run {} --tokens 1,2,3 -n 2 --json"])
def test_a_full_disk_is_one_line(path: str, command: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "reference_engine", *command.format(path).split()],
            stdout=full, stderr=subprocess.PIPE, cwd=ROOT, check=False,
        )  # fmt: skip
    assert done.returncode == EXIT_COULD_NOT_RUN
    assert b"Traceback" not in done.stderr
    assert b"rknpu-engine: the output cannot be written: No space left on device" in done.stderr
