#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "../../generator/spec.hpp"
#include "../random_inputs.hpp"

namespace tilewright::verify::fuzz {

/// A spec and the inputs of a call, both to be changed.
struct RelationCall {
  Spec spec;
  Inputs inputs;

  RelationCall(const Spec& spec, const Inputs& inputs);
  RelationCall(const RelationCall& other) : RelationCall(other.spec, other.inputs) {}
  RelationCall& operator=(const RelationCall&) = delete;

  /// Names in both snippets become other text.
  void rename(const std::map<std::string, std::string, std::less<>>& replacements);
  /// The sizes of the call become numbers in the snippets, and buffers' dimensions free: sizes may
  /// then change without a change of what the snippets say.
  void freeze();
  /// Rows of k and v: row i becomes what row `from[i]` was.
  void take_keys(const std::vector<std::int64_t>& from);
  /// One head of q with its kv head.
  void take_head(std::int64_t h);
  void take_batch(std::int64_t b);
};

}  // namespace tilewright::verify::fuzz
