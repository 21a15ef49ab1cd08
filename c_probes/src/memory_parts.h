/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of mm_memory. */
#ifndef RKNPU_KIT_MEMORY_PARTS_H
#define RKNPU_KIT_MEMORY_PARTS_H

#include "parts.h"

/* Descriptors and memory over create/destroy and over runs: harmless. */
void memory_leaks(struct session *session, struct tally *tally);
/* The three that go up to a limit, or into another address space. */
void memory_contexts(struct session *session, struct tally *tally);
void memory_ceiling(struct session *session, struct tally *tally);
void memory_domains(struct session *session, struct tally *tally);

void memory_cells(struct row *row, const char *what, const char *of, const char *value);

/* Open descriptors of this process; resident memory in bytes. Negative: not known. */
int open_descriptors(void);
double resident_bytes(void);
/* Theil-Sen slope of y over 0..count-1: the median of the slopes of all pairs. */
double slope_of(const double *y, int count);

#endif
