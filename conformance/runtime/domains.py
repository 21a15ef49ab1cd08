# SPDX-License-Identifier: Apache-2.0
"""IOMMU domains: the sixteen address spaces of the NPU's kernel driver."""

from __future__ import annotations

from contextlib import ExitStack

from c_probes.librknnrt import MatmulType, RknnError
from conformance.bench import Bench, NotServed, Wrong, right
from conformance.oracles import exact_product, random_int8
from conformance.oracles_compare import difference
from conformance.runtime.products import multiply

INT8 = MatmulType.INT8_MM_INT8_TO_INT32
DOMAINS = 16
"""RKNPU_MAX_IOMMU_DOMAIN_NUM of the vendor's kernel driver 0.9.8; the API reference says 0 to 15 as well."""

M, K, N = 3, 96, 64


def iommu_domains(bench: Bench) -> str:
    """A context in each IOMMU domain from 0 to 15 gives its own product, alone and in turns; domain 16 is refused.

    Two processes on domains of their own, or a second client, ended in kernel panics (READMEs of rk-llama.cpp forks),
    and a domain could not be chosen at all (rknn-toolkit2 issue 287). So silicon is asked at levels medium and long
    alone, by one process, and for a number out of range at level long alone.
    """
    bench.needs(INT8)
    if bench.level == "quick" and not bench.library.is_mock:
        raise NotServed(
            "IOMMU domains are tried on silicon at levels medium and long alone: kernel panics were reported"
        )
    with ExitStack() as stack:
        taken, refused = [], {}
        for domain in range(DOMAINS):
            try:
                taken.append((domain, stack.enter_context(bench.matmul(M, K, N, INT8, iommu_domain=domain))))
            except RknnError as error:
                refused[domain] = error
        numbers = [domain for domain, _ in taken]
        if 0 in refused:
            raise refused[0]
        if numbers == [0]:
            raise NotServed(f"no IOMMU domain but 0 is served (a driver before 0.9.6 has one): {refused[1]}")
        if numbers != list(range(len(numbers))):
            first = min(refused)
            raise Wrong(f"IOMMU domain {first} is refused, but later ones are taken: {refused[first]}")
        for turn in range(2):
            for domain, matmul in taken if turn == 0 else taken[::-1]:
                a, b = random_int8(bench.random, (M, K), 0), random_int8(bench.random, (K, N), 1)
                right(
                    difference(exact_product(a, b), multiply(matmul, a, b)), f"IOMMU domain {domain}, turn {turn + 1}"
                )
    return f"IOMMU domains 0 to {numbers[-1]} right, forwards and backwards{_beyond(bench)}"


def _beyond(bench: Bench) -> str:
    """Asks for numbers that no driver has."""
    if bench.level != "long" and not bench.library.is_mock:
        return "; a number out of range is asked for at level long"
    for domain in (DOMAINS, 255):
        try:
            bench.library.matmul(M, K, N, INT8, iommu_domain=domain).close()
        except RknnError as error:
            if error.code is None or error.code >= 0:
                raise Wrong(f"IOMMU domain {domain} is refused with code {error.code}, not a negative one") from error
        else:
            raise Wrong(f"IOMMU domain {domain} is accepted, but the driver has {DOMAINS}: the number is ignored")
    return f"; {DOMAINS} and 255 refused"
