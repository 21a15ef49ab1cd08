/* SPDX-License-Identifier: Apache-2.0
 *
 * Half precision and bfloat16, by bits: no compiler type, so that every target gives the same values. */
#ifndef RKNPU_KIT_HALF_H
#define RKNPU_KIT_HALF_H

#include <stdint.h>

/* The binary16 of a small integer; exact for |value| <= 2048, which is all the probes ask of it. */
uint16_t half_of_integer(int value);
/* Every binary16 is a float, infinities and NaN included. */
float float_of_half(uint16_t half);
uint16_t bfloat16_of_integer(int value); /* exact for |value| <= 256 */
float float_of_bfloat16(uint16_t bits);

#endif
