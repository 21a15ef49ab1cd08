/* SPDX-License-Identifier: Apache-2.0
 *
 * mm_stream: how fast the NPU streams weights, and what it and the CPU take from each other. */
#include "guard.h"
#include "stream.h"

static const char method[] =
    "stream: products of one row, M = 1, whose weights B are far larger than any cache, so that a run is as fast "
    "as B can be "
    "read; one context per core, for 1 to all cores at once; rate = bytes of A, B and C / time while all contexts "
    "run. A second B "
    "of a quarter of the size tells the fixed cost of a run apart: net_gbps is the slope between the two. "
    "contention: CPU "
    "threads that read memory, and as a control CPU threads that compute in their first-level cache, alone, beside "
    "the NPU, and "
    "the NPU beside them, in turns; 1 = nothing is taken. Every C, every sum and every dot product is compared. "
    "Spoiled by "
    "other load, by a memory clock that moves, and by fewer CPUs than threads.";

static const char *const parts[] = {"stream", "contention", NULL};

static const struct program program = {
    .name = "mm_stream",
    .bit = FOR_STREAM,
    .purpose =
        "Measures the bandwidth of NPU weight streaming on 1 to 3 cores, and the contention between CPU and NPU.",
    .deadline = 120,
    .seconds = 0.4,
    .parts = parts,
};

static const struct column columns[] = {{"what", -8}, {"of", -30}, {"value", 8},
                                        {"unit", -5}, {"MAD", 6},  {"verdict", -13}};

int main(int argc, char **argv) {
  static struct session session;
  static struct options options;
  struct tally tally = {0};
  int masks[MAX_MASKS] = {0};
  int code = 0;
  if (!session_begin(&session, &options, &program, columns, sizeof columns / sizeof columns[0], argc, argv, &code))
    return code;
  const int cores = cores_find(&session, masks);
  const bool stream = part_wanted(&options, "stream"), contention = part_wanted(&options, "contention");
  output_header(&session.output, session.runtime.path, session.runtime.version, options.seed,
                (stream ? cores : 0) + (contention ? 4 : 0), method);
  if (stream) stream_rows(&session, masks, cores, &tally);
  if (contention) contention_rows(&session, masks, cores, &tally);
  return session_end(&session, tally_exit(&tally));
}
