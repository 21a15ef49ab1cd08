# SPDX-License-Identifier: Apache-2.0
"""Small vocabularies written key by key, the same bytes each time: what a text is cut into shows in how it merges.

In the byte-level ones every two bytes of ``ALPHABET`` are a token and a merge, so that each cut between two of them
leaves another run of pairs; the byte alphabet is written out again, by ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.gguf import crafted_gguf as craft
from tests.gguf.tiny_models import keys_of

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

ALPHABET = "absteLRS'123 \n\r\t.!$=éß日ſ\u0301\u00a0٣²🚀"
"""Letters, contractions, digits, kinds of white space, marks, symbols: one or more of each class that patterns name."""

PRE_NAMES = ("default", "gpt-2", "smollm", "llama-bpe", "qwen2", "qwen35", "glm4")


def tokenizer_keys(model: str, tokens: Sequence[str | bytes], **more: bytes) -> dict[str, bytes]:
    """Keys of a llama model with this vocabulary and nothing else; ``more`` by the last part of their name."""
    keys = keys_of("llama")
    for name in [key for key in keys if key.startswith("tokenizer.")]:
        del keys[name]
    keys["tokenizer.ggml.model"] = craft.key_text("tokenizer.ggml.model", model)
    keys["tokenizer.ggml.tokens"] = craft.key_array("tokenizer.ggml.tokens", craft.STRING, tokens)
    for name, entry in more.items():
        keys[f"tokenizer.ggml.{name}"] = entry
    return keys


def file_of(keys: Mapping[str, bytes]) -> bytes:
    return craft.gguf(list(keys.values()))


def types(values: Sequence[int]) -> bytes:
    return craft.key_array("tokenizer.ggml.token_type", craft.I32, values)


def scores(values: Sequence[float]) -> bytes:
    return craft.key_array("tokenizer.ggml.scores", craft.F32, values)


def merges(values: Sequence[str]) -> bytes:
    return craft.key_array("tokenizer.ggml.merges", craft.STRING, values)


def flag(name: str, value: bool) -> bytes:
    return craft.key(f"tokenizer.ggml.{name}", craft.BOOL, bytes([value]))


def token_id(name: str, value: int) -> bytes:
    return craft.key_u32(f"tokenizer.ggml.{name}", value)


def pre(name: str) -> bytes:
    return craft.key_text("tokenizer.ggml.pre", name)


def template(text: str) -> bytes:
    return craft.key_text("tokenizer.chat_template", text)


def byte_letters() -> list[str]:
    """The letter of each byte in GPT-2's alphabet."""
    letters = []
    spare = 256
    for byte in range(256):
        if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174:
            letters.append(chr(byte))
        else:
            letters.append(chr(spare))
            spare += 1
    return letters


SPECIALS = (("<|endoftext|>", CONTROL), ("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL), ("<tool>", USER_DEFINED))


def byte_level(pre_name: str, **more: bytes) -> dict[str, bytes]:
    """A byte-level vocabulary in which any two bytes of ``ALPHABET`` merge, and a few pairs of pairs."""
    letters = byte_letters()
    used = sorted({letters[byte] for byte in ALPHABET.encode()})
    pairs = [(left, right) for left in used for right in used]
    quads = [("st", "ab"), ("ab", "st"), (letters[32] + "a", "bs"), ("12", "31")]
    tokens = [*letters, *(left + right for left, right in [*pairs, *quads])]
    whole = "set" + letters[32] + "abs"  # a token that no merge yields: only ignore_merges finds it
    tokens += [whole, "least"]
    specials = [text for text, _ in SPECIALS]
    kinds = [NORMAL] * len(tokens) + [kind for _, kind in SPECIALS]
    first = len(tokens)
    return tokenizer_keys(
        "gpt2",
        [*tokens, *specials],
        pre=pre(pre_name),
        token_type=types(kinds),
        merges=merges([f"{left} {right}" for left, right in [*pairs, *quads]]),
        bos_token_id=token_id("bos_token_id", first + 1),
        eos_token_id=token_id("eos_token_id", first + 2),
        **more,
    )


PIECES = (
    "▁",
    "a",
    "b",
    "s",
    "t",
    "e",
    "▁a",
    "▁ab",
    "ab",
    "st",
    "est",
    "te",
    "▁te",
    "▁test",
    "tt",
    "▁▁",
    "▁▁▁▁",
    "日",
    "é",
)
PIECE_SCORES = (
    -1.0,
    -2.0,
    -2.5,
    -3.0,
    -3.0,
    -3.5,
    -0.5,
    -4.0,
    -4.0,
    -6.0,
    -5.0,
    -5.0,
    -4.5,
    -0.25,
    -5.0,
    -7.0,
    -6.5,
    -9,
    -8,
)


def spm(**more: bytes) -> dict[str, bytes]:
    """A SentencePiece-like vocabulary with all byte tokens; two scores are equal, and one merge blocks a better one."""
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    tokens = ["<unk>", "<s>", "</s>", *byte_tokens, *PIECES, "<tool>", "<end_of_turn>"]
    kinds = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * len(PIECES), USER_DEFINED, NORMAL]
    values = [0.0] * 259 + list(PIECE_SCORES) + [0.0, 0.0]
    return tokenizer_keys("llama", tokens, token_type=types(kinds), scores=scores(values), **more)


def gemma4() -> dict[str, bytes]:
    """BPE over whole lines with escaped spaces and byte tokens; two newlines are a token that no merge yields."""
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    halves = [
        ("▁", "a"),
        ("a", "b"),
        ("s", "t"),
        ("e", "st"),
        ("▁a", "b"),
        ("▁", "▁"),
        ("b", "▁"),
        ("t", "est"),
        ("é", "é"),
    ]
    letters = ["▁", "a", "b", "s", "t", "e", "é", "\n", "\n\n", "日"]
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", *byte_tokens, *letters, *(left + right for left, right in halves)]
    tokens += ["<|tool_response>", "</s>"]
    kinds = [CONTROL] * 3 + [UNKNOWN] + [BYTE] * 256 + [NORMAL] * (len(tokens) - 262) + [USER_DEFINED, NORMAL]
    return tokenizer_keys(
        "gemma4",
        tokens,
        token_type=types(kinds),
        merges=merges([f"{left} {right}" for left, right in halves]),
        bos_token_id=token_id("bos_token_id", 2),
        eos_token_id=token_id("eos_token_id", 1),
        unknown_token_id=token_id("unknown_token_id", 3),
    )


VOCABULARIES: Mapping[str, Callable[[], dict[str, bytes]]] = {
    **{name: (lambda name=name: byte_level(name)) for name in PRE_NAMES},  # type: ignore[misc]
    "spm": spm,
    "spm without a space before": lambda: spm(add_space_prefix=flag("add_space_prefix", False)),
    "spm that adds EOS": lambda: spm(add_eos_token=flag("add_eos_token", True)),
    "gemma4": gemma4,
}

TEXTS = (
    "",
    " ",
    "a",
    "test",
    "a test",
    " a  test",
    "ab ab  ab   ab    ab",
    "best tests, at best",
    "set abs least",
    "set abs",
    "ababstst stab 1231 12312312",
    "it's, IT'S: we'RE le'Ls 'tt' 's'",
    "it'ſ l'Lb",  # noqa: RUF001  the long s folds to s, and must not here
    "123 1 12 1234 12345a1b22",
    "٣٣1²2",
    "line\nline\n\nline\n\n\n line",
    "\n",
    "\n\n",
    " \n a\n ",
    "a \r\n\r\n b\r\tb\t\tb",
    "\t a\u00a0b \u00a0 b\u00a0\u00a0",
    "...!! $=$ a.b!c $1.23=a!\n!\n",
    "éé ßa日日 日a🚀🚀b 🚀",
    "e\u0301\u0301a \u0301 1\u0301",
    "a\u2028b\u3000b\u0085b",
    "▁a▁▁ab",
    "<tool> a <tool>ab<tool>",
    "<|im_start|>a\nstab<|im_end|>\n<|endoftext|>",
    "<s>a</s> b<unk><end_of_turn>",
    "<eos><|tool_response>ab</s>\n\n",
    "<0x0A>ab<0xC3>",
    "\x00a\x7f\x01",
    "x" * 40 + "ab" * 40,
)
"""Texts of the vectors: each is there for one rule, and most touch several."""
