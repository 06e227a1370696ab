#include "generator/render/extrema_table.hpp"

#include <algorithm>

#include "generator/snippet/spec_facts.hpp"

namespace tilewright {
namespace {

bool is_per_batch_or_head(const BufferDim& dim) {
  const auto* name = std::get_if<NamedDim>(&dim);
  if (!name) return dim == BufferDim(std::int64_t{1});
  return *name == NamedDim::batch || *name == NamedDim::num_q_heads ||
         *name == NamedDim::num_kv_heads;
}

bool has_table(const BufferSpec& buffer) {
  if (is_floating(buffer.dtype) || buffer.shape.empty()) return false;
  if (buffer.sorted.is_promised()) return false;
  return !is_per_batch_or_head(buffer.shape.back()) &&
         std::all_of(buffer.shape.begin(), buffer.shape.end() - 1, is_per_batch_or_head);
}

}  // namespace

std::vector<ExtremaTable> extrema_tables(const SpecFacts& facts) {
  const Spec& spec = facts.spec;
  const Snippet& snippet = facts.required_mask_mod();
  std::vector<ExtremaTable> tables;
  std::size_t index = 0;
  for (const auto& [name, buffer] : spec.buffers) {
    if (snippet.mentions(name) && has_table(buffer) && tables.size() < kMaxExtremaTables) {
      tables.push_back({index, buffer.shape.size(), is_wide_integer(buffer.dtype)});
    }
    ++index;
  }
  return tables;
}

}  // namespace tilewright
