# SPDX-License-Identifier: Apache-2.0
"""The command: table, hash, verdict, exit codes, and one sentence for each mistake."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reference_engine.__main__ import main
from reference_engine.speculation import verify
from reference_engine.speculation.ngram_cache_file import read_counts
from reference_engine.speculation.verify import tokens_sha256
from tests.gguf.random_models import Recipe

IDS = ",".join(str(n) for n in [5, 9, 20, 7, 3, 11, 2, 30] * 2)
SMALL = ["--tokens", "40", "--token-ids", IDS, "--threads", "1", "--spec-ngram-size-n", "2", "--spec-ngram-size-m", "6"]


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "model.gguf"
    path.write_bytes(Recipe("llama").file())
    return str(path)


def test_the_page_has_table_hash_passes_and_verdict(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["speculate", model, *SMALL, "--strategy", "draft,ngram-simple", "--draft", model]) == 0
    out = capsys.readouterr().out
    assert out.startswith("strategy")
    assert out.index("ngram-simple ") < out.index("draft-simple ")
    assert "1.000" in out
    assert "forward passes: " in out
    assert "lossless: all 40 tokens of ngram-simple,draft-simple are those of greedy" in out
    assert re.search(r"target and draft: identical \(sha256 of tokens [0-9a-f]{12}, of merges [0-9a-f]{12}\)", out)


def test_the_document_has_the_same_under_llama_cpps_names(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["speculate", model, *SMALL, "--strategy", "draft-simple", "--draft", model, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["lossless"] is True
    assert document["greedy"]["sha256"] == tokens_sha256(document["greedy"]["tokens"])
    assert document["speculative"]["tokens"] == document["greedy"]["tokens"]
    (row,) = document["statistics"]
    assert row["n_gen_tokens"] == row["n_acc_tokens"] == sum(row["n_acc_tokens_per_pos"])
    assert document["speculative"]["passes"] == 10
    assert document["greedy"]["passes"] == 40
    assert document["vocabulary"]["identical"] is True
    assert len(document["vocabulary"]["draft"]["tokens_sha256"]) == 64


@pytest.mark.parametrize("strategy", ["ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"])
@pytest.mark.parametrize("backend", ["float", "npu:w8a8-per-channel"])
def test_every_strategy_is_lossless(
    strategy: str, backend: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mod = ["--spec-ngram-mod-n-match", "2", "--spec-ngram-mod-n-min", "1", "--backend", backend]
    assert main(["speculate", model, *SMALL, *mod, "--strategy", strategy]) == 0
    assert "lossless: all 40 tokens" in capsys.readouterr().out


@pytest.mark.parametrize(("target", "strategy"), [("tiny-llama", "draft"), ("tiny-gemma4", "mtp")])
def test_a_target_on_the_device_has_a_draft_beside_it(
    target: str, strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RKNPU_KIT_LOCK", str(tmp_path / "lock"))
    few = ["--tokens", "8", "--token-ids", "5,9,20", "--strategy", strategy]
    hashes = set()
    for backend in ("device:w8a8-per-channel", "npu:w8a8-per-channel"):
        assert main(["speculate", target, *few, "--backend", backend, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["statistics"][0]["n_gen_drafts"] > 0
        hashes.add(document["speculative"]["sha256"])
    assert len(hashes) == 1


def test_layers_are_those_of_the_target_alone(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--tokens", "4", "--token-ids", "5,9,20", "--strategy", "draft"]
    assert main(["speculate", "tiny-llama", *few, "--layers", "0-3"]) == 0
    assert "lossless" in capsys.readouterr().out


def test_a_fault_is_exit_code_1_and_is_explained(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = verify.accepted
    monkeypatch.setattr(verify, "accepted", lambda logits, draft, eog: right(logits[::-1], draft, eog))
    assert main(["speculate", model, *SMALL, "--strategy", "draft", "--draft", model]) == 1
    out = capsys.readouterr().out
    assert "NOT lossless: token " in out
    assert "(bug)" in out
    out = out[: out.index("vocabulary of target")]
    page = out[out.index("NOT lossless") :].splitlines()
    assert page[1].startswith("greedy row: ")
    assert page[2].startswith("speculative row: ")
    assert "units of the last place" in page[3]
    assert "by speculation; bits differ nowhere" in page[4]
    assert main(["speculate", model, *SMALL, "--strategy", "draft", "--draft", model, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["divergence"]
    rows = found["logits"]
    assert rows["greedy"] == rows["speculative"]
    assert rows["greedy"][0][0] == found["greedy_token"]
    assert rows["greedy"][0][1] - rows["greedy"][1][1] == pytest.approx(found["gap_nats"])


@pytest.mark.parametrize(
    ("more", "code", "sentence"),
    [
        (["--strategy", "ngram-map"], 2, "there is no strategy 'ngram-map'"),
        (["--strategy", "draft,draft-simple"], 2, "named twice"),
        (["--strategy", "draft"], 2, "needs a draft model"),
        (["--strategy", "ngram-simple", "--draft", "d.gguf"], 2, "--draft is given and ngram-simple uses none"),
        (["--strategy", "draft", "--draft", "/no/such.gguf"], 3, "'/no/such.gguf' cannot be opened"),
        (["--strategy", "ngram-mod", "--lookup-cache-dynamic", "f"], 2, "--lookup-cache-dynamic is given"),
        (["--strategy", "ngram-cache", "--lookup-corpus", "f"], 2, "needs --lookup-cache-static"),
        (["tiny-gemma4-mtp"], 2, "gemma4-assistant drafts for another and does not run alone"),
        (["--tokens", "0"], 2, "must be a positive number"),
        (["--token-ids", "1,x"], 2, "token ids are whole numbers"),
        (["--strategy", "ngram-cache", "--lookup-cache-static", "/no/such/file"], 3, "cannot read lookup cache"),
    ],
)
def test_mistakes_are_one_sentence(
    more: list[str], code: int, sentence: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [] if more[0].startswith("tiny") else [model]
    assert main(["speculate", *named, *SMALL, *more]) == code
    err = capsys.readouterr().err
    assert sentence in err
    assert "Traceback" not in err


@pytest.mark.parametrize("strategy", ["draft", "mtp"])
def test_a_broken_draft_is_named(strategy: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(Path(model).read_bytes()[:400])
    assert main(["speculate", model, *SMALL, "--strategy", strategy, "--draft", str(broken)]) == 3
    assert f"--draft {broken}: NPU-F" in capsys.readouterr().err


def test_the_page_is_there_where_the_counts_cannot_be_written(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["speculate", model, *SMALL, "--strategy", "ngram-cache", "--lookup-cache-save", "/no/where"]) == 3
    found = capsys.readouterr()
    assert "lossless: all 40 tokens" in found.out
    assert "cannot write lookup cache /no/where" in found.err


def test_a_draft_with_another_vocabulary_is_refused(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.gguf"
    # Another text for one token, of the same length, so that the file stays as it is.
    raw = Recipe("llama", seed=2).file()
    at = raw.rindex(b"\x01\x00\x00\x00\x00\x00\x00\x00", 0, raw.index(b"tokenizer.ggml.token_type"))
    other.write_bytes(raw[: at + 8] + bytes([raw[at + 8] ^ 1]) + raw[at + 9 :])
    assert main(["speculate", model, *SMALL, "--strategy", "draft", "--draft", str(other)]) == 3
    assert "cannot draft for this model: token " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--spec-draft-n-max", "-1"),
        ("--spec-draft-p-min", "nan"),
        ("--spec-ngram-size-n", "0"),
        ("--spec-ngram-simple-size-n", "-3"),
        ("--spec-ngram-map-k-size-m", "1025"),
        ("--spec-ngram-map-k4v-min-hits", "0"),
        ("--spec-ngram-mod-n-match", "x"),
        ("--spec-ngram-mod-n-min", "1025"),
    ],
)
def test_a_parameter_beyond_llama_cpps_limits_is_refused(
    option: str, value: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["speculate", model, *SMALL, option, value])
    assert ended.value.code == 2
    assert f"argument {option}: '{value}' is no " in capsys.readouterr().err


def test_a_strategy_takes_its_own_sizes_before_the_common_ones(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    longest = []
    for own in ([], ["--spec-ngram-simple-size-m", "3"], ["--spec-ngram-map-k-size-m", "3"]):
        assert main(["speculate", model, *SMALL, *own, "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["statistics"]
        longest.append(row["n_gen_tokens"] / row["n_gen_drafts"])
    assert longest[0] == longest[2] > 3 >= longest[1]


def test_what_a_text_has_counted_drafts_the_next_request(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = str(tmp_path / "dynamic.bin")
    few = ["--tokens", "12", "--token-ids", "5,9", "--threads", "1", "--strategy", "ngram-cache", "--json"]
    drafted = []
    for more in (["--lookup-cache-save", saved], ["-lcd", saved, "--lookup-cache-save", saved], ["-lcd", saved]):
        assert main(["speculate", model, *few, *more]) == 0
        drafted.append(json.loads(capsys.readouterr().out)["statistics"][0]["n_acc_tokens"])
    counts = read_counts(Path(saved))
    assert set(map(len, counts)) == {1, 2, 3, 4}
    assert all(times % 2 == 0 for followers in counts.values() for times in followers.values()), "two texts alike"
    assert drafted[2] > drafted[0]


def test_a_corpus_is_counted_by_pairs_into_the_static_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus, static = tmp_path / "corpus.txt", tmp_path / "static.bin"
    corpus.write_text("for line in lines:\n    print(line)\n" * 3)
    more = ["-p", "for line", "--tokens", "4", "--strategy", "ngram-cache", "-lcs", str(static)]
    assert main(["speculate", "tiny-llama", *more, "--lookup-corpus", str(corpus)]) == 0
    made = read_counts(static)
    assert set(map(len, made)) == {2}
    assert max(times for followers in made.values() for times in followers.values()) == 3
    capsys.readouterr()
    assert main(["speculate", "tiny-llama", *more, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["statistics"][0]["n_gen_drafts"] > 0
