/* SPDX-License-Identifier: Apache-2.0
 *
 * The mock's own functions. No vendor runtime exports them: their presence tells a mock.
 */
#ifndef RKNPU_KIT_RKNN_MOCK_H
#define RKNPU_KIT_RKNN_MOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "librknnrt version: X.Y.Z (mock of rknpu-kit)" */
const char *rknn_mock_version(void);

/* A table as text: one row a line, cells parted by tabs. "faults": name, parameters with defaults, what it imitates.
 * "personas": name, title, cores, accepted type codes at this runtime, timing set, doubts. "timing": name, what,
 * source, then key=value cells. Returns the length without the closing zero, as snprintf does; 0 for an unknown
 * table. */
size_t rknn_mock_list(const char *what, char *text, size_t size);

/* "contexts" and "memories" alive now, "memo_hits" so far. 0, or -1 for an unknown name. */
int rknn_mock_counter(const char *name, uint64_t *value);

/* Would this text do as an RKNN_MOCK_CONFIG file? 0, or -1 with a sentence in error (cut to size). Changes nothing.
 */
int rknn_mock_check(const char *text, char *error, size_t size);

/* Name of the int8 kernel in use. */
const char *rknn_mock_kernel(void);

#ifdef __cplusplus
}
#endif

#endif
