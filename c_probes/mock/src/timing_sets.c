/* SPDX-License-Identifier: Apache-2.0
 *
 * Timing parameters, as data. Each set says where its numbers come from; "assumed" means that no measurement is known.
 */
#include <stddef.h>

#include "timing.h"

#define FLAT(tops) {1, {{1, tops}}}
#define TWO(m1, t1, m2, t2) {2, {{m1, t1}, {m2, t2}}}
#define EVERYWHERE(f16, i8, i4) {{FLAT(f16), FLAT(f16)}, {FLAT(i8), FLAT(i8)}, {FLAT(i4), FLAT(i4)}}
/* Bind cost is published without its size; 186 us is taken to be that of a 2048 x 2048 int8 B. Sync, create and
 * destroy are assumed. */
#define HOST_COSTS \
  .bind_native_us = 4.9, .bind_norm_us = 186, .bind_norm_bytes = 2048.0 * 2048.0, .sync_us = 2, .sync_gbps = 8, \
  .create_us = 150, .destroy_us = 60, .scale = 1

const mock_timing_set mock_timing_sets[] = {
    {"campaign",
     "the published RK3588 int8 campaign: 0.69 TOPS per core, 1.29 and 1.83 on two and three, K > 8192 14 times slower",
     {.fixed_us = 32.9, .bw_core_gbps = 11.1, .bw_shared_gbps = 26.6, .share2 = 1.29 / 1.38, .share3 = 1.83 / 2.07,
      .k_cliff = {4096, 8192, 8192}, .k_cliff_factor = 14, HOST_COSTS, .rate = EVERYWHERE(0.388, 0.69, 0.69),
      .source = "marfrit/rk-llama.cpp bench (4096^3, 2.3.2, NPU 1.0 GHz); unimatrix099 decode notes (fixed cost, "
                "GB/s); fp16 = int8 / 1.78 (pty819); int4 assumed like int8"}},
    {"rk3588",
     "RK3588 with rates that depend on M and on the layout of A and C",
     {.fixed_us = 32.9, .bw_core_gbps = 11.1, .bw_shared_gbps = 26.6, .share2 = 1.29 / 1.38, .share3 = 1.83 / 2.07,
      .k_cliff = {4096, 8192, 8192}, .k_cliff_factor = 14, HOST_COSTS,
      .rate = {{TWO(128, 0.75, 512, 0.388), TWO(128, 0.90, 512, 0.388)},
               {TWO(128, 1.08, 512, 0.69), TWO(128, 1.88, 512, 0.69)},
               {FLAT(0.045), FLAT(3.7)}},
      .source = "unimatrix099 int4 research (M = 128, normal and native); marfrit bench (M >= 512); clehaxze gemlog "
                "(fp16); between the points interpolated"}},
    {"rk3576",
     "RK3576: bandwidth from published decode speed, the rest assumed",
     {.fixed_us = 40, .bw_core_gbps = 7.5, .bw_shared_gbps = 13, .share2 = 0.92, .share3 = 0.92,
      .k_cliff = {4096, 4096, 4096}, .k_cliff_factor = 14, HOST_COSTS, .rate = EVERYWHERE(0.5, 1.0, 1.0),
      .source = "13 GB/s = TinyLlama w8a8 1.1 GB x 12.18 tokens/s (vendor benchmark page); rates assumed"}},
    {"rk3562",
     "RK3562: assumed from its rated 1 TOPS",
     {.fixed_us = 40, .bw_core_gbps = 4, .bw_shared_gbps = 4, .share2 = 1, .share3 = 1, .k_cliff_factor = 1, HOST_COSTS,
      .rate = EVERYWHERE(0.17, 0.34, 0.34), .source = "assumed"}},
    {"rk3566",
     "RK3566: assumed from its rated 0.8 TOPS",
     {.fixed_us = 50, .bw_core_gbps = 3, .bw_shared_gbps = 3, .share2 = 1, .share3 = 1, .k_cliff_factor = 1, HOST_COSTS,
      .rate = EVERYWHERE(0.135, 0.27, 0.27), .source = "assumed"}},
    {"rk3568",
     "RK3568: assumed from its rated 1 TOPS",
     {.fixed_us = 50, .bw_core_gbps = 3, .bw_shared_gbps = 3, .share2 = 1, .share3 = 1, .k_cliff_factor = 1, HOST_COSTS,
      .rate = EVERYWHERE(0.17, 0.34, 0.34), .source = "assumed"}},
    {"rv1126b",
     "RV1126B: assumed from its rated 3 TOPS",
     {.fixed_us = 40, .bw_core_gbps = 5, .bw_shared_gbps = 5, .share2 = 1, .share3 = 1, .k_cliff_factor = 1, HOST_COSTS,
      .rate = EVERYWHERE(0.5, 1.0, 1.0), .source = "assumed"}},
};
const size_t mock_timing_set_count = sizeof mock_timing_sets / sizeof *mock_timing_sets;
