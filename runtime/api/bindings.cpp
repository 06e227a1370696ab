#include "runtime/api/bindings.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/float_environment.hpp"
#include "base/nearest_name.hpp"
#include "base/printable_number.hpp"
#include "generator/spec/number_range.hpp"
#include "generator/spec/validate.hpp"
#include "runtime/cpu/arguments.hpp"
#include "runtime/cuda/arguments.hpp"

namespace tilewright {
namespace {

constexpr std::int64_t kMaxExtent = std::numeric_limits<std::int32_t>::max();

template <typename Map>
std::vector<std::string> names_of(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

template <typename Given, typename Declared>
void refuse_unknown(const Given& given, const Declared& declared, std::string_view what,
                    ErrorCode code) {
  for (const auto& [name, value] : given) {
    if (declared.contains(name)) continue;
    const std::vector<std::string> names = names_of(declared);
    std::string hint = did_you_mean(name, names);
    if (hint.empty()) {
      hint = names.empty() ? fmt::format("the spec declares no {}s", what)
                           : fmt::format("the spec declares {}", one_of(names));
    }
    throw Error(code, fmt::format("unknown {} \"{}\"", what, name), hint);
  }
}

std::string to_text(const BufferDim& dim) {
  if (const auto* size = std::get_if<std::int64_t>(&dim)) return std::to_string(*size);
  if (const auto* named = std::get_if<NamedDim>(&dim)) return std::string(to_string(*named));
  return "null";
}

std::string declared_shape(DType dtype, const std::vector<BufferDim>& shape) {
  std::string text;
  for (const BufferDim& dim : shape) text += (text.empty() ? "" : ", ") + to_text(dim);
  return fmt::format("{} [{}]", to_string(dtype), text);
}

[[noreturn]] void refuse_buffer(const std::string& name, const BufferSpec& spec,
                                const TensorView& view, const std::string& why) {
  throw Error(ErrorCode::tensor, fmt::format("buffer \"{}\" {}", name, why),
              fmt::format("given: {}; declared: {}", view.describe(),
                          declared_shape(spec.dtype, spec.shape)));
}

TensorView resolve_buffer(const std::string& name, const BufferSpec& spec,
                          const std::map<std::string, TensorView>& given) {
  const auto found = given.find(name);
  if (found == given.end()) {
    throw Error(ErrorCode::tensor, fmt::format("buffer \"{}\" is missing", name),
                fmt::format("give a tensor {}", declared_shape(spec.dtype, spec.shape)));
  }
  const TensorView& view = found->second;
  if (view.dtype != spec.dtype) refuse_buffer(name, spec, view, "has another dtype");
  if (view.rank != static_cast<int>(spec.shape.size()))
    refuse_buffer(name, spec, view, "has another rank");
  if (view.rank > kMaxRank) refuse_buffer(name, spec, view, view.fault());
  for (size_t i = 0; i < spec.shape.size(); ++i) {
    const auto* size = std::get_if<std::int64_t>(&spec.shape[i]);
    if (view.shape[i] < 1) refuse_buffer(name, spec, view, "is empty");
    if (view.shape[i] > kMaxExtent) {
      refuse_buffer(name, spec, view,
                    fmt::format("has size {} in dimension {}; at most {} can be indexed",
                                view.shape[i], i, kMaxExtent));
    }
    if (size && view.shape[i] != *size && view.shape[i] != 1) {
      refuse_buffer(name, spec, view, fmt::format("has another size in dimension {}", i));
    }
  }
  if (const std::string fault = view.fault(); !fault.empty()) {
    refuse_buffer(name, spec, view, fault);
  }
  return view;
}

bool holds(DType dtype, double value) {
  if (dtype == DType::f32) return f32_range(value) == FloatRange::holds;
  if (value != std::floor(value)) return false;
  if (dtype == DType::i64) return std::fabs(value) <= kMostExactWhole;
  return value >= std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max();
}

std::string hint_for(DType dtype) {
  if (dtype == DType::f32) return "an f32 is 0, or from 1.4e-45 to 3.4028235e38";
  return std::string(dtype == DType::i64 ? kSeedHint : "");
}

double resolve_scalar(const std::string& name, const ScalarSpec& spec,
                      const std::map<std::string, double>& given) {
  const auto found = given.find(name);
  if (found == given.end()) {
    if (spec.default_value) return *spec.default_value;
    throw Error(
        ErrorCode::usage, fmt::format("scalar \"{}\" has no default and was not given", name),
        fmt::format("pass .scalars = {{{{\"{}\", X}}}} to bind(), or give it a default in the spec",
                    name));
  }
  const double value = found->second;
  if (holds(spec.dtype, value)) return value;
  const std::string rule =
      spec.dtype == DType::f32 ? "be a number that f32 holds" : range_rule(spec.dtype);
  throw Error(ErrorCode::usage,
              fmt::format("scalar \"{}\" is {}, but must {}", name, printable(value), rule),
              hint_for(spec.dtype));
}

[[noreturn]] void refuse_unbound(const Spec& spec) {
  std::vector<std::string> read;
  if (!spec.buffers.empty()) {
    read.push_back(fmt::format("buffers {}", fmt::join(names_of(spec.buffers), ", ")));
  }
  if (!spec.scalars.empty()) {
    read.push_back(fmt::format("scalars {}", fmt::join(names_of(spec.scalars), ", ")));
  }
  throw Error(
      ErrorCode::usage,
      fmt::format("bind() was not called: this spec reads {}; pass bindings",
                  fmt::join(read, " and ")),
      "make them once for many calls, with attention.bind({.buffers = ..., .scalars = ...}), "
      "and pass them to each call");
}

}  // namespace

std::int64_t extent_of(NamedDim dim, const Shape& shape) {
  switch (dim) {
    case NamedDim::batch:
      return shape.batch;
    case NamedDim::num_q_heads:
      return shape.num_q_heads;
    case NamedDim::num_kv_heads:
      return shape.num_kv_heads;
    case NamedDim::q_len:
      return shape.q_len;
    case NamedDim::kv_len:
      return shape.kv_len;
    case NamedDim::total_q:  // of a packed call: shape_of_totals
      return shape.q_len;
    case NamedDim::total_kv:
      return shape.kv_len;
  }
  return 0;
}

// A default argument of every call, so it must not allocate: all of them share the arguments.
Bindings::Bindings() {
  using CpuArguments = std::shared_ptr<const cpu::BindingArguments>;
  using CudaArguments = std::shared_ptr<const cuda::BindingArguments>;
  static const CpuArguments& kCpuArguments =
      *new CpuArguments(std::make_shared<const cpu::BindingArguments>());
  static const CudaArguments& kCudaArguments = *new CudaArguments(
      std::make_shared<const cuda::BindingArguments>(cuda::binding_arguments(Spec{}, {}, {})));
  cpu_arguments_ = kCpuArguments;
  cuda_arguments_ = kCudaArguments;
}

Bindings::Bindings(const Spec& spec, const SnippetInputs& inputs) {
  const DefaultFloatEnvironment floats;  // scalars are rounded to f32
  refuse_unknown(inputs.buffers, spec.buffers, "buffer", ErrorCode::tensor);
  refuse_unknown(inputs.scalars, spec.scalars, "scalar", ErrorCode::usage);
  for (const auto& [name, buffer] : spec.buffers) {
    buffers_.push_back(resolve_buffer(name, buffer, inputs.buffers));
    declared_buffers_.push_back({name, buffer.dtype, buffer.shape});
  }
  for (const auto& [name, scalar] : spec.scalars) {
    scalars_.push_back(resolve_scalar(name, scalar, inputs.scalars));
    declared_scalars_.push_back({name, scalar.dtype});
  }
  cpu_arguments_ = std::make_shared<const cpu::BindingArguments>(
      cpu::binding_arguments(spec, buffers_, scalars_));
  cuda_arguments_ = std::make_shared<const cuda::BindingArguments>(
      cuda::binding_arguments(spec, buffers_, scalars_));
}

void Bindings::require_same_declarations(const Spec& spec) const {
  if (is_default() && !(spec.buffers.empty() && spec.scalars.empty())) refuse_unbound(spec);
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorCode::usage, "the bindings were made for another spec: " + what,
                "make them with attention.bind({.buffers = ..., .scalars = ...})");
  };
  if (buffers_.size() != spec.buffers.size() || scalars_.size() != spec.scalars.size()) {
    refuse(fmt::format("they hold {} buffers and {} scalars, and this one declares {} and {}",
                       buffers_.size(), scalars_.size(), spec.buffers.size(), spec.scalars.size()));
  }
  size_t index = 0;
  for (const auto& [name, buffer] : spec.buffers) {
    const DeclaredBuffer& bound = declared_buffers_[index++];
    if (bound.name == name && bound.dtype == buffer.dtype && bound.shape == buffer.shape) continue;
    refuse(fmt::format("they hold buffer \"{}\", {}, where this one declares \"{}\", {}",
                       bound.name, declared_shape(bound.dtype, bound.shape), name,
                       declared_shape(buffer.dtype, buffer.shape)));
  }
  index = 0;
  for (const auto& [name, scalar] : spec.scalars) {
    const DeclaredScalar& bound = declared_scalars_[index++];
    if (bound.name == name && bound.dtype == scalar.dtype) continue;
    refuse(fmt::format("they hold scalar \"{}\", {}, where this one declares \"{}\", {}",
                       bound.name, to_string(bound.dtype), name, to_string(scalar.dtype)));
  }
}

void Bindings::check(const Spec& spec, const Shape& shape) const {
  compare(spec, shape, false);
}

void Bindings::check_known(const Spec& spec, const Shape& shape) const {
  compare(spec, shape, true);
}

void Bindings::compare(const Spec& spec, const Shape& shape, bool skips_zeros) const {
  require_same_declarations(spec);
  size_t index = 0;
  for (const auto& [name, buffer] : spec.buffers) {
    const TensorView& view = buffers_[index++];
    for (size_t i = 0; i < buffer.shape.size(); ++i) {
      const auto* named = std::get_if<NamedDim>(&buffer.shape[i]);
      if (!named || view.shape[i] == 1 || view.shape[i] == extent_of(*named, shape)) continue;
      if (skips_zeros && extent_of(*named, shape) == 0) continue;
      refuse_buffer(name, buffer, view,
                    fmt::format("has size {} in dimension {}, but {} of this call is {}",
                                view.shape[i], i, to_string(*named), extent_of(*named, shape)));
    }
  }
}

}  // namespace tilewright
