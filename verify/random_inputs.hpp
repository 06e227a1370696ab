#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "../runtime/api/shape.hpp"
#include "../runtime/api/tensor.hpp"
#include "problem.hpp"

namespace tilewright::verify {

/// The tensors of one call, owned.
struct Inputs {
  Shape shape;
  Tensor q;
  Tensor k;
  Tensor v;
  std::map<std::string, Tensor> buffers;
  std::map<std::string, double> scalars;
  std::optional<Tensor> k_new = {};  ///< of a spec with kv_new
  std::optional<Tensor> v_new = {};

  /// Views of them; the inputs must outlive it.
  Problem problem() const;
};

/// What random inputs look like where the spec leaves it open.
struct RandomOptions {
  bool broadcast_kv = false;  ///< k and v have batch 1
  bool broadcast_buffers =
      false;                   ///< dimensions named batch, num_q_heads, num_kv_heads have size 1
  std::int64_t free_dim = 64;  ///< size of a dimension declared as null
  double q_factor = 1;         ///< q is multiplied by it: large scores
  /// Extents of a buffer's null dimensions, in their order; of a buffer without an entry: free_dim.
  std::map<std::string, std::vector<std::int64_t>> null_extents = {};
  std::int64_t page_size =
      1;  ///< of k and v in pages, which are made as kv_layout "paged" has them
  std::optional<std::int64_t> longest_kv =
      {};  ///< that scalars without a default suit; none: kv_len
};

/// How many dimensions a buffer declares as null.
std::int64_t count_nulls(const BufferSpec& buffer);

/// Inputs for a spec and a shape; the same on every platform for the same seed, and independent of
/// each other: another buffer in the spec changes no other tensor. In layouts of the spec.
///   q, k, v   nearly standard normal (Random::normal), rounded to their dtype; i8: 32 times that
///   buffers   uniform over `range`; without one over [-1, 1] (floating), 0..7 (integers), {0, 1}
///             (bool); a few elements are the ends of an integer range of more than 17 numbers,
///             half of them those of a floating range that reaches beyond 10,000 (padding);
///             `sorted` sorts along the last dimension
///   scalars   the default; without one uniform over [0.5, 2] (f32) or 1..max(1, kv_len / 2) (i32);
///             a seed (i64) has 53 bits
/// @throws Error with code tensor for a shape that no kernel can run, with code memory
Inputs random_inputs(const Spec& spec, const Shape& shape, std::uint64_t seed,
                     const RandomOptions& options = {});

/// The same buffers and scalars, and no q, k and v: for a block mask.
Inputs random_snippet_inputs(const Spec& spec, const Shape& shape, std::uint64_t seed,
                             const RandomOptions& options = {});

}  // namespace tilewright::verify
