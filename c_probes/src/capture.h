/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the library's own text apart from the probe's. The runtime logs to stdout or stderr, depending on version, so
 * both are turned into one log file in memory; the probe writes to duplicates of the original ones. */
#ifndef RKNPU_KIT_CAPTURE_H
#define RKNPU_KIT_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct capture {
  FILE *out, *err; /* the program's real stdout and stderr */
  int err_fd;
  int log_fd; /* where descriptors 1 and 2 lead now; -1: nothing is captured */
};

void capture_start(struct capture *capture);
/* Appends what was logged since the last call to the real stderr and puts its beginning in text (never overlong). */
void capture_take(struct capture *capture, char *text, size_t size);
/* The same without text, for exits. */
void capture_flush(struct capture *capture);
/* For a signal handler: only system calls. */
void capture_dump(const struct capture *capture);

/* A fresh file in memory, or a nameless one in /tmp; -1 when neither can be had. */
int capture_file(void);
/* Beginning of such a file, as text. */
void capture_read(int fd, char *text, size_t size);
/* The first line that holds "E RKNN", without its line end; false when there is none. */
bool capture_error_line(const char *text, char *line, size_t size);

#endif
