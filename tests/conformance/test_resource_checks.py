# SPDX-License-Identifier: Apache-2.0
"""Checks of resources, domains and int4 binding: what they say on a mock that is limited, leaks, or refuses."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import pytest

from c_probes.librknnrt import Librknnrt
from c_probes.matmul import Matmul
from conformance.runner import Outcome, Runner
from conformance.runtime import domains, refusals, resources
from conformance.runtime.suite import open_bench
from conformance.target import choose_target
from reports.contract import Verdict


def judged(library: Path, check: str, persona: str = "rk3588", **env: str) -> Outcome:
    env = {"RKNN_MOCK_PERSONA": persona, "RKNN_MOCK_FAULTS": "", **env}
    with Runner(choose_target(library, env=env), level="quick", seed=1) as runner:
        return runner.run(check, deadline_s=120, env=env)


def bench_of(library: Path, check: str) -> Any:
    request = {"library": str(library), "force": False, "soc": "rk3588", "level": "quick", "seed": 1, "check": check}
    return open_bench(request)


def test_contexts_end_where_the_runtime_says_and_all_of_them_work(mock_library: Path, tmp_path: Path) -> None:
    config = tmp_path / "mock.conf"
    config.write_text("limits.contexts = 20\n", "utf-8")
    outcome = judged(mock_library, "contexts_to_refusal", RKNN_MOCK_CONFIG=str(config))
    assert outcome.verdict is Verdict.PASSED
    assert outcome.covered == "20 contexts held and right, refused at 21, all given back, and the same again"


def test_contexts_that_are_not_given_back_are_told(mock_library: Path) -> None:
    outcome = judged(mock_library, "contexts_to_refusal", RKNN_MOCK_FAULTS="handles-exhausted")
    assert outcome.verdict is Verdict.FAILED
    assert "only 0 of 7 contexts could be made after as many had been destroyed" in (outcome.reason or "")


def test_a_wrong_product_in_one_of_many_contexts_is_found(mock_library: Path) -> None:
    outcome = judged(mock_library, "contexts_to_refusal", RKNN_MOCK_FAULTS="c-zero")
    assert "context 0 of 150: " in (outcome.reason or "")
    assert "C is all zero" in (outcome.reason or "")


def test_a_leak_of_mappings_is_named_by_the_call_that_leaks(
    mock_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []
    call = Librknnrt.call

    def leaking(self: Librknnrt, function: str, *arguments: Any, **options: Any) -> Any:
        if function == "rknn_destroy_mem":
            kept.append(mmap.mmap(-1, 1 << 16))
        return call(self, function, *arguments, **options)

    bench = bench_of(mock_library, "address_space")
    assert "no mapping and no descriptor left behind" in resources.address_space(bench)
    monkeypatch.setattr(Librknnrt, "call", leaking)
    with pytest.raises(AssertionError, match=r"rknn_matmul_create: .*a leak of mappings"):
        resources.address_space(bench)
    for block in kept:
        block.close()


def test_a_domain_out_of_range_that_is_taken_is_wrong(mock_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_of(mock_library, "iommu_domains")
    assert domains.iommu_domains(bench) == "IOMMU domains 0 to 15 right, forwards and backwards; 16 and 255 refused"
    real = Librknnrt.matmul

    def ignoring(self: Librknnrt, *shape: int, iommu_domain: int = 0, **options: Any) -> Matmul:
        return real(self, *shape, iommu_domain=iommu_domain % 16, **options)

    monkeypatch.setattr(Librknnrt, "matmul", ignoring)
    with pytest.raises(AssertionError, match="domain 16 is accepted, but the driver has 16: the number is ignored"):
        domains.iommu_domains(bench)


def test_a_hole_in_the_range_of_domains_is_wrong(mock_library: Path) -> None:
    # The first creation is the question whether the type is taken.
    outcome = judged(mock_library, "iommu_domains", RKNN_MOCK_FAULTS="fail:call=rknn_matmul_create:n=7")
    assert outcome.verdict is Verdict.FAILED
    assert "IOMMU domain 5 is refused, but later ones are taken" in (outcome.reason or "")


@pytest.mark.parametrize(("check", "persona"), [("int4_products", "rk3588"), ("mixed_products", "rk3576")])
def test_int4_is_judged_in_native_layout_where_normal_b_is_refused(
    mock_library: Path, check: str, persona: str
) -> None:
    plain = judged(mock_library, check, persona)
    refused = judged(mock_library, check, persona, RKNN_MOCK_FAULTS="int4-norm-b-refused")
    assert plain.verdict is refused.verdict is Verdict.PASSED
    assert refused.covered == f"{plain.covered}; B in native layout, because normal int4 B is refused"


def test_a_wrong_nibble_order_is_named_in_native_layout_too(mock_library: Path) -> None:
    faults = "int4-norm-b-refused,nibble-order"
    outcome = judged(mock_library, "mixed_products", "rk3576", RKNN_MOCK_FAULTS=faults)
    assert outcome.verdict is Verdict.FAILED
    assert "nibble order" in (outcome.reason or "")


def test_without_a_context_every_call_has_its_code(mock_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_of(mock_library, "error_codes")
    said = refusals.error_codes(bench)
    assert "run of context 0 -7" in said
    assert "create without a request -5" in said
    call = Librknnrt.call

    def yielding(self: Librknnrt, function: str, *arguments: Any, **options: Any) -> Any:
        return None if function == "rknn_matmul_destroy" else call(self, function, *arguments, **options)

    monkeypatch.setattr(Librknnrt, "call", yielding)
    with pytest.raises(AssertionError, match="destroy of context 0: rknn_matmul_destroy returned 0"):
        refusals.error_codes(bench)
