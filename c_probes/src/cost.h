/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of mm_cost: what calls of the matmul API cost beside the multiplication. */
#ifndef RKNPU_KIT_COST_H
#define RKNPU_KIT_COST_H

#include "parts.h"

/* Of the run itself. */
void cost_fixed(struct session *session, struct tally *tally);
void cost_cpu_use(struct session *session, struct tally *tally);
void cost_by_M(struct session *session, struct tally *tally);
void cost_wake(struct session *session, struct tally *tally);
/* Of the other calls. */
void cost_bind(struct session *session, struct tally *tally);
void cost_sync(struct session *session, struct tally *tally);
void cost_life(struct session *session, struct tally *tally);

/* Cells of the table: what, of what, value. */
void cost_cells(struct row *row, const char *what, const char *of);
/* CPU seconds used so far by this thread, and by the whole process: a library may wait in a thread of its own. */
double thread_cpu_us(void);
double process_cpu_us(void);

#endif
