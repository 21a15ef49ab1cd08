/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds one JSON text in memory. Text from a library is untrusted: control characters are escaped and invalid UTF-8
 * becomes U+FFFD. A number that is not finite becomes null, for JSON has no word for it. */
#ifndef RKNPU_KIT_JSON_H
#define RKNPU_KIT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
  char *text; /* zero-terminated once anything was added */
  size_t length, capacity;
  bool comma; /* a value stands before: the next one needs a comma */
};

void json_free(struct json *json);

void json_open(struct json *json, char bracket); /* '{' or '[' */
void json_close(struct json *json, char bracket);
void json_key(struct json *json, const char *key);

void json_string(struct json *json, const char *value); /* NULL becomes null */
void json_integer(struct json *json, int64_t value);
void json_number(struct json *json, double value);
void json_boolean(struct json *json, bool value);
void json_null(struct json *json);
/* value: a complete object built elsewhere; empty becomes {}. */
void json_object(struct json *json, const struct json *value);

/* key and value in one call */
void json_put_string(struct json *json, const char *key, const char *value);
void json_put_integer(struct json *json, const char *key, int64_t value);
void json_put_number(struct json *json, const char *key, double value);
void json_put_boolean(struct json *json, const char *key, bool value);
void json_put_numbers(struct json *json, const char *key, const double *values, size_t count);

#endif
