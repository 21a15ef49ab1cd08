/* SPDX-License-Identifier: Apache-2.0
 *
 * A lock that the child of a fork finds free: taken around the fork, so that what it guards is whole, and made anew in
 * the child, whose one thread holds nothing. No two of these locks are ever held together.
 */
#ifndef MOCK_FORK_SAFE_H
#define MOCK_FORK_SAFE_H

#include <pthread.h>

/* Hooks at load, not at first use: a child forked during a pthread_once would wait for it in some C libraries. */
#define MOCK_FORK_SAFE(lock, in_child) \
  static void before_fork(void) { pthread_mutex_lock(&(lock)); } \
  static void after_fork_in_parent(void) { pthread_mutex_unlock(&(lock)); } \
  static void after_fork_in_child(void) { \
    pthread_mutex_init(&(lock), NULL); \
    in_child; \
  } \
  __attribute__((constructor)) static void install_fork_hooks(void) { \
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); \
  }

#endif
