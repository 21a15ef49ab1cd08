/* SPDX-License-Identifier: Apache-2.0
 *
 * Log lines. One write per line, so that lines of several threads do not mix.
 */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "api.h"

void mock_log(char level, const char *format, ...) {
  char line[1024];
  struct timespec now;
  struct tm local;
  clock_gettime(CLOCK_REALTIME, &now);
  localtime_r(&now.tv_sec, &local);
  int used = snprintf(line, sizeof line, "%c RKNN: [%02d:%02d:%02d.%03d] ", level, local.tm_hour, local.tm_min,
                      local.tm_sec, (int)(now.tv_nsec / 1000000));
  va_list arguments;
  va_start(arguments, format);
  int more = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
  va_end(arguments);
  size_t length = (size_t)used + (more > 0 ? (size_t)more : 0);
  if (length > sizeof line - 2) length = sizeof line - 2;
  line[length] = '\n';
  ssize_t ignored = write(STDERR_FILENO, line, length + 1);
  (void)ignored;
}
