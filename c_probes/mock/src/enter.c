/* SPDX-License-Identifier: Apache-2.0
 *
 * What every entry point does first.
 */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api.h"
#include "faults.h"
#include "settings.h"

static atomic_ulong calls[MOCK_CALL_COUNT];

const char *mock_call_name(mock_call call) {
  static const char *const names[] = {
#define X(id, name) name,
      MOCK_CALLS(X)
#undef X
  };
  return names[call];
}

mock_call mock_call_find(const char *name) {
  int call = 0;
  while (call < MOCK_CALL_COUNT && strcmp(mock_call_name((mock_call)call), name) != 0) call++;
  return (mock_call)call;
}

static bool due(const mock_fault_state *fault, mock_call call, double number) {
  return fault && fault->call == (int)call &&
         (number == fault->value[0] || (fault->value[1] != 0 && number > fault->value[0]));
}

/* A completion interrupt that never comes: a poll on a pipe into which nobody writes. Only a signal ends it. */
static void hang(void) {
  int ends[2];
  if (pipe(ends) == 0) {
    struct pollfd never = {.fd = ends[0], .events = POLLIN};
    for (;;) poll(&never, 1, -1);
  }
  for (;;) pause();
}

int mock_enter(mock_call call) {
  (void)mock_settings_get();
  double number = (double)(atomic_fetch_add(&calls[call], 1) + 1);
  if (due(mock_fault(FAULT_ABORT), call, number)) abort();
  if (due(mock_fault(FAULT_CRASH), call, number)) {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
  if (due(mock_fault(FAULT_HANG), call, number)) hang();
  if (!due(mock_fault(FAULT_FAIL), call, number)) return 0;
  int code = (int)mock_fault(FAULT_FAIL)->value[2];
  mock_log('E', "%s failed, code %d (injected at call %.0f)", mock_call_name(call), code, number);
  return code;
}
