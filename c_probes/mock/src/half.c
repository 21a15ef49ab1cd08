/* SPDX-License-Identifier: Apache-2.0
 *
 * fp16 and bf16, in integer arithmetic, so that every machine gives the same bits.
 */
#include <string.h>

#include "layout.h"

float mock_half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = (half >> 10) & 0x1fu, fraction = half & 0x3ffu, bits;
  if (exponent == 0x1f) {
    bits = sign | 0x7f800000u | fraction << 13;
  } else if (exponent != 0) {
    bits = sign | (exponent + 112) << 23 | fraction << 13;
  } else if (fraction == 0) {
    bits = sign;
  } else {
    unsigned shift = 0;
    while (!(fraction & 0x400u)) {
      fraction <<= 1;
      shift++;
    }
    bits = sign | (113 - shift) << 23 | (fraction & 0x3ffu) << 13;
  }
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

uint16_t mock_float_to_half(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and more round to infinity */
  if (magnitude < 0x38800000u) {
    /* Subnormal: count units of 2^-24. */
    uint32_t exponent = magnitude >> 23;
    if (exponent < 102) return sign; /* below half a unit; exactly half a unit ties to 0 at exponent 102 */
    uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u, shift = 126 - exponent;
    uint32_t units = fraction >> shift, rest = fraction & ((1u << shift) - 1), middle = 1u << (shift - 1);
    units += rest > middle || (rest == middle && (units & 1));
    return (uint16_t)(sign | units);
  }
  uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1);
  return (uint16_t)(sign | (rounded - 0x38000000u) >> 13);
}

uint16_t mock_float_to_bfloat16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}
