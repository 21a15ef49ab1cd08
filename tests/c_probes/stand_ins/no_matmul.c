/* SPDX-License-Identifier: Apache-2.0
 *
 * A library that loads and has nothing of the matmul API. */
int rknn_init(void) { return -1; }
