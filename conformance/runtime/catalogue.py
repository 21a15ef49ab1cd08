# SPDX-License-Identifier: Apache-2.0
"""Every check of the runtime, by name, in the order of a run."""

from __future__ import annotations

from collections.abc import Callable

from conformance.bench import Bench, Check
from conformance.runtime import (
    binding,
    domains,
    layouts,
    parallel,
    products,
    quantisation,
    refusals,
    resources,
    speed,
)

_FUNCTIONS: tuple[Callable[[Bench], str], ...] = (
    refusals.type_table,
    refusals.impossible_requests,
    refusals.error_codes,
    products.int8_products,
    products.int8_k_cliff,
    products.int8_wide_n,
    products.int8_to_int8,
    products.int8_to_float,
    products.int4_products,
    products.int16_overflow,
    products.mixed_products,
    products.fp16_products,
    products.fp16_accumulator,
    layouts.native_layouts,
    layouts.transposed_b,
    layouts.converter,
    layouts.k_segments,
    layouts.dynamic_shapes,
    layouts.padding,
    layouts.batch_invariance,
    binding.rebinding,
    binding.native_rewrite,
    binding.red_zones,
    binding.non_cacheable_memory,
    binding.fd_offset,
    binding.int4_normal_b,
    quantisation.scales_per_layer,
    quantisation.scales_per_channel,
    quantisation.scales_per_channel_int32,
    quantisation.scales_per_group,
    parallel.core_masks,
    parallel.n_split,
    parallel.concurrency,
    parallel.many_contexts,
    domains.iommu_domains,
    resources.descriptors,
    resources.address_space,
    resources.memory_growth,
    resources.contexts_to_refusal,
    speed.contexts_speed_up,
    speed.k_cliff_time,
    speed.layout_time,
    speed.spread,
    speed.steadiness,
    speed.published_speed,
)

CHECKS = {function.__name__: Check(function.__name__, function) for function in _FUNCTIONS}
