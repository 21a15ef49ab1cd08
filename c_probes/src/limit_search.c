/* SPDX-License-Identifier: Apache-2.0 */
#include "limit_search.h"

#include <math.h>
#include <stdio.h>

/* A shape that looks slow is tried so often again before it counts: a cliff is there every time, a busy CPU is not.
 */
enum { FAR_FROM_EDGES = 1024, SECOND_LOOKS = 3 };

static int *dimension_of(struct shape *shape, char dimension) {
  return dimension == 'M' ? &shape->M : dimension == 'K' ? &shape->K : &shape->N;
}

static struct problem problem_at(const struct line *line, int value) {
  struct problem problem = line->base;
  *dimension_of(&problem.shape, line->dimension) = value;
  return problem;
}

static bool accepts(struct session *session, const struct line *line, int value) {
  struct trial trial = {.value = value};
  const struct problem problem = problem_at(line, value);
  limit_try(session, &problem, false, &trial);
  return trial.accepted;
}

void line_find_alignment(struct session *session, struct line *line) {
  line->alignment = 0;
  for (int step = 1; step <= FAR_FROM_EDGES && !line->alignment; step *= 2)
    if (accepts(session, line, FAR_FROM_EDGES + step)) line->alignment = step;
  if (line->alignment) { /* accepted is not enough: that far beside the grid of its neighbours it must be right too
                          */
    struct trial trial = {.value = FAR_FROM_EDGES + line->alignment};
    const struct problem problem = problem_at(line, trial.value);
    limit_try(session, &problem, true, &trial);
    line->alignment_right = trial.right;
    snprintf(line->alignment_why, sizeof line->alignment_why, "%s", trial.why);
  }
  line->regular = line->alignment && accepts(session, line, FAR_FROM_EDGES + 3 * line->alignment);
}

bool trial_holds(const struct line *line, const struct trial *trial, enum limit limit) {
  if (limit == LIMIT_ACCEPTED) return trial->accepted;
  if (limit == LIMIT_RIGHT || !trial->right) return trial->right;
  double best = INFINITY;
  for (int i = 0; i < line->count; i++) {
    const struct trial *other = &line->trials[i];
    if (other->right && other->value <= trial->value && other->ns_per_mac < best) best = other->ns_per_mac;
  }
  return trial->ns_per_mac <= 2 * best;
}

static const struct trial *try_at(struct session *session, struct line *line, int value, bool run) {
  for (int i = 0; i < line->count; i++)
    if (line->trials[i].value == value && (line->trials[i].known_right || !run)) return &line->trials[i];
  if (line->count == MAX_TRIALS) return NULL;
  struct trial *trial = &line->trials[line->count];
  const struct problem problem = problem_at(line, value);
  trial->value = value;
  limit_try(session, &problem, run, trial);
  line->count++;
  for (int more = 0; more < SECOND_LOOKS && trial->right && !trial_holds(line, trial, LIMIT_FAST); more++) {
    struct trial again = {.value = value};
    limit_try(session, &problem, run, &again);
    if (!again.right)
      *trial = again;
    else if (again.ns_per_mac < trial->ns_per_mac)
      trial->ns_per_mac = again.ns_per_mac;
  }
  return trial;
}

struct limit_found line_limit(const struct line *line, enum limit limit) {
  struct limit_found found = {0};
  for (int i = 0; i < line->count; i++) {
    const struct trial *trial = &line->trials[i];
    if (limit != LIMIT_ACCEPTED && trial->accepted && !trial->known_right) continue;
    if (!trial_holds(line, trial, limit) && (!found.beyond || trial->value < found.beyond->value))
      found.beyond = trial;
  }
  for (int i = 0; i < line->count; i++) {
    const struct trial *trial = &line->trials[i];
    if (limit != LIMIT_ACCEPTED && !trial->known_right) continue;
    const bool below = !found.beyond || trial->value < found.beyond->value;
    if (below && trial_holds(line, trial, limit) && trial->value > found.value) found.value = trial->value;
  }
  found.at_least = found.value > 0 && !found.beyond;
  return found;
}

void line_search(struct session *session, struct line *line) {
  const int start = *dimension_of(&line->base.shape, line->dimension);
  line->count = 0;
  for (int value = start; value <= line->cap; value *= 2) {
    const struct trial *trial = try_at(session, line, value, true);
    if (!trial || !trial->accepted) break;
  }
  for (int limit = 0; limit < LIMIT_COUNT; limit++)
    for (;;) {
      const struct limit_found found = line_limit(line, (enum limit)limit);
      const int step = line->alignment ? line->alignment : 1;
      if (!found.beyond || found.value == 0) break;
      const int gap = (found.beyond->value - found.value) / step;
      if (gap < 2 || !try_at(session, line, found.value + gap / 2 * step, limit != LIMIT_ACCEPTED)) break;
    }
}
