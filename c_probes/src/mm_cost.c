/* SPDX-License-Identifier: Apache-2.0
 *
 * mm_cost: what a run costs beside the multiplication, and what the calls around it cost. */
#include "cost.h"
#include "guard.h"

static const char method[] =
    "fixed: time of rknn_matmul_run for the smallest product, so that only the cost of a run is left; the share of "
    "that "
    "time spent inside the library is measured in the same loop. cpu_use: CPU time of the process during runs of "
    "some "
    "milliseconds, over their wall time: near 1 the library polls, near 0 it sleeps. by_M: time per run at fixed K "
    "and N, M "
    "from 1 on: steps show that M is rounded up. bind: rknn_matmul_set_io_mem of B in each layout. sync: "
    "rknn_mem_sync of two "
    "sizes and both directions. life: create and destroy of a context. wake: the first run after a pause, less a "
    "run without "
    "one. Every context that is timed is also run and compared in every element. Spoiled by other load on the CPU, "
    "by "
    "sleeping CPU states and by low clocks.";

static const char *const parts[] = {"fixed", "cpu_use", "by_M", "bind", "sync", "life", "wake", NULL};

static const struct program program = {
    .name = "mm_cost",
    .bit = FOR_COST,
    .purpose =
        "Measures the fixed cost of a run, of binding, syncing, creating and destroying, of runs after a pause, "
        "and\n"
        "the CPU time that waiting takes.",
    .deadline = 300,
    .seconds = 0.2,
    .parts = parts,
};

static const struct column columns[] = {{"what", -9}, {"of", -34}, {"value", 10},
                                        {"unit", -5}, {"MAD", 6},  {"verdict", -13}};

static const struct {
  const char *name;
  void (*measure)(struct session *, struct tally *);
} table[] = {{"fixed", cost_fixed}, {"cpu_use", cost_cpu_use}, {"by_M", cost_by_M}, {"bind", cost_bind},
             {"sync", cost_sync},   {"life", cost_life},       {"wake", cost_wake}};

int main(int argc, char **argv) {
  static struct session session;
  static struct options options;
  struct tally tally = {0};
  int count = 0;
  int code = 0;
  if (!session_begin(&session, &options, &program, columns, sizeof columns / sizeof columns[0], argc, argv, &code))
    return code;
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) count += part_wanted(&options, table[i].name);
  output_header(&session.output, session.runtime.path, session.runtime.version, options.seed, count, method);
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (part_wanted(&options, table[i].name)) table[i].measure(&session, &tally);
  return session_end(&session, tally_exit(&tally));
}
