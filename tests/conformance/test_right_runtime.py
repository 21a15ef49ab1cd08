# SPDX-License-Identifier: Apache-2.0
"""With no fault nothing fails: on every persona, on every runtime version, with many seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from c_probes import mock
from conformance.runtime.catalogue import CHECKS
from conformance.runtime.suite import open_bench
from conformance.seeds import CHUNK, FINE, SEEDLESS, outcomes, sweep
from reports.contract import Verdict

PERSONAS = ("rk3588", "rk3576", "rk3562", "rk3566", "rk3568", "rv1126b", "any")
SEEDED = ("int8_to_int8", "int4_products", "mixed_products", "fp16_products", "scales_per_group", "batch_invariance")
"""Checks whose verdict hangs on a bound, on rounding, or on a message: where a seed could make a false alarm."""


def failures(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [answer for answer in found if Verdict(answer["verdict"]) not in FINE]


def passed(found: list[dict[str, Any]]) -> set[str]:
    return {answer["check"] for answer in found if Verdict(answer["verdict"]) is Verdict.PASSED}


def test_a_check_in_a_child_of_its_own_ends_as_it_does_in_a_sweep(mock_library: Path) -> None:
    asked = ("int8_to_int8", "mixed_products")
    apart = outcomes(mock_library, "rk3588", range(3, 4), asked)
    together = list(sweep(mock_library, "rk3588", range(3, 4), asked))
    assert [outcome.verdict.value for outcome in apart] == [answer["verdict"] for answer in together]
    assert [outcome.covered for outcome in apart] == [answer.get("covered") for answer in together]


def test_the_personas_are_those_of_the_mock(mock_library: Path) -> None:
    assert {persona.name for persona in mock.personas(mock_library)} == set(PERSONAS)


@pytest.mark.parametrize("persona", PERSONAS)
def test_nothing_fails_on_a_persona(mock_library: Path, persona: str) -> None:
    found = list(sweep(mock_library, persona, range(3, 4), tuple(CHECKS)))
    assert failures(found) == []
    assert [answer["check"] for answer in found] == list(CHECKS)
    assert {"type_table", "fp16_products"} <= passed(found)


OLDER = ("1.5.2", "1.6.0", "2.0.0-beta0", "2.1.0")


@pytest.mark.parametrize("version", OLDER)
def test_nothing_fails_on_an_older_runtime(mock_library: Path, version: str) -> None:
    found = list(sweep(mock.library_path(version), "rk3588", range(1), tuple(CHECKS)))
    assert failures(found) == []
    assert {"int8_products", "rebinding"} <= passed(found)
    assert [text for answer in found for text in answer["unexpected"]] == []


@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("persona", ["rk3566", "rk3562", "rk3576"])
def test_refusals_of_an_older_runtime_are_known_or_told(mock_library: Path, version: str, persona: str) -> None:
    asked = ("type_table", "int8_k_cliff", "k_segments", "core_masks", "n_split", "iommu_domains")
    found = list(sweep(mock.library_path(version), persona, range(1), asked))
    assert failures(found) == []
    assert [text for answer in found for text in answer["unexpected"]] == []


@pytest.mark.parametrize("persona", PERSONAS)
def test_no_seed_makes_a_false_alarm(mock_library: Path, persona: str) -> None:
    found = list(sweep(mock_library, persona, range(100, 104), SEEDED))
    assert failures(found) == []
    assert len(found) == 4 * len(SEEDED)


def test_a_sweep_tells_a_failure_by_its_seed_and_a_crash_by_how_far_it_came(mock_library: Path) -> None:
    wrong = list(sweep(mock_library, "rk3588", (7, 8), ("int8_to_int8", "type_table"), faults="wrap"))
    assert [(each["seed"], each["check"], each["verdict"]) for each in wrong] == [
        (7, "int8_to_int8", "failed"),
        (7, "type_table", "passed"),
        (8, "int8_to_int8", "failed"),
    ]
    *_, last = sweep(mock_library, "rk3588", (7,), ("type_table", "rebinding"), faults="crash")
    assert last["verdict"] == "crashed"
    assert "after 1 of 2 checks" in last["reason"]


def test_more_seeds_than_one_process_takes_are_all_swept(mock_library: Path) -> None:
    found = list(sweep(mock_library, "rk3588", range(CHUNK + 2), ("padding", "int4_normal_b")))
    assert [each["seed"] for each in found if each["check"] == "padding"] == list(range(CHUNK + 2))
    assert [each["seed"] for each in found if each["check"] == "int4_normal_b"] == [0]


def test_checks_that_are_said_to_draw_nothing_draw_nothing(mock_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKNN_MOCK_PERSONA", "any")
    for name in sorted(SEEDLESS):
        request = {
            "library": str(mock_library),
            "force": False,
            "soc": None,
            "level": "quick",
            "seed": 1,
            "check": name,
        }
        bench = open_bench(request)
        del bench.random
        assert CHECKS[name].function(bench)
