/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memfd_create, O_TMPFILE */
#include "capture.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int capture_file(void) {
  int fd = memfd_create("library log", MFD_CLOEXEC);
  if (fd < 0) fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) fcntl(fd, F_SETFL, O_APPEND);
  return fd;
}

void capture_start(struct capture *capture) {
  const int out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  capture->err_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  capture->out = out_fd >= 0 ? fdopen(out_fd, "w") : NULL;
  capture->err = capture->err_fd >= 0 ? fdopen(capture->err_fd, "w") : NULL;
  capture->log_fd = -1;
  if (!capture->out || !capture->err) { /* closed descriptors: write where we can */
    if (capture->out) fclose(capture->out);
    if (capture->err) fclose(capture->err);
    capture->err_fd = STDERR_FILENO;
    capture->out = stdout;
    capture->err = stderr;
    return;
  }
  setvbuf(capture->err, NULL, _IOLBF, 0);
  setvbuf(stdout, NULL, _IOLBF, 0); /* what the library prints must be in the log before it can crash */
  capture->log_fd = capture_file();
  if (capture->log_fd >= 0) dup2(capture->log_fd, STDERR_FILENO);
  /* Without a log file the library's stdout still must not get among our lines. */
  dup2(capture->log_fd >= 0 ? capture->log_fd : STDERR_FILENO, STDOUT_FILENO);
}

void capture_read(int fd, char *text, size_t size) {
  const ssize_t got = fd >= 0 ? pread(fd, text, size - 1, 0) : 0;
  text[got > 0 ? got : 0] = '\0';
  for (ssize_t i = 0; i < got; i++)
    if (text[i] == '\0') text[i] = '?';
}

void capture_dump(const struct capture *capture) {
  char block[4096];
  off_t at = 0;
  ssize_t got;
  if (capture->log_fd < 0) return;
  while ((got = pread(capture->log_fd, block, sizeof block, at)) > 0) {
    if (write(capture->err_fd, block, (size_t)got) != got) return;
    at += got;
  }
}

void capture_take(struct capture *capture, char *text, size_t size) {
  fflush(stdout);
  text[0] = '\0';
  if (capture->log_fd < 0) return;
  fflush(capture->err);
  capture_read(capture->log_fd, text, size);
  capture_dump(capture);
  if (ftruncate(capture->log_fd, 0) != 0) return; /* then the text is seen twice: no harm */
}

void capture_flush(struct capture *capture) {
  char text[2];
  capture_take(capture, text, sizeof text);
}

bool capture_error_line(const char *text, char *line, size_t size) {
  const char *mark = strstr(text, "E RKNN");
  if (!mark) return false;
  const size_t length = strcspn(mark, "\r\n");
  const size_t kept = length < size - 1 ? length : size - 1;
  memcpy(line, mark, kept);
  line[kept] = '\0';
  return true;
}
