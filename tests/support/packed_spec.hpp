#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "../../generator/spec/spec.hpp"

namespace tilewright::test {

/// The spec in packed layouts; nothing where a buffer has a dimension that packed calls lack.
inline std::optional<Spec> as_packed(Spec spec) {
  const auto is_dense_only = [](const BufferDim& dim) {
    return dim == BufferDim(NamedDim::q_len) || dim == BufferDim(NamedDim::kv_len);
  };
  for (const auto& [name, buffer] : spec.buffers) {
    if (std::any_of(buffer.shape.begin(), buffer.shape.end(), is_dense_only)) return std::nullopt;
  }
  spec.layout = Layout::packed;
  spec.kv_layout.reset();
  return spec;
}

}  // namespace tilewright::test
