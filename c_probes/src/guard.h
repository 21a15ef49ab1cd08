/* SPDX-License-Identifier: Apache-2.0
 *
 * For the person who runs a probe by hand: when the library crashes or never returns, the last thing said is where. */
#ifndef RKNPU_KIT_GUARD_H
#define RKNPU_KIT_GUARD_H

#include "capture.h"
#include "output.h"

enum { STEP_SIZE = 256 };

/* The step under way, as text; the caller writes it before each risky call. Lives as long as the program. */
char *guard_step_text(void);

/* From here on a fatal signal writes the captured log, the signal and the step to stderr, and then takes its usual
 * course (so a parent sees the signal). SIGTERM likewise: the log of a hang is not lost. */
void guard_signals(const struct capture *capture, const char *program);

/* Back to the default actions, for a child whose parent reports its end. */
void guard_no_signals(void);

/* "SIGSEGV"; "signal 50" for one without a name here. The text is static or in room. */
const char *guard_signal_name(int number, char *room, size_t size);

/* Ends the program with exit code 3 and an error of kind "timed-out" once `seconds` have passed; 0: never. */
void guard_deadline(struct output *output, struct capture *capture, double seconds);

#endif
