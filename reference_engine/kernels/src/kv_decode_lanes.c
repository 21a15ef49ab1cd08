/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes and scales back to f32: code times scale, rounded once. A tile of keys has its 16 cells side by side, a row of
 * values its dimensions.
 */
#include "half_lanes.h"
#include "kv_lanes.h"
#include "levels.h"

static void scale_codes(const int8_t *codes, const float *scales, float *out)
{
    for (size_t l = 0; l < KV_TILE; l++)
        out[l] = (float)codes[l] * scales[l];
}

static void scale_nibbles(const uint8_t *codes, const float *scales, float *low, float *high)
{
    for (size_t l = 0; l < KV_TILE; l++) {
        low[l] = (float)((codes[l] & 15) - 8) * scales[l];
        high[l] = (float)((codes[l] >> 4) - 8) * scales[l];
    }
}

const float *EK_AT(ek_kv_tile)(const ek_kv *kv, size_t head, size_t position, float *buffer)
{
    size_t dim = (size_t)kv->k_dim, tiles = (size_t)kv->capacity / KV_TILE;
    size_t tile = head * tiles + position / KV_TILE % tiles;
    if (kv->k_type == EK_KV_F32)
        return (const float *)kv->k_codes + tile * dim * KV_TILE;
    if (kv->k_type == EK_KV_F16) {
        halves_to_floats((const uint16_t *)kv->k_codes + tile * dim * KV_TILE, buffer, dim * KV_TILE);
        return buffer;
    }
    const uint8_t *codes = (const uint8_t *)kv->k_codes + tile * kv_codes(kv->k_type, dim) * KV_TILE;
    const uint16_t *halves = kv->k_scales + tile * (dim / KV_BLOCK) * KV_TILE;
    for (size_t b = 0; b < dim / KV_BLOCK; b++) {
        float scales[KV_TILE], *out = buffer + b * KV_BLOCK * KV_TILE;
        halves_to_floats(halves + b * KV_TILE, scales, KV_TILE);
        if (kv->k_type == EK_KV_Q8_0)
            for (size_t i = 0; i < KV_BLOCK; i++)
                scale_codes((const int8_t *)codes + (b * KV_BLOCK + i) * KV_TILE, scales, out + i * KV_TILE);
        else
            for (size_t i = 0; i < KV_BLOCK / 2; i++)
                scale_nibbles(codes + (b * KV_BLOCK / 2 + i) * KV_TILE, scales, out + i * KV_TILE,
                              out + (i + KV_BLOCK / 2) * KV_TILE);
    }
    return buffer;
}

static void decode_row(int type, const uint8_t *codes, const uint16_t *scales, float *out, size_t dim)
{
    for (size_t b = 0; b < dim / KV_BLOCK; b++, out += KV_BLOCK) {
        float scale = half_to_float(scales[b]);
        const int8_t *whole = (const int8_t *)codes + b * KV_BLOCK;
        const uint8_t *pairs = codes + b * KV_BLOCK / 2;
        if (type == EK_KV_Q8_0) {
            for (size_t i = 0; i < KV_BLOCK; i++)
                out[i] = (float)whole[i] * scale;
            continue;
        }
        for (size_t i = 0; i < KV_BLOCK / 2; i++) {
            out[i] = (float)((pairs[i] & 15) - 8) * scale;
            out[i + KV_BLOCK / 2] = (float)((pairs[i] >> 4) - 8) * scale;
        }
    }
}

const float *EK_AT(ek_kv_rows)(const ek_kv *kv, size_t head, size_t position, size_t n, float *buffer)
{
    size_t dim = (size_t)kv->v_dim, cell = head * (size_t)kv->capacity + position % (size_t)kv->capacity;
    if (kv->v_type == EK_KV_F32)
        return (const float *)kv->v_codes + cell * dim;
    if (kv->v_type == EK_KV_F16) {
        halves_to_floats((const uint16_t *)kv->v_codes + cell * dim, buffer, n * dim);
        return buffer;
    }
    size_t row = kv_codes(kv->v_type, dim), blocks = dim / KV_BLOCK;
    for (size_t i = 0; i < n; i++)
        decode_row(kv->v_type, (const uint8_t *)kv->v_codes + (cell + i) * row, kv->v_scales + (cell + i) * blocks,
                   buffer + i * dim, dim);
    return buffer;
}
