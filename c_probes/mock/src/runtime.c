/* SPDX-License-Identifier: Apache-2.0
 *
 * One runtime version, chosen when this file is compiled (MOCK_RUNTIME = 152, 160, 200, 210 or 232). Everything else
 * is compiled once and linked into every version's library. Besides the row of facts this holds the two entry points
 * whose name or arguments changed between releases.
 *
 * Sources: public headers of each release (types, sizes, K limits); refusals of 1.5.2 measured by running that runtime.
 */
#include "api.h"
#include "persona.h"

#define T(code) MOCK_TYPE(code)

#if MOCK_RUNTIME == 152
#define VERSION "1.5.2"
const mock_runtime mock_this_runtime = {VERSION, 24, T(1) | T(2), {2048, 4096, 0}, false, false, false, 0,
                                        "header 1.5.2; limits and refusals measured on the runtime"};
#elif MOCK_RUNTIME == 160
#define VERSION "1.6.0"
const mock_runtime mock_this_runtime = {VERSION, 24, T(1) | T(2) | T(10), {10240, 10240, 10240}, false, false, false,
                                        1, "header 1.6.0"};
#elif MOCK_RUNTIME == 200
#define VERSION "2.0.0-beta0"
const mock_runtime mock_this_runtime = {
    VERSION, 64, T(1) | T(2) | T(3) | T(4) | T(5) | T(6) | T(7) | T(8) | T(10) | T(11), {10240, 10240, 10240},
    false, true, false, 2, "header 2.0.0-beta0"};
#elif MOCK_RUNTIME == 210
#define VERSION "2.1.0"
const mock_runtime mock_this_runtime = {
    VERSION, 64, T(1) | T(2) | T(3) | T(4) | T(5) | T(6) | T(7) | T(8) | T(9) | T(10) | T(11),
    {10240, 10240, 10240}, false, true, true, 2, "header 2.1.0"};
#elif MOCK_RUNTIME == 232
#define VERSION "2.3.2"
const mock_runtime mock_this_runtime = {
    VERSION, 64,
    T(1) | T(2) | T(3) | T(4) | T(5) | T(6) | T(7) | T(8) | T(9) | T(10) | T(11) | T(12) | T(15),
    {0, 0, 0}, true, true, true, 2, "header 2.3.2; strings of the 2.3.2 library"};
#else
#error "MOCK_RUNTIME must be 152, 160, 200, 210 or 232"
#endif

/* Read by scanners that look for the vendor's form; the parentheses say that this is a mock. */
const char mock_version_text[] = "librknnrt version: " VERSION " (mock of rknpu-kit)";

#if MOCK_RUNTIME == 200
int rknn_matmul_create_dyn_shape(rknn_matmul_ctx *ctx, rknn_matmul_info *info, int shape_num,
                                 rknn_matmul_shape dynamic_shapes[], rknn_matmul_io_attr io_attrs[]) {
  return mock_create_dynamic(MOCK_CALL_create_dyn_shape, ctx, info, shape_num, dynamic_shapes, io_attrs);
}

/* Seven arguments, in this release alone. The public header declares the later form, so the name is set here. */
int mock_converter_v200(void *B_input, void *B_output, int K, int N, int subN, int subK, rknn_matmul_type type)
    __asm__("rknn_B_normal_layout_to_native_layout");
int mock_converter_v200(void *B_input, void *B_output, int K, int N, int subN, int subK, rknn_matmul_type type) {
  return mock_convert_b_v200(B_input, B_output, K, N, subN, subK, type);
}
#elif MOCK_RUNTIME >= 210
int rknn_matmul_create_dynamic_shape(rknn_matmul_ctx *ctx, rknn_matmul_info *info, int shape_num,
                                     rknn_matmul_shape dynamic_shapes[], rknn_matmul_io_attr io_attrs[]) {
  return mock_create_dynamic(MOCK_CALL_create_dynamic_shape, ctx, info, shape_num, dynamic_shapes, io_attrs);
}

int rknn_B_normal_layout_to_native_layout(void *B_input, void *B_output, int K, int N, rknn_matmul_info *info) {
  return mock_convert_b(B_input, B_output, K, N, info);
}
#endif
