#pragma once

#include <string>

#include "../../generator/spec/spec.hpp"
#include "../api/bindings.hpp"

namespace tilewright::parallel {

/// A spec for calls over pairs of shards, in whose snippets everything means what it means in the
/// whole sequence.
struct ShardSpec {
  Spec spec;
  std::string q_length;   ///< scalar that stands for q_len in the snippets; empty: they read none
  std::string kv_length;  ///< likewise
};

/// Outputs get lse. q_len and kv_len become scalars of as many letters, so that places in messages
/// stay right; dimensions of those names become free.
/// @throws Error with code usage for pages, a packed spec that reads lengths or places, one with
/// scales or a sink, and others that are
///         not served yet; as validate(Spec)
ShardSpec shard_spec(const Spec& whole);

/// Checks the dimensions that became free, and adds the lengths.
/// @throws Error with code tensor as Bindings::check
SnippetInputs shard_inputs(const ShardSpec& spec, const Spec& whole_spec, const Shape& whole,
                           const SnippetInputs& inputs);

}  // namespace tilewright::parallel
