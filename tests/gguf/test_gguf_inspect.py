# SPDX-License-Identifier: Apache-2.0
"""``python -m reference_engine inspect``: exit codes, page, JSON, and inert text from hostile files."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reference_engine.__main__ import main
from reference_engine.gguf_inspect import inspect
from reference_engine.gguf_page import render
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_FINDINGS, EXIT_OK, EXIT_USAGE
from tests.gguf import crafted_gguf as craft
from tests.gguf import tiny_models
from tests.gguf.malformed_corpus import CASES, Case

Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted(tiny_models.HEAD))
def test_a_sound_model_exits_0_and_is_described(name: str, written: Write, capsys: Capture) -> None:
    raw = tiny_models.model(name, craft.GGML_Q8_0)
    assert main(["inspect", str(written(raw))]) == EXIT_OK
    page = capsys.readouterr().out
    assert f"architecture {name}" in page
    assert "Nothing wrong found" in page
    assert "The weights themselves were not read." in page
    for line in ("attention.head_count_kv", "tokens", "Q8_0", "F32"):
        assert line in page


def test_json_holds_numbers_and_sums_that_add_up(written: Write, capsys: Capture) -> None:
    raw = tiny_models.model("qwen3", craft.GGML_Q8_0)
    assert main(["inspect", "--json", str(written(raw))]) == EXIT_OK
    document = json.loads(capsys.readouterr().out)
    tensors = tiny_models.tensors_of("qwen3")
    matrices = sum(dims[0] * dims[1] for dims in tensors.values() if len(dims) == 2)
    vectors = sum(dims[0] for dims in tensors.values() if len(dims) == 1)
    assert document["tensors"] == {
        "count": len(tensors),
        "elements": matrices + vectors,
        "size_bytes": matrices // 32 * 34 + vectors * 4,
        "by_type": [
            {
                "type": "Q8_0",
                "count": sum(len(dims) == 2 for dims in tensors.values()),
                "elements": matrices,
                "size_bytes": matrices // 32 * 34,
            },
            {
                "type": "F32",
                "count": sum(len(dims) == 1 for dims in tensors.values()),
                "elements": vectors,
                "size_bytes": vectors * 4,
            },
        ],
    }
    assert document["file_bytes"] == len(raw)
    assert document["hyper_parameters"]["attention.head_count_kv"] == 2
    assert document["hyper_parameters"]["attention.key_length"] == 32
    assert document["findings"] == []
    assert document["vocabulary"]["tokens"] == 8


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_malformed_model_exits_1_with_its_code_on_an_inert_page(case: Case, written: Write, capsys: Capture) -> None:
    assert main(["inspect", str(written(case.raw))]) == EXIT_FINDINGS
    output = capsys.readouterr()
    assert case.code in output.out
    assert "do: " in output.out
    assert output.out.isascii()
    assert output.out.replace("\n", "").isprintable()
    assert output.err == ""


def test_findings_of_a_structure_come_all_together(written: Write, capsys: Capture) -> None:
    tensors = tiny_models.tensors_of("llama")
    del tensors["blk.0.attn_q.weight"]
    tensors["blk.1.attn_v.weight"] = (64, 64)
    path = written(tiny_models.assemble(tiny_models.keys_of("llama"), tensors))
    assert main(["inspect", "--json", str(path)]) == EXIT_FINDINGS
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [finding["code"] for finding in findings] == ["NPU-F031", "NPU-F032"]


def test_a_matching_hash_does_not_hide_an_incomplete_structure(written: Write, capsys: Capture) -> None:
    keys = tiny_models.keys_of("llama")
    del keys["llama.block_count"]
    raw = tiny_models.assemble(keys, tiny_models.tensors_of("llama"))
    digest = hashlib.sha256(raw).hexdigest()
    assert main(["inspect", "--sha256", digest.upper(), str(written(raw))]) == EXIT_FINDINGS
    page = capsys.readouterr().out
    assert "The hash matches, yet 1 error stand" in page
    assert "NPU-F028" in page


def test_another_hash_is_an_error_for_sound_and_refused_files(written: Write, capsys: Capture) -> None:
    for raw in (tiny_models.model("llama"), b"<html>"):
        assert main(["inspect", "--json", "--sha256", "0" * 64, str(written(raw))]) == EXIT_FINDINGS
        codes = [finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]]
        assert "NPU-F034" in codes


def test_a_matching_hash_of_a_sound_file_exits_0(written: Write, capsys: Capture) -> None:
    raw = tiny_models.model("llama")
    assert main(["inspect", "--sha256", hashlib.sha256(raw).hexdigest(), str(written(raw))]) == EXIT_OK
    assert "The hash matches." in capsys.readouterr().out


def test_warnings_alone_exit_0(written: Write, capsys: Capture) -> None:
    path = written(craft.gguf([craft.key_text("general.architecture", "mamba")]))
    assert main(["inspect", str(path)]) == EXIT_OK
    page = capsys.readouterr().out
    assert "WARNING NPU-F030" in page
    assert "hyper-parameters, tensor shapes" not in page


def test_a_mixture_of_experts_is_sound_but_not_for_this_engine(written: Write, capsys: Capture) -> None:
    keys = tiny_models.keys_of("llama") | {"llama.expert_count": craft.key_u32("llama.expert_count", 8)}
    assert main(["inspect", str(written(tiny_models.assemble(keys, tiny_models.tensors_of("llama"))))]) == EXIT_OK
    assert "WARNING NPU-F030" in capsys.readouterr().out


def test_a_file_that_cannot_be_opened_exits_3(tmp_path: Path, capsys: Capture) -> None:
    assert main(["inspect", str(tmp_path / "missing.gguf")]) == EXIT_COULD_NOT_RUN
    assert "No such file" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["inspect", "x", "y"], ["inspect", "x", "--sha256", "beef"], ["guess", "x"]])
def test_bad_requests_exit_2(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == EXIT_USAGE
    assert "usage:" in capsys.readouterr().err


def test_without_a_model_it_is_one_of_the_kits_own(capsys: Capture) -> None:
    assert main(["inspect"]) == EXIT_OK
    assert "tiny-llama, architecture llama, licence Apache-2.0" in capsys.readouterr().out


def test_header_only_describes_the_start_of_a_download(written: Write, capsys: Capture) -> None:
    raw = tiny_models.model("gemma3")
    path = written(raw[: len(raw) // 2])
    assert main(["inspect", str(path)]) == EXIT_FINDINGS
    assert "NPU-F015" in capsys.readouterr().out
    assert main(["inspect", "--header-only", str(path)]) == EXIT_OK
    assert "no data ranges (header only)" in capsys.readouterr().out


HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202e\ud7ff{0}{message}%s\n\r\t\x00"


def test_hostile_text_is_shown_inert(written: Write, capsys: Capture) -> None:
    keys = tiny_models.keys_of("llama") | {
        "general.name": craft.key_text("general.name", HOSTILE),
        "general.license": craft.key("general.license", craft.STRING, craft.string(b"\xff\xfe\x1b[31m")),
        "tokenizer.ggml.pre": craft.key_text("tokenizer.ggml.pre", HOSTILE),
        "llama.rope.scaling.type": craft.key_text("llama.rope.scaling.type", HOSTILE),
    }
    tensors = tiny_models.tensors_of("llama") | {"{message}{0}": (64,)}
    path = written(tiny_models.assemble(keys, tensors), "na{me}%s.gguf")
    for extra in ([], ["--json"]):
        assert main(["inspect", *extra, str(path)]) == EXIT_FINDINGS
        page = capsys.readouterr().out
        assert page.isascii()
        assert page.replace("\n", "").isprintable()
        assert "NPU-F029" in page


def test_long_text_is_cut(written: Write) -> None:
    keys = tiny_models.keys_of("llama") | {"general.name": craft.key_text("general.name", "n" * 100_000)}
    document = inspect(written(tiny_models.assemble(keys, tiny_models.tensors_of("llama")))).document
    assert document["name"] == "n" * 200 + "..."


def test_a_page_of_many_findings_stays_short(written: Write) -> None:
    keys = tiny_models.keys_of("llama") | {"llama.block_count": craft.key_u32("llama.block_count", 1000)}
    path = written(tiny_models.assemble(keys, tiny_models.tensors_of("llama")))
    result = inspect(path)
    assert len(result.problems) == 998 * 9
    page = render(result.document)
    assert len(page.splitlines()) < 150
    assert f"and {998 * 9 - 20} more findings" in page


def test_a_page_of_many_keys_stays_short(written: Write) -> None:
    keys = [craft.key_text("general.architecture", "x"), *(craft.key_u32(f"x.k{i}", i) for i in range(30000))]
    page = render(inspect(written(craft.gguf(keys))).document)
    assert len(page.splitlines()) < 150


def test_large_headers_are_taken_on_request(written: Write, capsys: Capture) -> None:
    keys = [craft.key_text("general.architecture", "x"), *(craft.key_u32(f"k{i}", i) for i in range(40000))]
    path = written(craft.gguf(keys))
    assert main(["inspect", str(path)]) == EXIT_FINDINGS
    refused = capsys.readouterr().out
    assert "NPU-F013" in refused
    assert "--large" in refused
    assert main(["inspect", "--large", str(path)]) == EXIT_OK
    assert "40001 keys" in capsys.readouterr().out


def test_architectures_are_listed(capsys: Capture) -> None:
    assert main(["architectures"]) == EXIT_OK
    listed = capsys.readouterr().out
    for name in tiny_models.HEAD:
        assert f"{name}.attention.head_count: integer, required" in listed


def test_the_module_runs_and_a_closed_pipe_is_no_traceback(written: Write) -> None:
    path = written(tiny_models.model("llama"))
    command = [sys.executable, "-m", "reference_engine", "inspect", str(path)]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (child.returncode, child.stderr) == (EXIT_OK, "")
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
