/* SPDX-License-Identifier: Apache-2.0
 *
 * mm_memory: what the library keeps, how much it gives, and whether other IOMMU domains work. */
#include "guard.h"
#include "memory_parts.h"

static const char method[] =
    "leaks: descriptors and resident memory over 64 contexts made and destroyed, over buffers, and over 512 runs; "
    "the slope "
    "(median over all pairs, first quarter dropped) should be 0. contexts: alive at once until one is refused, the "
    "descriptors of each, and whether a new one works afterwards. ceiling: blocks of 64 MiB in IOMMU domains 0 and "
    "1 until one is "
    "refused, with an early stop at half of the available memory: then the figure is a lower bound. domains: a "
    "context in "
    "domain 1 run, compared, and run in turns with one in domain 0. All but leaks go to limits that have hung "
    "boards with old "
    "drivers. Spoiled by other users of the NPU and by low memory.";

static const char *const parts[] = {"leaks", "contexts", "ceiling", "domains", NULL};

static const struct program program = {
    .name = "mm_memory",
    .bit = FOR_MEMORY,
    .purpose =
        "Looks for leaks of descriptors and memory (part leaks, the only one without --part), and on request for "
        "limits.",
    .deadline = 120,
    .parts = parts,
    .most = "largest number of contexts, or of MiB for the ceiling",
};

static const struct column columns[] = {{"what", -11}, {"of", -31}, {"value", 9}, {"unit", -8}, {"verdict", -13}};

static const struct {
  const char *name;
  void (*measure)(struct session *, struct tally *);
} table[] = {{"leaks", memory_leaks},
             {"contexts", memory_contexts},
             {"ceiling", memory_ceiling},
             {"domains", memory_domains}};

int main(int argc, char **argv) {
  static struct session session;
  static struct options options;
  struct tally tally = {0};
  int code = 0;
  if (!session_begin(&session, &options, &program, columns, sizeof columns / sizeof columns[0], argc, argv, &code))
    return code;
  if (options.part_count == 0) options.parts[options.part_count++] = parts[0];
  output_header(&session.output, session.runtime.path, session.runtime.version, options.seed, 0, method);
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (part_wanted(&options, table[i].name)) table[i].measure(&session, &tally);
  return session_end(&session, tally_exit(&tally));
}
