/* SPDX-License-Identifier: Apache-2.0
 *
 * What a persona refuses at creation.
 */
#ifndef MOCK_REFUSALS_H
#define MOCK_REFUSALS_H

#include "persona.h"
#include "rknn_abi.h"

/* rknn_matmul_info as this runtime reads it. */
typedef struct {
  int M, K, N, type, b_layout, b_quant, ac_layout, ac_quant, domain, group;
} mock_request;

/* Each returns 0, or the code to return after having logged why. They are asked in this order. */
int mock_refuse_device(void);
int mock_read_request(const rknn_matmul_info *info, mock_request *request);
int mock_refuse_type(const mock_request *request);
/* Dynamic shapes; raises request->M to the largest. */
int mock_refuse_shapes(mock_request *request, int count, const rknn_matmul_shape *shapes);
int mock_refuse_size(const mock_request *request, const mock_type *type);
int mock_refuse_layout(const mock_request *request, const mock_type *type);
int mock_refuse_quant(const mock_request *request, const mock_type *type);

#endif
