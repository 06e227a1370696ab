#pragma once

#include <string>
#include <string_view>

#include "generator/spec/spec.hpp"
#include "runtime/api/shape.hpp"
#include "verify/random_sequences.hpp"

namespace tilewright::cli {

/// Whether --inputs asks for random tensors.
bool is_random(const std::string& inputs);

/// Reads random:B,HQ,HKV,SQ,SKV, the sizes of a dense call.
/// @throws Error with code usage, saying what is wrong and how it is written
Shape parse_random_dense(const std::string& inputs);

/// Reads B,HQ,HKV,SQ,SKV as an option of that name takes it.
/// @throws Error with code usage, saying what is wrong and how it is written
Shape parse_sizes(const std::string& text, std::string_view option);

/// Reads random:HQ,HKV/Q:KV,Q:KV,...[xN][/ctx=N][/page=N][/pages=N][/static or /flat], the lengths
/// of a call of a packed spec, with pages where its k and v are; an x stands after any Q:KV and
/// repeats it.
/// @throws Error with code usage, as above
verify::PackedLengths parse_random_packed(const Spec& spec, const std::string& inputs);

/// The text that is read as these lengths, as short as it can be.
std::string random_text(const verify::PackedLengths& lengths);

}  // namespace tilewright::cli
