# SPDX-License-Identifier: Apache-2.0
"""Chat templates: what they render, and that a hostile one costs a sentence and a bounded time."""

from __future__ import annotations

import time
from typing import Any

import pytest

from reference_engine.gguf_tensor import MissingPackage
from reference_engine.tokenizer import TokenizerError, chat_template
from reference_engine.tokenizer.chat_template import render_chat
from tests.tokenizer import crafted_vocabulary as craft
from tests.tokenizer.conftest import Load

pytest.importorskip("jinja2")

CHATML = (
    "{% for message in messages %}\n"
    "    {{- '<|im_start|>' + message.role + '\\n' + message['content'] + '<|im_end|>\\n' -}}\n"
    "{% endfor %}\n"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
TALK = [{"role": "system", "content": "Be <b>short</b>."}, {"role": "user", "content": "Grüß dich\n"}]


def rendered(template: str, messages: list[dict[str, Any]] | None = None, **values: Any) -> str:
    return render_chat(
        template,
        TALK if messages is None else messages,
        add_generation_prompt=bool(values.pop("add_generation_prompt", True)),
        bos_token="<s>",
        eos_token="</s>",
        cpu_seconds=values.pop("cpu_seconds", 5),
        values=values,
    )


def test_chatml_is_rendered_without_escaping_or_stray_lines() -> None:
    assert rendered(CHATML).splitlines() == [
        "<|im_start|>system",
        "Be <b>short</b>.<|im_end|>",
        "<|im_start|>user",
        "Grüß dich",
        "<|im_end|>",
        "<|im_start|>assistant",
    ]
    assert rendered(CHATML, add_generation_prompt=False).endswith("<|im_end|>\n")


def test_the_helpers_that_templates_are_written_for_are_there() -> None:
    template = (
        "{{ bos_token }}{{ eos_token }}{{ messages[1] | tojson }}{{ strftime_now('%Y') }}"
        "{% for m in messages %}{% if loop.index == 2 %}{% break %}{% endif %}{{ m.role }}{% endfor %}"
        "{% generation %}x{% endgeneration %}{{ tools is defined }}{{ thinking }}"
    )
    assert rendered(template, thinking=7, now=1_000_000_000) == (
        '<s></s>{"role": "user", "content": "Grüß dich\\n"}2001systemxFalse7'
    )


def test_a_template_that_refuses_says_why() -> None:
    with pytest.raises(TokenizerError, match="refuses these messages: 'roles must alternate'"):
        rendered("{{ raise_exception('roles must alternate') }}")


REFUSED = {
    "an attribute of a type": ("{{ ''.__class__.__mro__ }}", "SecurityError"),
    "a function's globals": ("{{ raise_exception.__globals__.sys }}", "SecurityError"),
    "a format that reaches an attribute": ("{{ '{0.__class__.__mro__}'.format(1) }}", "SecurityError"),
    "a message that is changed": ("{{ messages.append(1) }}", "SecurityError"),
    "a file": ("{% include '/etc/passwd' %}", "cannot be rendered"),
    "a syntax error": ("{% if %}", "line 1"),
    "a missing value": ("{{ messages[0].x.y }}", "UndefinedError"),
    "a string without end": ("{{ 'a' * 10000000000 }}", "more memory than is allowed"),
    "an output without end": (
        "{% for i in range(99999) %}{{ 'a' * 1000 }}{% endfor %}",
        "longer than 4194304 characters",
    ),
    "a macro that calls itself": ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recurses too deeply"),
    "a nest of brackets": ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "cannot be rendered|exceeded its limits"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_hostile_template_costs_a_sentence(case: str) -> None:
    template, sentence = REFUSED[case]
    with pytest.raises(TokenizerError, match=sentence) as refusal:
        rendered(template)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 500


def test_a_template_without_end_is_stopped_by_its_processor_time() -> None:
    endless = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    began = time.monotonic()
    with pytest.raises(TokenizerError, match=r"exceeded its limits|did not come to an end"):
        rendered(endless, cpu_seconds=1)
    assert time.monotonic() - began < 2 * chat_template.WALL_SECONDS


def test_a_child_that_hangs_is_ended_at_the_deadline(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(chat_template, "CHILD", sleeper)
    monkeypatch.setattr(chat_template, "WALL_SECONDS", 0.5)
    with pytest.raises(TokenizerError, match=r"did not come to an end in 0\.5 seconds"):
        rendered("x")


def test_a_child_without_jinja2_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    child = tmp_path / "child.py"
    child.write_text('print(\'{"kind": "missing", "message": "No module named jinja2"}\')\n')
    monkeypatch.setattr(chat_template, "CHILD", child)
    with pytest.raises(MissingPackage, match=r"needs the jinja2 package.*pip install '\.\[engine\]'"):
        rendered("x")


def test_messages_that_are_no_json_are_refused() -> None:
    with pytest.raises(TokenizerError, match="cannot be handed to the chat template"):
        rendered("x", [{"role": {1, 2}}])


def test_a_model_without_a_template_says_so(load: Load) -> None:
    with pytest.raises(TokenizerError, match=r"has no chat template \(key 'tokenizer\.chat_template'\)"):
        load(craft.spm()).apply_chat(TALK)


def test_a_chat_is_encoded_with_its_control_tokens_and_one_bos(load: Load) -> None:
    keys = craft.byte_level("llama-bpe")
    first = len(load(keys)) - len(craft.SPECIALS)
    for template in (CHATML, "{{ bos_token }}" + CHATML.replace("'<|im_start|>' + message.role", "message.role")):
        keys["tokenizer.chat_template"] = craft.template(template)
        ids = load(keys).encode_chat([{"role": "user", "content": "a"}])
        assert ids[0] == first + 1
        assert ids.count(first + 2) == 1, "the end of the user's turn"
    assert load(keys).encode_chat([{"role": "u", "content": "a"}])[:2].count(first + 1) == 1
