/* SPDX-License-Identifier: Apache-2.0 */
#include "half.h"

#include <string.h>

uint16_t half_of_integer(int value) {
  if (value == 0) return 0;
  unsigned sign = value < 0 ? 0x8000u : 0u;
  unsigned magnitude = value < 0 ? (unsigned)-value : (unsigned)value;
  int exponent = 0;
  while (magnitude >> (exponent + 1)) exponent++;
  unsigned fraction = exponent <= 10 ? magnitude << (10 - exponent) : magnitude >> (exponent - 10);
  return (uint16_t)(sign | (unsigned)(exponent + 15) << 10 | (fraction & 0x3ffu));
}

static float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

float float_of_half(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
  uint32_t exponent = (half >> 10) & 0x1fu, fraction = half & 0x3ffu;
  if (exponent == 0x1f) return float_of_bits(sign | 0x7f800000u | fraction << 13);
  if (exponent) return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
  float value = (float)fraction * (1.0f / 16777216.0f); /* subnormal: units of 2^-24 */
  return sign ? -value : value;
}

uint16_t bfloat16_of_integer(int value) {
  float as_float = (float)value;
  uint32_t bits;
  memcpy(&bits, &as_float, sizeof bits);
  return (uint16_t)(bits >> 16);
}

float float_of_bfloat16(uint16_t bits) { return float_of_bits((uint32_t)bits << 16); }
