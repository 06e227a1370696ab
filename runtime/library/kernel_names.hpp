#pragma once

#include <string>
#include <vector>

#include "../../cache/entry.hpp"
#include "../../cache/key.hpp"
#include "../../generator/render/kernel_source.hpp"

namespace tilewright {

/// How many hexadecimal digits the name of a kernel ends with.
inline constexpr std::size_t kNameDigits = 8;

/// The last part of a kernel's name: the first digits of a SHA-256 over source, target and options,
/// the source being as it was rendered.
/// @param ingredients of the kernel's request
std::string name_digits(const std::vector<cache::Ingredient>& ingredients);

/// What profilers show of a kernel: "tw_forward_masked_1a2b3c4d". A GPU kernel's entry points, in
/// their order; with several, each has its entry point's own words before the digits:
/// "tw_backward_rows_1a2b3c4d". Of a CPU's kernel the name of its shared object.
std::vector<std::string> kernel_names(const KernelSource& source);

/// What is compiled: entry points of a GPU's kernel have their names, in the text and in the lists.
/// Lines stay what they are, so the source map holds for it.
KernelSource with_names(const KernelSource& source);

/// The names that kernel_metadata() recorded.
std::vector<std::string> recorded_names(const cache::Metadata& metadata);

}  // namespace tilewright
