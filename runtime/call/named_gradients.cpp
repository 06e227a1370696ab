#include "runtime/call/named_gradients.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "generator/spec/gradients.hpp"
#include "runtime/call/overlap.hpp"
#include "runtime/call/tensor_role.hpp"

namespace tilewright {
namespace {

[[noreturn]] void refuse_gradient(std::string_view name, const std::string& why,
                                  const std::string& hint) {
  throw Error(ErrorCode::tensor, fmt::format("{} {}", name, why), hint);
}

void require_named(const std::vector<std::string>& names, const GradientBuffers& gradients) {
  for (const auto& [name, view] : gradients) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    throw Error(ErrorCode::tensor,
                fmt::format("a gradient of \"{}\" was given, but the spec's gradients name no "
                            "buffer or scalar \"{}\"",
                            name, name),
                did_you_mean(name, names));
  }
}

void require_fit(const Spec& spec, const Bindings& bindings, const std::string& name,
                 const TensorView& view) {
  const std::string own = "d_" + name;
  const auto buffer = spec.buffers.find(name);
  if (buffer == spec.buffers.end()) {
    const bool is_one = view.data != nullptr && view.dtype == DType::f32 && view.numel() == 1;
    if (!is_one) {
      refuse_gradient(own, "must be one f32, as the scalar is", "given: " + view.describe());
    }
    return;
  }
  const auto index = std::distance(spec.buffers.begin(), buffer);
  const TensorView& bound = bindings.buffers()[static_cast<std::size_t>(index)];
  const bool is_as_stored = view.dtype == gradient_dtype(buffer->second.dtype);
  const DType dtype = is_as_stored ? view.dtype : DType::f32;
  require_like(own, view, fmt::format("buffer \"{}\"", name), bound, dtype);
}

}  // namespace

void require_like(std::string_view name, const TensorView& view, std::string_view like_name,
                  const TensorView& like, DType dtype) {
  const std::string hint =
      fmt::format("given: {}; wanted: {} in the shape of {}, {}", view.describe(), to_string(dtype),
                  like_name, like.describe());
  if (lacks_data(view)) refuse_gradient(name, "has no data", hint);
  if (view.dtype != dtype) {
    refuse_gradient(name,
                    fmt::format("is {}, but {} is wanted", to_string(view.dtype), to_string(dtype)),
                    hint);
  }
  const auto given = view.extents(), wanted = like.extents();
  if (!std::equal(given.begin(), given.end(), wanted.begin(), wanted.end())) {
    refuse_gradient(name, fmt::format("does not have the shape of {}", like_name), hint);
  }
  if (const std::string fault = view.fault(); !fault.empty()) refuse_gradient(name, fault, hint);
}

void require_own_elements(std::string_view name, const TensorView& view) {
  if (!find_shared_elements(view)) return;
  refuse_gradient(name, "overlaps itself: two of its elements share bytes",
                  "given: " + view.describe());
}

std::vector<TensorView> named_gradients(const Spec& spec, const Bindings& bindings,
                                        const GradientBuffers& gradients) {
  const std::vector<std::string> names = gradient_names(spec);
  require_named(names, gradients);
  std::vector<TensorView> result;
  for (const std::string& name : names) {
    const auto given = gradients.find(name);
    if (given == gradients.end()) {
      refuse_gradient("d_" + name,
                      fmt::format("is missing, but the spec's gradients name \"{}\"", name),
                      "give a tensor for it in GradientBuffers");
    }
    require_fit(spec, bindings, name, given->second);
    require_own_elements("d_" + name, given->second);
    result.push_back(given->second);
  }
  return result;
}

}  // namespace tilewright
