/* SPDX-License-Identifier: Apache-2.0
 *
 * The refusals of the persona.
 *
 * Texts hold the fragments that log parsers look for (strings of the 2.3.2 library; 1.5.2 measured); the wording
 * around them is our own.
 */
#include "refusals.h"

#include <string.h>

#include "api.h"
#include "faults.h"
#include "memory.h"
#include "settings.h"

/* The caller's info as this runtime reads it: older runtimes own 24 bytes and must not look further. */
int mock_read_request(const rknn_matmul_info *info, mock_request *r) {
  memset(r, 0, sizeof *r);
  if (mock_this_runtime.info_bytes == (int)sizeof(rknn_matmul_info_v1)) {
    rknn_matmul_info_v1 v1;
    memcpy(&v1, info, sizeof v1);
    *r = (mock_request){
        .M = v1.M, .K = v1.K, .N = v1.N, .type = v1.type, .b_layout = v1.B_layout, .ac_layout = v1.AC_layout};
    return 0;
  }
  *r = (mock_request){info->M,
                      info->K,
                      info->N,
                      (int)info->type,
                      info->B_layout,
                      info->B_quant_type,
                      info->AC_layout,
                      info->AC_quant_type,
                      info->iommu_domain_id,
                      info->group_size};
  if (!mock_this_runtime.quant_enum) {
    r->b_quant *= RKNN_QUANT_TYPE_PER_CHANNEL_SYM; /* 2.0.0-beta0: 1 = per channel */
    r->group = 0;
  }
  const unsigned char *reserved = (const unsigned char *)info->reserved;
  for (size_t i = 0; i < sizeof info->reserved && mock_settings_get()->strict_reserved != 0; i++)
    if (reserved[i]) {
      mock_log(
          'E',
          "rknn_matmul_create, info has non-zero reserved bytes (byte %zu is %#x): clear the 64 bytes before use",
          offsetof(rknn_matmul_info, reserved) + i, reserved[i]);
      return RKNN_ERR_PARAM_INVALID;
    }
  return 0;
}

static int say_unsupported(int code) {
  const mock_type *type = mock_type_find(code);
  if (mock_this_runtime.wording == 2)
    mock_log('E', "rknn_matmul_create_dynamic_shape, unsupported matmul dtype : %s in this platform",
             type && code != 15 ? type->name : "UNKNOW");
  else
    mock_log('E', "rknn_matmul_create, meet unsupported matmul dtype: %d", code);
  return RKNN_ERR_PARAM_INVALID;
}

int mock_refuse_type(const mock_request *r) {
  const mock_fault_state *refused = mock_fault(FAULT_TYPE_REFUSED);
  if (r->type < 0 || r->type > 31 || !(mock_settings_get()->types & MOCK_TYPE(r->type)))
    return say_unsupported(r->type);
  if (refused && (int)refused->value[0] == r->type) {
    say_unsupported(r->type);
    return (int)refused->value[1];
  }
  return 0;
}

int mock_refuse_size(const mock_request *r, const mock_type *type) {
  const mock_tile rules = mock_tile_for(mock_settings_get()->soc, type), *tile = &rules;
  const mock_settings *settings = mock_settings_get();
  const mock_fault_state *fault;
  int code = (int)settings->refusal_code, limit = settings->k_max[mock_class_of(type->a)];
  bool old = mock_this_runtime.wording == 0;
  if (r->M <= 0 || r->K <= 0 || r->N <= 0) {
    mock_log('E', "rknn_matmul_create, invalid shape M:%d K:%d N:%d", r->M, r->K, r->N);
    return code;
  }
  if (r->K % tile->k_align) {
    if (old)
      mock_log('E', "rknn_matmul_create, matmul K must be align with %d!", tile->k_align);
    else
      mock_log('E', "rknn_matmul_create_dynamic_shape, matmul K:%d must be align with %d!", r->K, tile->k_align);
    return code;
  }
  if (r->N % tile->n_align) {
    if (old)
      mock_log('E', "rknn_matmul_create, matmul N must be align with %d!", tile->n_align);
    else
      mock_log('E', "rknn_matmul_create_dynamic_shape, matmul N:%d must be align with %d!", r->N, tile->n_align);
    return code;
  }
  if (limit && r->K > limit) {
    if (old)
      mock_log('E', "rknn_matmul_create, matmul K must be less than or equal %d!", limit);
    else if (mock_this_runtime.wording == 1)
      mock_log('E', "rknn_matmul_create, k > limit: %d", limit);
    else
      mock_log('E', "rknn_matmul_create_dynamic_shape, max k > limit: %d", limit);
    return code;
  }
  if ((fault = mock_fault(FAULT_K_REFUSED)) && r->K > fault->value[0]) {
    mock_log('E', "rknn_matmul_create, max K = %d, but limit to %d! register field is 0x%x wide", r->K,
             (int)fault->value[0], (unsigned)fault->value[0]);
    return (int)fault->value[1];
  }
  bool n_refused = (fault = mock_fault(FAULT_N_REFUSED)) && r->N > fault->value[0];
  if (n_refused || (settings->n_max > 0 && r->N > settings->n_max)) {
    mock_log('E',
             "rknn_matmul_create, need kernel tile for M = %d, K = %d, N = %d, matmul type = %d, but not support "
             "kernel tile currently!",
             r->M, r->K, r->N, r->type);
    return n_refused ? (int)fault->value[1] : code;
  }
  return 0;
}

int mock_refuse_quant(const mock_request *r, const mock_type *type) {
  const mock_soc *soc = mock_settings_get()->soc;
  bool channel = r->b_quant == RKNN_QUANT_TYPE_PER_CHANNEL_SYM, group = r->b_quant == RKNN_QUANT_TYPE_PER_GROUP_SYM;
  if (r->ac_quant != 0 || (r->b_quant != 0 && !channel && !group)) {
    mock_log('E', "rknn_matmul_create, unsupported quant type: B_quant_type = %d, AC_quant_type = %d", r->b_quant,
             r->ac_quant);
    return RKNN_ERR_PARAM_INVALID;
  }
  if (channel && !(soc->per_channel_types & MOCK_TYPE(type->code))) {
    mock_log('E', "rknn_matmul_create, B_quant_type = PER_CHANNEL_SYM, only supported matmul dtype : %s and %s",
             "RKNN_INT8_MM_INT8_TO_INT8", "RKNN_INT8_MM_INT8_TO_INT32");
    return RKNN_ERR_PARAM_INVALID;
  }
  if (!group) return 0;
  if (!(soc->per_group_types & MOCK_TYPE(type->code)) || type->c == RKNN_TENSOR_INT32 ||
      type->c == RKNN_TENSOR_INT16) {
    mock_log('E', "rknn_matmul_create, B_quant_type = PER_GROUP_SYM, unsupported dtype : %s", type->name);
    return RKNN_ERR_PARAM_INVALID;
  }
  if (r->ac_layout != RKNN_MM_LAYOUT_NATIVE || r->b_layout != RKNN_MM_LAYOUT_NATIVE) {
    mock_log('E',
             "rknn_matmul_create, B_quant_type = PER_GROUP_SYM, only supported AC_layout: Native, B_layout: Native");
    return RKNN_ERR_PARAM_INVALID;
  }
  if (r->group <= 0 || r->K % r->group) {
    mock_log('E', "rknn_matmul_create, K: %d must align group size: %d", r->K, r->group);
    return RKNN_ERR_PARAM_INVALID;
  }
  return 0;
}

int mock_refuse_layout(const mock_request *r, const mock_type *type) {
  const mock_soc *soc = mock_settings_get()->soc;
  if (r->domain < 0 || r->domain >= MOCK_DOMAINS) {
    mock_log('E', "rknn_matmul_create, invalid iommu domain id: %d (0 to %d)", r->domain, MOCK_DOMAINS - 1);
    return RKNN_ERR_PARAM_INVALID;
  }
  bool transposed = mock_this_runtime.quant_enum && r->b_layout == RKNN_MM_LAYOUT_TP_NORM;
  if ((r->ac_layout != 0 && r->ac_layout != 1) || (r->b_layout != 0 && r->b_layout != 1 && !transposed)) {
    mock_log('E', "rknn_matmul_create, unsupported layout: B_layout = %d, AC_layout = %d", r->b_layout, r->ac_layout);
    return RKNN_ERR_PARAM_INVALID;
  }
  if (transposed && !(soc->tp_norm_types & MOCK_TYPE(type->code))) {
    mock_log('E', "rknn_matmul_create, B_layout = 2, only supported matmul dtype : three of this platform's, not %s",
             type->name);
    return RKNN_ERR_PARAM_INVALID;
  }
  return 0;
}

/* Device and driver as the faults want them. */
int mock_refuse_device(void) {
  const mock_fault_state *old = mock_fault(FAULT_DRIVER_OLD);
  if (mock_fault(FAULT_NO_DEVICE)) {
    mock_log('E', "failed to open rknpu module, need to insmod rknpu dirver!");
    mock_log('E', "failed to open rknn device!");
    return RKNN_ERR_FAIL;
  }
  if (old) {
    mock_log('E', "Mismatch driver version, this runtime requires driver version >= 0.9.6, but you have 0.8.2");
    return (int)old->value[0];
  }
  return 0;
}

int mock_refuse_shapes(mock_request *r, int count, const rknn_matmul_shape *shapes) {
  int most_m = 0;
  for (int i = 0; i < count; i++) {
    if (shapes[i].K != shapes[0].K || shapes[i].N != shapes[0].N) {
      mock_log('E', "rknn_matmul_create_dynamic_shape, dynamic_shapes K and N must be same!");
      return RKNN_ERR_PARAM_INVALID;
    }
    if (shapes[i].M > most_m) most_m = shapes[i].M;
    if (shapes[i].M <= 0) {
      mock_log('E', "rknn_matmul_create_dynamic_shape, invalid shape M:%d", shapes[i].M);
      return RKNN_ERR_PARAM_INVALID;
    }
  }
  if (shapes[0].K != r->K || shapes[0].N != r->N) {
    mock_log('E', "rknn_matmul_create_dynamic_shape, dynamic_shapes K and N must be same to info!");
    return RKNN_ERR_PARAM_INVALID;
  }
  if (most_m != r->M) {
    mock_log('W', "rknn_matmul_create_dynamic_shape, max M shape %d != info->M %d, set info.M to max size.", most_m,
             r->M);
    r->M = most_m;
  }
  return 0;
}
