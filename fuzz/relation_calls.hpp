#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "../verify/random_inputs.hpp"
#include "rewrite.hpp"

namespace tilewright::verify::fuzz {

/// A tensor whose entry i along a dimension is entry from[i] of another.
Tensor taken(const Tensor& tensor, std::size_t dimension, const std::vector<std::int64_t>& from);

/// Copies of all tensors.
Inputs copy_of(const Inputs& inputs);

/// A spec and the inputs of a call, both to be changed.
struct RelationCall {
  Spec spec;
  Inputs inputs;

  RelationCall(const Spec& spec, const Inputs& inputs);
  RelationCall(const RelationCall& other) : RelationCall(other.spec, other.inputs) {}
  RelationCall& operator=(const RelationCall&) = delete;

  /// Both snippets see other arguments.
  void rebind(const Arguments& arguments);
  /// The snippets see the sizes of this call from now on, and buffers' dimensions become free:
  /// sizes may then change without a change of what the snippets say.
  void freeze();
  /// Rows of k and v: row i becomes what row `from[i]` was.
  void take_keys(const std::vector<std::int64_t>& from);
  /// One head of q with its kv head.
  void take_head(std::int64_t h);
  void take_batch(std::int64_t b);
};

}  // namespace tilewright::verify::fuzz
