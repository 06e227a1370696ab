#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "spec.hpp"

namespace tilewright {

/// Most dimensions of a buffer.
inline constexpr std::size_t kMaxBufferRank = 5;

/// Where a field stands in a spec: {"buffers", "slopes", "shape", "[0]"}.
using SpecPath = std::vector<std::string>;

/// `buffers.slopes.shape[0]`, as messages say it.
std::string to_string(const SpecPath& path);

/// One thing that is wrong with a spec.
struct SpecProblem {
  SpecPath path;
  std::string message;
  std::string hint = {};
  bool is_about_key = false;  ///< the name at the end of the path is wrong, not its value
};

/// Checks every field but the snippets. What is wrong goes to `fail`, which must throw: it knows
/// whether the spec came from a text with lines and columns.
void check_fields(const Spec& spec, const std::function<void(const SpecProblem&)>& fail);

/// A message about a value: `head_dim is 100, but must be a multiple of 8`.
std::string wrong_value(const SpecPath& path, std::string_view value, std::string_view rule);

/// "be a whole number from 0 to 255 (u8)": what an element of a buffer, or a scalar, can be.
std::string range_rule(DType dtype);

/// The dtypes of q, k, v and out, of buffers, and of a scalar.
const std::vector<std::string>& tensor_dtype_names();
const std::vector<std::string>& kv_dtype_names();
const std::vector<std::string>& buffer_dtype_names();
const std::vector<std::string>& scalar_dtype_names(std::string_view scalar);

}  // namespace tilewright
