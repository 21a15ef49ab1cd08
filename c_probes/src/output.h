/* SPDX-License-Identifier: Apache-2.0
 *
 * What a probe says: a table for people or JSON lines for programs, from the same rows. Each JSON line is flushed as
 * soon as it is whole, so that what was measured before a crash is kept. */
#ifndef RKNPU_KIT_OUTPUT_H
#define RKNPU_KIT_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "json.h"
#include "stats.h"

enum { EXIT_FINE = 0, EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_NOT_RUN = 3 };

enum { MAX_CELLS = 10, CELL_WIDTH = 32 };

struct column {
  const char *title;
  int width; /* negative: left-aligned */
};

struct output {
  FILE *out, *err;
  bool json;
  const char *program;
  const struct column *columns;
  int column_count;
  bool heading_shown;
};

/* Numbers that are not known are NaN. */
struct timing {
  double cold_us, create_us, bind_b_us;
  int runs_per_sample, count;
  double run_us[MAX_SAMPLES]; /* per run */
};

struct row {
  const char *name, *unit;
  struct json parameters, evidence; /* complete objects */
  double rate[MAX_SAMPLES];         /* in unit, one per sample */
  int rate_count;
  struct timing timing;
  bool exact;          /* every element was compared */
  const char *verdict; /* a word of the contract */
  char reason[1200];   /* empty: none */
  bool reason_is_plain; /* the cells say it already: not repeated in the table */
  char note[600];      /* for people, where a row passed and something is still to be said */
  char cells[MAX_CELLS][CELL_WIDTH];
};

void row_init(struct row *row, const char *name, const char *unit);
void row_free(struct row *row);
bool row_passed(const struct row *row);
/* {"median":..,"mad":..,"samples":[..]} of the time per run */
void row_put_run_us(struct json *json, const struct timing *timing);

/* library NULL: a probe of the CPU, which opens none. */
/* How many rows came to a verdict about the library, and how many of all are not as they should be. */
struct tally {
  int judged, bad;
};
void tally_row(struct tally *tally, const struct row *row);
/* Exit code: 0 when nothing is wrong, 1 when a row is, 3 when not one row could be judged. */
int tally_exit(const struct tally *tally);

void output_header(struct output *output, const char *library, const char *version, uint64_t seed, int rows,
                   const char *method);
void output_step(struct output *output, const char *step);
void output_row(struct output *output, const struct row *row);
/* One sentence on stderr, and in JSON mode a record too. */
void output_error(struct output *output, const char *kind, const char *message);
void output_end(struct output *output, int exit_code);

#endif
