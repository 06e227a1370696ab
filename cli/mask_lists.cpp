#include "cli/mask_lists.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "base/memory.hpp"
#include "runtime/api/mask_file.hpp"
#include "runtime/api/mask_lists.hpp"
#include "runtime/api/safetensors.hpp"

namespace tilewright::cli {
namespace {

const std::vector<std::string> kFlexNames = {"kv_num_blocks", "kv_indices", "full_kv_num_blocks",
                                             "full_kv_indices"};
const std::vector<std::string> kCsrNames = {"crow", "col"};

std::vector<std::string> names_in(const std::string& path) {
  return read_safetensors(path, std::vector<std::string>{}).skipped;
}

bool has_name(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TensorView tensor_in(const TensorFile& file, const std::string& name, const std::string& path) {
  const auto found = file.tensors.find(name);
  if (found != file.tensors.end()) return found->second.view();
  throw Error(ErrorCode::tensor, fmt::format("\"{}\" holds no tensor \"{}\"", path, name),
              "lists of FlexAttention need kv_num_blocks and kv_indices, a CSR crow and col");
}

// 0 of a tensor without dimensions.
std::int64_t last_extent(const TensorView& tensor) {
  return tensor.rank == 0 ? 0 : tensor.extents().back();
}

// fingerprint_of(q_blocks): of a mask with so many rows of tiles.
template <typename FingerprintOf>
BlockMask read_flex(const std::string& path, const FingerprintOf& fingerprint_of) {
  const TensorFile file = read_safetensors(path, kFlexNames);
  FlexTileLists lists{.kv_num_blocks = tensor_in(file, "kv_num_blocks", path),
                      .kv_indices = tensor_in(file, "kv_indices", path)};
  if (file.tensors.contains("full_kv_num_blocks")) {
    lists.full_kv_num_blocks = file.tensors.at("full_kv_num_blocks").view();
  }
  if (file.tensors.contains("full_kv_indices")) {
    lists.full_kv_indices = file.tensors.at("full_kv_indices").view();
  }
  return block_mask_from_flex(fingerprint_of(last_extent(lists.kv_num_blocks)), lists);
}

template <typename FingerprintOf>
BlockMask read_csr(const std::string& path, const FingerprintOf& fingerprint_of) {
  const TensorFile file = read_safetensors(path, kCsrNames);
  const TensorView crow = tensor_in(file, "crow", path);
  return block_mask_from_csr(fingerprint_of(last_extent(crow) - 1),
                             {.crow = crow, .col = tensor_in(file, "col", path)});
}

// Lists of FlexAttention or of a CSR; none where the file has our own.
template <typename FingerprintOf>
std::optional<BlockMask> read_foreign(const std::string& path,
                                      const FingerprintOf& fingerprint_of) {
  const std::vector<std::string> names = names_in(path);
  if (has_name(names, "kv_num_blocks")) return read_flex(path, fingerprint_of);
  if (has_name(names, "crow")) return read_csr(path, fingerprint_of);
  if (has_name(names, "row_offsets")) return {};
  throw Error(ErrorCode::file, fmt::format("\"{}\" holds no block mask", path),
              "it needs the lists that `tilewright mask --outputs` writes, or FlexAttention's "
              "kv_num_blocks and kv_indices, or a CSR's crow and col");
}

}  // namespace

BlockMask read_mask(const std::string& path, const Attention& attention, const Shape& shape,
                    const Bindings& given) {
  const MaskFingerprint fingerprint = attention.mask_fingerprint(shape, given);
  const auto foreign = read_foreign(path, [&](std::int64_t) { return fingerprint; });
  if (foreign) return *foreign;
  BlockMask mask = read_block_mask(path);
  require_fit(mask, fingerprint.source, shape, given);
  return mask;
}

BlockMask read_positions(const std::string& path, const Attention& attention, std::int64_t heads,
                         const Bindings& bindings) {
  const auto foreign = read_foreign(path, [&](std::int64_t q_blocks) {
    const std::int64_t side = attention.spec().block[0];
    return attention.position_fingerprint(std::max<std::int64_t>(q_blocks, 1) * side, heads,
                                          bindings);
  });
  return foreign ? *foreign : read_block_mask(path);
}

void write_flex_lists(const std::string& path, const BlockMask& mask) {
  const FlexTensors lists = to_flex(mask);
  write_safetensors(path, {{"kv_num_blocks", lists.kv_num_blocks.view()},
                           {"kv_indices", lists.kv_indices.view()},
                           {"full_kv_num_blocks", lists.full_kv_num_blocks.view()},
                           {"full_kv_indices", lists.full_kv_indices.view()}});
}

BlockMask mask_of_everything(const Attention& attention, const Shape& shape,
                             const Bindings& bindings) {
  const auto [q_side, kv_side] = attention.spec().block;
  const std::int64_t q_blocks = ceil_div(shape.q_len, q_side);
  const std::int64_t kv_blocks = ceil_div(shape.kv_len, kv_side);
  require_memory_for(static_cast<double>(q_blocks) * static_cast<double>(kv_blocks) * 8,
                     fmt::format("the tiles of {}", shape.describe()));
  std::vector<std::int64_t> crow(static_cast<std::size_t>(q_blocks + 1));
  std::vector<std::int32_t> col(static_cast<std::size_t>(q_blocks * kv_blocks));
  for (std::size_t row = 0; row < crow.size(); ++row) {
    crow[row] = static_cast<std::int64_t>(row) * kv_blocks;
  }
  for (auto row = col.begin(); row != col.end(); row += kv_blocks) {
    std::iota(row, row + kv_blocks, 0);
  }
  const auto view = [](const auto& values, DType dtype) {
    return TensorView::contiguous(static_cast<const void*>(values.data()), dtype,
                                  {static_cast<std::int64_t>(values.size())});
  };
  return block_mask_from_csr(attention.mask_fingerprint(shape, bindings),
                             {.crow = view(crow, DType::i64), .col = view(col, DType::i32)});
}

}  // namespace tilewright::cli
