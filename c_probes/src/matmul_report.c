/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "matmul.h"

void matmul_put_parameters(const struct matmul *m, struct json *json) {
  const struct problem *p = &m->problem;
  json_put_integer(json, "type", p->type);
  json_put_string(json, "type_name", matmul_type_name(p->type));
  json_put_integer(json, "M", p->shape.M);
  json_put_integer(json, "K", p->shape.K);
  json_put_integer(json, "N", p->shape.N);
  json_put_string(json, "B_layout", layout_name(p->B_layout));
  json_put_string(json, "AC_layout", layout_name(p->AC_layout));
  json_put_string(json, "B_quant", quant_name(p->quant));
}

static void put_attr(struct json *json, const rknn_matmul_tensor_attr *attr) {
  const uint32_t n_dims = attr->n_dims < RKNN_MAX_DIMS ? attr->n_dims : RKNN_MAX_DIMS;
  json_open(json, '{');
  json_put_string(json, "type", tensor_type_name((int)attr->type));
  json_key(json, "dims");
  json_open(json, '[');
  for (uint32_t i = 0; i < n_dims; i++) json_integer(json, attr->dims[i]);
  json_close(json, ']');
  json_put_integer(json, "size_bytes", attr->size);
  json_close(json, '}');
}

static void put_wrong(struct json *json, const struct oracle_report *wrong) {
  json_open(json, '{');
  json_put_integer(json, "rows", wrong->rows_wrong);
  json_put_integer(json, "elements", wrong->wrong_elements);
  json_put_boolean(json, "elements_is_lower_bound", wrong->rows_wrong > wrong->rows_computed);
  json_put_integer(json, "first_row", wrong->first_row);
  json_put_integer(json, "first_col", wrong->first_col);
  json_put_number(json, "got", wrong->got);
  json_put_integer(json, "expected", wrong->expected);
  json_put_integer(json, "elements_not_written", wrong->not_written);
  json_put_integer(json, "elements_zero", wrong->zeros);
  json_close(json, '}');
}

void matmul_put_evidence(const struct matmul *m, struct json *json) {
  const struct problem *p = &m->problem;
  const struct matmul_type_info *type = matmul_type_find(p->type);
  if (!type || !type->documented) json_put_string(json, "semantics", "undocumented");
  if (!isnan(m->create_us)) {
    json_key(json, "io_attr");
    json_open(json, '{');
    json_key(json, "A");
    put_attr(json, &m->io.attr.A);
    json_key(json, "B");
    put_attr(json, &m->io.attr.B);
    json_key(json, "C");
    put_attr(json, &m->io.attr.C);
    json_close(json, '}');
  }
  if (p->core_mask) json_put_integer(json, "core_mask_requested", p->core_mask);
  if (m->mask_tried) {
    json_put_boolean(json, "core_mask_accepted", m->mask_code == 0);
    json_put_integer(json, "core_mask_code", m->mask_code);
  }
  if (p->quant == QUANT_PER_CHANNEL) {
    json_put_string(json, "B_scales", "1.0 for every column");
    json_put_number(json, "B_scale_normalised", (double)m->b_scale);
  }
  if (m->plan.nonzeros_per_row) {
    json_key(json, "data");
    json_open(json, '{');
    json_put_integer(json, "A_min", m->plan.a_min);
    json_put_integer(json, "A_max", m->plan.a_max);
    json_put_integer(json, "B_min", m->plan.b_min);
    json_put_integer(json, "B_max", m->plan.b_max);
    json_put_integer(json, "A_nonzeros_per_row", m->plan.nonzeros_per_row);
    json_close(json, '}');
  }
  if (m->b_packing[0]) json_put_string(json, "B_packing", m->b_packing);
  if (m->wrong.rows_wrong) {
    json_put_string(json, "kind", oracle_kind_word(m->wrong.kind));
    json_key(json, "wrong");
    put_wrong(json, &m->wrong);
  }
  if (m->disagreement[0]) json_put_string(json, "disagreement", m->disagreement);
  if (m->log[0]) json_put_string(json, "log", m->log);
}
