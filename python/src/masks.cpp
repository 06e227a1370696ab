#include <optional>
#include <string>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "arrays.hpp"
#include "attention.hpp"
#include "runtime/api/mask_lists.hpp"
#include "runtime/api/mask_slice.hpp"

namespace nb = nanobind;

namespace tilewright::py {
namespace {

Shape shape_of(std::int64_t batch, std::int64_t num_q_heads, std::int64_t num_kv_heads,
               std::int64_t q_len, std::int64_t kv_len, std::int64_t q_offset,
               std::int64_t kv_offset) {
  return {batch, num_q_heads, num_kv_heads, q_len, kv_len, q_offset, kv_offset};
}

BlockMask make_mask(const Attention& attention, std::int64_t batch, std::int64_t num_q_heads,
                    std::int64_t num_kv_heads, std::int64_t q_len, std::int64_t kv_len,
                    std::int64_t q_offset, std::int64_t kv_offset, const BoundArrays* bound,
                    std::optional<std::int64_t> capacity, std::uintptr_t stream) {
  const Shape shape =
      shape_of(batch, num_q_heads, num_kv_heads, q_len, kv_len, q_offset, kv_offset);
  const BlockMaskOptions options{.stream = stream_of(stream),
                                 .capacity = capacity,
                                 .transposed = !attention.spec().gradients.empty()};
  const nb::gil_scoped_release release;
  return attention.block_mask(shape, bindings_of(bound), options);
}

BlockMask mask_from_flex(const Attention& attention, std::int64_t batch, std::int64_t num_q_heads,
                         std::int64_t num_kv_heads, std::int64_t q_len, std::int64_t kv_len,
                         const BoundArrays* bound, nb::handle kv_num_blocks, nb::handle kv_indices,
                         nb::handle full_kv_num_blocks, nb::handle full_kv_indices) {
  const Device host = Device::cpu();
  FlexTileLists lists{.kv_num_blocks = view_of(kv_num_blocks, "kv_num_blocks", host),
                      .kv_indices = view_of(kv_indices, "kv_indices", host)};
  if (!full_kv_num_blocks.is_none()) {
    lists.full_kv_num_blocks = view_of(full_kv_num_blocks, "full_kv_num_blocks", host);
  }
  if (!full_kv_indices.is_none()) {
    lists.full_kv_indices = view_of(full_kv_indices, "full_kv_indices", host);
  }
  const Shape shape = shape_of(batch, num_q_heads, num_kv_heads, q_len, kv_len, 0, 0);
  return block_mask_from_flex(attention.mask_fingerprint(shape, bindings_of(bound)), lists);
}

nb::bytes bytes_of(const std::vector<std::uint8_t>& values) {
  return nb::bytes(values.data(), values.size());
}

// u8 [batch, heads, q_blocks, kv_blocks]: 0 empty, 1 partial, 2 full.
nb::bytes tiles(const BlockMask& mask) {
  std::vector<std::uint8_t> values;
  for (std::int64_t b = 0; b < mask.batch(); ++b) {
    for (std::int64_t h = 0; h < mask.heads(); ++h) {
      for (std::int64_t q = 0; q < mask.q_blocks(); ++q) {
        for (const BlockMask::Tile tile : mask.row(b, h, q)) {
          values.push_back(static_cast<std::uint8_t>(tile));
        }
      }
    }
  }
  return bytes_of(values);
}

nb::bytes bytes_of(const Tensor& tensor) {
  return nb::bytes(tensor.data(), static_cast<std::size_t>(tensor.bytes()));
}

// i32: kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices.
nb::tuple flex_lists(const BlockMask& mask) {
  const FlexTensors lists = to_flex(mask);
  return nb::make_tuple(bytes_of(lists.kv_num_blocks), bytes_of(lists.kv_indices),
                        bytes_of(lists.full_kv_num_blocks), bytes_of(lists.full_kv_indices));
}

}  // namespace

void declare_masks(nb::class_<Attention>& attention, nb::module_& module) {
  nb::class_<BlockMask>(module, "BlockMask")
      .def_prop_ro("batch", &BlockMask::batch)
      .def_prop_ro("heads", &BlockMask::heads)
      .def_prop_ro("q_blocks", &BlockMask::q_blocks)
      .def_prop_ro("kv_blocks", &BlockMask::kv_blocks)
      .def_prop_ro(
          "block",
          [](const BlockMask& self) { return std::pair(self.block()[0], self.block()[1]); })
      .def_prop_ro("partial_tiles", &BlockMask::partial_tiles)
      .def_prop_ro("full_tiles", &BlockMask::full_tiles)
      .def_prop_ro("empty_tiles", &BlockMask::empty_tiles)
      .def_prop_ro("density", &BlockMask::density)
      .def_prop_ro("path", &BlockMask::path)
      .def("tiles", &tiles)
      .def("flex_lists", &flex_lists)
      .def(
          "slice_rows",
          [](const BlockMask& self, std::int64_t first, std::int64_t rows,
             std::optional<std::int64_t> kv_len) {
            return slice_rows(self, {first, rows, kv_len});
          },
          nb::arg("first"), nb::arg("rows"), nb::arg("kv_len").none());
  attention
      .def("block_mask", &make_mask, nb::arg("batch"), nb::arg("num_q_heads"),
           nb::arg("num_kv_heads"), nb::arg("q_len"), nb::arg("kv_len"), nb::arg("q_offset"),
           nb::arg("kv_offset"), nb::arg("bindings").none(), nb::arg("capacity").none(),
           nb::arg("stream"))
      .def("mask_from_flex", &mask_from_flex, nb::arg("batch"), nb::arg("num_q_heads"),
           nb::arg("num_kv_heads"), nb::arg("q_len"), nb::arg("kv_len"), nb::arg("bindings").none(),
           nb::arg("kv_num_blocks"), nb::arg("kv_indices"), nb::arg("full_kv_num_blocks").none(),
           nb::arg("full_kv_indices").none());
}

}  // namespace tilewright::py
