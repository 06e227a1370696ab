#include "c/handles.hpp"
#include "c/shape.hpp"
#include "c/sized.hpp"
#include "c/tensor.hpp"

namespace tilewright::capi {
namespace {

TileCsr csr_of(const tw_tensor* crow, const tw_tensor* col) {
  return {.crow = view_of(required(crow, "crow"), Device::cpu(), "crow"),
          .col = view_of(required(col, "col"), Device::cpu(), "col")};
}

FlexTileLists flex_of(const tw_flex_lists* lists) {
  const Sized given(&required(lists, "lists"), "tw_flex_lists");
  const Device host = Device::cpu();
  return {
      .kv_num_blocks = view_of(given->kv_num_blocks, host, "kv_num_blocks"),
      .kv_indices = view_of(given->kv_indices, host, "kv_indices"),
      .full_kv_num_blocks = optional_view_of(given->full_kv_num_blocks, host, "full_kv_num_blocks"),
      .full_kv_indices = optional_view_of(given->full_kv_indices, host, "full_kv_indices")};
}

}  // namespace
}  // namespace tilewright::capi

using namespace tilewright;
using namespace tilewright::capi;

extern "C" {

tw_status tw_mask_from_csr(const tw_attention* attention, const tw_shape* shape,
                           const tw_bindings* bindings, const tw_tensor* crow, const tw_tensor* col,
                           tw_mask** mask, tw_error** error) {
  return guarded(mask, error, [&] {
    return new tw_mask{block_mask_from_csr(
        of(attention).mask_fingerprint(shape_of(shape), of(bindings)), csr_of(crow, col))};
  });
}

tw_status tw_mask_from_flex(const tw_attention* attention, const tw_shape* shape,
                            const tw_bindings* bindings, const tw_flex_lists* lists, tw_mask** mask,
                            tw_error** error) {
  return guarded(mask, error, [&] {
    return new tw_mask{block_mask_from_flex(
        of(attention).mask_fingerprint(shape_of(shape), of(bindings)), flex_of(lists))};
  });
}

tw_status tw_positions_from_csr(const tw_attention* attention, int64_t length, int64_t heads,
                                const tw_bindings* bindings, const tw_tensor* crow,
                                const tw_tensor* col, tw_mask** mask, tw_error** error) {
  return guarded(mask, error, [&] {
    return new tw_mask{block_mask_from_csr(
        of(attention).position_fingerprint(length, heads, of(bindings)), csr_of(crow, col))};
  });
}

tw_status tw_positions_from_flex(const tw_attention* attention, int64_t length, int64_t heads,
                                 const tw_bindings* bindings, const tw_flex_lists* lists,
                                 tw_mask** mask, tw_error** error) {
  return guarded(mask, error, [&] {
    return new tw_mask{block_mask_from_flex(
        of(attention).position_fingerprint(length, heads, of(bindings)), flex_of(lists))};
  });
}

}  // extern "C"
