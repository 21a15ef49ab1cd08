/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

void json_free(struct json *json) {
  free(json->text);
  memset(json, 0, sizeof *json);
}

static void add(struct json *json, const char *bytes, size_t count) {
  if (json->length + count + 1 > json->capacity) {
    json->capacity = 2 * (json->length + count) + 64;
    json->text = grow(json->text, json->capacity);
  }
  memcpy(json->text + json->length, bytes, count);
  json->length += count;
  json->text[json->length] = '\0';
}

static void before_value(struct json *json) {
  if (json->comma) add(json, ",", 1);
  json->comma = true;
}

void json_open(struct json *json, char bracket) {
  before_value(json);
  add(json, &bracket, 1);
  json->comma = false;
}

void json_close(struct json *json, char bracket) {
  add(json, &bracket, 1);
  json->comma = true;
}

/* Length of the well-formed UTF-8 sequence at the start of s (RFC 3629: no surrogates, no overlong forms, nothing
 * above U+10FFFF), 0 when there is none. */
static size_t utf8_length(const unsigned char *s) {
  if (s[0] < 0x80) return 1;
  size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
  if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
  for (size_t i = 1; i < length; i++)
    if ((s[i] & 0xc0) != 0x80) return 0; /* stops at the terminating zero too */
  if (s[0] == 0xe0 && s[1] < 0xa0) return 0;
  if (s[0] == 0xed && s[1] > 0x9f) return 0;
  if (s[0] == 0xf0 && s[1] < 0x90) return 0;
  if (s[0] == 0xf4 && s[1] > 0x8f) return 0;
  return length;
}

static void add_quoted(struct json *json, const char *value) {
  add(json, "\"", 1);
  for (const unsigned char *s = (const unsigned char *)value; *s;) {
    size_t length = utf8_length(s);
    if (length == 0) {
      add(json, "\\ufffd", 6);
      length = 1;
    } else if (*s == '"' || *s == '\\') {
      char escaped[2] = {'\\', (char)*s};
      add(json, escaped, 2);
    } else if (*s < 0x20 || *s == 0x7f) {
      char escaped[8];
      snprintf(escaped, sizeof escaped, "\\u%04x", *s);
      add(json, escaped, 6);
    } else {
      add(json, (const char *)s, length);
    }
    s += length;
  }
  add(json, "\"", 1);
}

void json_key(struct json *json, const char *key) {
  before_value(json);
  add_quoted(json, key);
  add(json, ":", 1);
  json->comma = false;
}

void json_string(struct json *json, const char *value) {
  if (!value) {
    json_null(json);
    return;
  }
  before_value(json);
  add_quoted(json, value);
}

void json_integer(struct json *json, int64_t value) {
  char text[32];
  before_value(json);
  add(json, text, (size_t)snprintf(text, sizeof text, "%" PRId64, value));
}

void json_number(struct json *json, double value) {
  char text[40];
  if (!isfinite(value)) {
    json_null(json);
    return;
  }
  before_value(json);
  add(json, text, (size_t)snprintf(text, sizeof text, "%.9g", value));
}

void json_boolean(struct json *json, bool value) {
  before_value(json);
  add(json, value ? "true" : "false", value ? 4 : 5);
}

void json_null(struct json *json) {
  before_value(json);
  add(json, "null", 4);
}

void json_object(struct json *json, const struct json *value) {
  before_value(json);
  if (value->length)
    add(json, value->text, value->length);
  else
    add(json, "{}", 2);
}

void json_put_string(struct json *json, const char *key, const char *value) {
  json_key(json, key);
  json_string(json, value);
}

void json_put_integer(struct json *json, const char *key, int64_t value) {
  json_key(json, key);
  json_integer(json, value);
}

void json_put_number(struct json *json, const char *key, double value) {
  json_key(json, key);
  json_number(json, value);
}

void json_put_boolean(struct json *json, const char *key, bool value) {
  json_key(json, key);
  json_boolean(json, value);
}

void json_put_numbers(struct json *json, const char *key, const double *values, size_t count) {
  json_key(json, key);
  json_open(json, '[');
  for (size_t i = 0; i < count; i++) json_number(json, values[i]);
  json_close(json, ']');
}
