#include "c/handles.hpp"
#include "c/shape.hpp"
#include "c/sized.hpp"

namespace tilewright::capi {
namespace {

BlockMaskOptions mask_options(const tw_mask_options* options) {
  const Sized given(options, "tw_mask_options");
  BlockMaskOptions result{.stream = given->stream, .transposed = given->transposed != 0};
  if (given->has_capacity) result.capacity = given->capacity;
  return result;
}

tw_mask_info info_of(const BlockMask& mask) {
  const TileCounts counts = mask.counts();
  const std::int64_t tiles = mask.rows() * mask.kv_blocks();
  tw_mask_info info = {};
  info.batch = mask.batch();
  info.heads = mask.heads();
  info.q_blocks = mask.q_blocks();
  info.kv_blocks = mask.kv_blocks();
  info.block[0] = mask.block()[0];
  info.block[1] = mask.block()[1];
  info.partial_tiles = counts.partial;
  info.full_tiles = counts.full;
  info.empty_tiles = tiles - counts.partial - counts.full;
  info.tiles_evaluated = counts.evaluated;
  info.bytes = mask.bytes();
  info.density = mask.density();
  return info;
}

}  // namespace
}  // namespace tilewright::capi

using namespace tilewright;
using namespace tilewright::capi;

extern "C" {

tw_status tw_mask_create(const tw_attention* attention, const tw_shape* shape,
                         const tw_bindings* bindings, const tw_mask_options* options,
                         tw_mask** mask, tw_error** error) {
  return guarded(mask, error, [&] {
    return new tw_mask{
        of(attention).block_mask(shape_of(shape), of(bindings), mask_options(options))};
  });
}

tw_status tw_mask_rebuild(const tw_attention* attention, tw_mask* mask, const tw_shape* shape,
                          const tw_bindings* bindings, void* stream, tw_error** error) {
  return guarded(error, [&] {
    of(attention).rebuild(required(mask, "mask").mask, shape_of(shape), of(bindings), stream);
  });
}

tw_status tw_mask_slice_rows(const tw_mask* mask, int64_t first_row, int64_t rows, int64_t kv_len,
                             tw_mask** slice, tw_error** error) {
  return guarded(slice, error, [&] {
    RowSlice wanted{.first_row = first_row, .rows = rows};
    if (kv_len != -1) wanted.kv_len = kv_len;
    return new tw_mask{slice_rows(required(mask, "mask").mask, wanted)};
  });
}

tw_status tw_mask_describe(const tw_mask* mask, tw_mask_info* info, tw_error** error) {
  return guarded(error,
                 [&] { fill_sized(info, info_of(required(mask, "mask").mask), "tw_mask_info"); });
}

tw_status tw_mask_save(const tw_mask* mask, const char* path, tw_error** error) {
  return guarded(error, [&] {
    required(path, "path");
    write_block_mask(path, required(mask, "mask").mask);
  });
}

tw_status tw_mask_load(const char* path, tw_mask** mask, tw_error** error) {
  return guarded(mask, error, [&] {
    required(path, "path");
    return new tw_mask{read_block_mask(path)};
  });
}

void tw_mask_destroy(tw_mask* mask) {
  delete mask;
}

}  // extern "C"
