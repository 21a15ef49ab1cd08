/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <math.h>
#include <string.h>

enum { LINE_WIDTH = 96 };

void row_init(struct row *row, const char *name, const char *unit) {
  memset(row, 0, sizeof *row);
  row->name = name;
  row->unit = unit;
  row->verdict = "could-not-run";
  row->timing.cold_us = row->timing.create_us = row->timing.bind_b_us = NAN;
}

void row_free(struct row *row) {
  json_free(&row->parameters);
  json_free(&row->evidence);
}

void tally_row(struct tally *tally, const struct row *row) {
  const bool could_not = strcmp(row->verdict, "could-not-run") == 0;
  tally->judged += !could_not;
  tally->bad += !row_passed(row) && strcmp(row->verdict, "unsupported") != 0;
}

int tally_exit(const struct tally *tally) {
  return tally->judged == 0 ? EXIT_NOT_RUN : tally->bad ? EXIT_WRONG : EXIT_FINE;
}

bool row_passed(const struct row *row) { return strcmp(row->verdict, "passed") == 0; }

void row_put_run_us(struct json *json, const struct timing *timing) {
  const size_t count = (size_t)timing->count;
  json_open(json, '{');
  json_put_number(json, "median", median_of(timing->run_us, count));
  json_put_number(json, "mad", mad_of(timing->run_us, count));
  json_put_numbers(json, "samples", timing->run_us, count);
  json_close(json, '}');
}

static void write_line(struct output *output, struct json *json) {
  fprintf(output->out, "%s\n", json->text);
  fflush(output->out);
  json_free(json);
}

/* Words of text between margins; the first line goes on from where the cursor is, at column `at`. */
static void write_wrapped(FILE *out, const char *text, int at, int indent) {
  while (*text) {
    int length = (int)strcspn(text, " \n");
    for (int i = 0; i < length; i++) { /* text may quote the library: keep control characters off the terminal */
      const unsigned char c = (unsigned char)text[i];
      fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
    }
    text += length;
    at += length;
    while (*text == ' ' || *text == '\n') text++;
    if (*text && at + 1 + (int)strcspn(text, " \n") <= LINE_WIDTH) {
      fputc(' ', out);
      at++;
    } else if (*text) {
      fprintf(out, "\n%*s", indent, "");
      at = indent;
    }
  }
  fputc('\n', out);
}

void output_header(struct output *output, const char *library, const char *version, uint64_t seed, int rows,
                   const char *method) {
  if (!output->json) {
    fprintf(output->out, "%s\n", output->program);
    if (library) {
      fprintf(output->out, "  library  %s\n", library);
      fprintf(output->out, "  version  %s\n", version[0] ? version : "unknown (no version text in the file)");
      fprintf(output->out, "  seed     %llu\n", (unsigned long long)seed);
    }
    fputs("  method   ", output->out);
    write_wrapped(output->out, method, 11, 11);
    fputc('\n', output->out);
    fflush(output->out);
    return;
  }
  struct json json = {0};
  json_open(&json, '{');
  json_put_string(&json, "record", "header");
  json_put_string(&json, "probe", output->program);
  json_put_string(&json, "library", library);
  json_put_string(&json, "library_version", library && version[0] ? version : NULL);
  json_put_integer(&json, "seed", (int64_t)seed);
  json_put_integer(&json, "rows", rows);
  json_put_string(&json, "method", method);
  json_close(&json, '}');
  write_line(output, &json);
}

void output_step(struct output *output, const char *step) {
  if (!output->json) return;
  struct json json = {0};
  json_open(&json, '{');
  json_put_string(&json, "record", "step");
  json_put_string(&json, "step", step);
  json_close(&json, '}');
  write_line(output, &json);
}

static void write_cells(struct output *output, const struct row *row) {
  if (!output->heading_shown) {
    for (int i = 0; i < output->column_count; i++)
      fprintf(output->out, "%s%*s", i ? "  " : "", i + 1 == output->column_count ? 0 : output->columns[i].width,
              output->columns[i].title);
    fputc('\n', output->out);
    for (int i = 0; i < output->column_count; i++) {
      const int width = output->columns[i].width < 0 ? -output->columns[i].width : output->columns[i].width;
      fprintf(output->out, "%s%.*s", i ? "  " : "", width, "----------------------------------------");
    }
    fputc('\n', output->out);
    output->heading_shown = true;
  }
  for (int i = 0; i < output->column_count; i++)
    fprintf(output->out, "%s%*s", i ? "  " : "", i + 1 == output->column_count ? 0 : output->columns[i].width,
            row->cells[i]);
  fputc('\n', output->out);
  if (row->reason[0] && !row->reason_is_plain) {
    fprintf(output->out, "    ");
    write_wrapped(output->out, row->reason, 4, 4);
  }
  if (row->note[0]) {
    fprintf(output->out, "    note: ");
    write_wrapped(output->out, row->note, 10, 4);
  }
  fflush(output->out);
}

void output_row(struct output *output, const struct row *row) {
  if (!output->json) {
    write_cells(output, row);
    return;
  }
  /* A speed is a result only where the output behind it was right. */
  const size_t count = row_passed(row) ? (size_t)row->rate_count : 0;
  struct json json = {0};
  json_open(&json, '{');
  json_put_string(&json, "record", "row");
  json_put_string(&json, "name", row->name);
  json_key(&json, "parameters");
  json_object(&json, &row->parameters);
  json_put_string(&json, "unit", row->unit);
  json_put_number(&json, "median", median_of(row->rate, count));
  json_put_number(&json, "mad", mad_of(row->rate, count));
  json_put_numbers(&json, "samples", row->rate, count);
  json_key(&json, "run_us");
  if (row_passed(row) && row->timing.count)
    row_put_run_us(&json, &row->timing);
  else
    json_null(&json);
  json_put_number(&json, "cold_run_us", row->timing.cold_us);
  json_key(&json, "runs_per_sample");
  row->timing.runs_per_sample ? json_integer(&json, row->timing.runs_per_sample) : json_null(&json);
  json_put_number(&json, "create_us", row->timing.create_us);
  json_put_number(&json, "bind_b_us", row->timing.bind_b_us);
  json_put_string(&json, "checked", row->exact ? "exact" : "not");
  json_put_string(&json, "verdict", row->verdict);
  json_put_string(&json, "reason", row->reason[0] ? row->reason : NULL);
  json_put_string(&json, "note", row->note[0] ? row->note : NULL);
  json_key(&json, "evidence");
  json_object(&json, &row->evidence);
  json_close(&json, '}');
  write_line(output, &json);
}

void output_error(struct output *output, const char *kind, const char *message) {
  fprintf(output->err, "%s: error: %s\n", output->program, message);
  fflush(output->err);
  if (!output->json) return;
  struct json json = {0};
  json_open(&json, '{');
  json_put_string(&json, "record", "error");
  json_put_string(&json, "kind", kind);
  json_put_string(&json, "message", message);
  json_close(&json, '}');
  write_line(output, &json);
}

void output_end(struct output *output, int exit_code) {
  if (output->json) {
    struct json json = {0};
    json_open(&json, '{');
    json_put_string(&json, "record", "end");
    json_put_integer(&json, "exit_code", exit_code);
    json_close(&json, '}');
    write_line(output, &json);
  }
  fflush(output->out);
}
