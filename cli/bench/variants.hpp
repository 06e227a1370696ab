#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "generator/spec/spec.hpp"

namespace tilewright::cli {

/// Attention without snippets.
Spec dense_variant(DType dtype, std::int64_t head_dim);

/// Each position sees itself and what is before it.
Spec causal_variant(DType dtype, std::int64_t head_dim);

/// The packed documents of a causal batch, by the rows of the packed tensors.
Spec packed_documents_variant(DType dtype, std::int64_t head_dim);

/// Causal in blocks of 64: the 16 last blocks, and every eighth.
Spec block_sparse_variant(DType dtype, std::int64_t head_dim);

/// Variants that people ask for, the plain one first: masks, scores, and both.
std::vector<Spec> mod_variants(DType dtype, std::int64_t head_dim);

/// The variants that long sequences are compared by, each named as its peer in bench/peers.py:
/// windows, documents and prefixes of a thousand tokens, a picture of 64 x 128.
std::vector<Spec> long_mod_variants(DType dtype, std::int64_t head_dim);

/// One of those.
Spec long_variant(std::string_view name, DType dtype, std::int64_t head_dim);

/// Those whose tiles of the block mask are worth counting.
std::vector<Spec> mask_variants();

}  // namespace tilewright::cli
