/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands where programs look for the matmul API. Own words; the declarations are in rknn_abi.h.
 */
#ifndef RKNPU_KIT_RKNN_MATMUL_API_H
#define RKNPU_KIT_RKNN_MATMUL_API_H

#include "rknn_api.h"

#endif
