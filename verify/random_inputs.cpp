#include "verify/random_inputs.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/float_environment.hpp"
#include "runtime/api/bindings.hpp"
#include "runtime/api/thread_pool.hpp"
#include "runtime/io/float16.hpp"
#include "verify/random.hpp"

namespace tilewright::verify {
namespace {

Tensor empty_tensor(DType dtype, Layout layout, std::int64_t batch, std::int64_t heads,
                    std::int64_t rows, std::int64_t width) {
  if (layout == Layout::packed) return Tensor::zeros(dtype, {rows, heads, width});
  return layout == Layout::bhsd ? Tensor::zeros(dtype, {batch, heads, rows, width})
                                : Tensor::zeros(dtype, {batch, rows, heads, width});
}

constexpr std::int64_t kChunk = std::int64_t{1} << 20;

// An i8 has no fractions: its numbers reach as far as those of three standard deviations may.
constexpr double kI8Factor = 32;

// Random numbers of each chunk of a tensor are their own, so that threads share out large tensors
// and any number of them gives the same.
void fill_normal(Tensor& tensor, double factor, std::uint64_t seed, const std::string& stream) {
  const std::int64_t count = tensor.numel();
  if (tensor.dtype() == DType::i8) factor *= kI8Factor;
  ThreadPool::shared().parallel_for(ceil_div(count, kChunk), [&](std::int64_t chunk, int) {
    Random random(seed, chunk == 0 ? stream : fmt::format("{} {}", stream, chunk));
    const std::int64_t end = std::min(count, (chunk + 1) * kChunk);
    for (std::int64_t i = chunk * kChunk; i < end; ++i) {
      write_element(tensor.data(), tensor.dtype(), i, factor * random.normal());
    }
  });
}

std::int64_t size_of_named(NamedDim dim, const Shape& shape, bool broadcast) {
  const bool may_broadcast =
      dim == NamedDim::batch || dim == NamedDim::num_q_heads || dim == NamedDim::num_kv_heads;
  return broadcast && may_broadcast ? 1 : extent_of(dim, shape);
}

std::vector<std::int64_t> extents_of(const std::string& name, const BufferSpec& spec,
                                     const Shape& shape, const RandomOptions& options) {
  const auto given = options.null_extents.find(name);
  std::size_t nulls = 0;
  std::vector<std::int64_t> extents;
  for (const BufferDim& dim : spec.shape) {
    if (const auto* size = std::get_if<std::int64_t>(&dim)) {
      extents.push_back(*size);
    } else if (const auto* named = std::get_if<NamedDim>(&dim)) {
      extents.push_back(size_of_named(*named, shape, options.broadcast_buffers));
    } else {
      extents.push_back(given == options.null_extents.end() ? options.free_dim
                                                            : given->second.at(nulls));
      ++nulls;
    }
  }
  return extents;
}

std::array<double, 2> default_range(DType dtype) {
  if (is_floating(dtype)) return {-1, 1};
  if (dtype == DType::boolean) return {0, 1};
  return {0, 7};
}

double random_value(DType dtype, std::array<double, 2> range, Random& random) {
  if (is_floating(dtype)) return range[0] + (range[1] - range[0]) * random.uniform();
  return static_cast<double>(
      random.integer(static_cast<std::int64_t>(range[0]), static_cast<std::int64_t>(range[1])));
}

// Uniform numbers of a wide range next to never are its ends, where a snippet's mistakes are.
void plant_ends(std::vector<double>& line, std::array<double, 2> range, Random& random) {
  const auto width = static_cast<std::int64_t>(line.size());
  for (const double end : range) {
    // Of a short line, not each one.
    if (width < 4 && random.integer(0, 7) != 0) continue;
    for (std::int64_t i = 0; i < ceil_div(width, 32); ++i) {
      line[static_cast<std::size_t>(random.integer(0, width - 1))] = end;
    }
  }
}

// A bias that reaches so far pads keys: half of its elements are an end.
bool pads_keys(DType dtype, std::array<double, 2> range) {
  constexpr double kFar = 1e4;
  return is_floating(dtype) && std::max(-range[0], range[1]) > kFar;
}

double random_padding(std::array<double, 2> range, Random& random) {
  const std::int64_t choice = random.integer(0, 3);
  return choice < 2 ? range[static_cast<std::size_t>(choice)]
                    : random_value(DType::f32, range, random);
}

// Any byte but 0 is true.
void vary_truths(Tensor& tensor, std::int64_t start, std::int64_t width, Random& random) {
  constexpr std::array<unsigned char, 4> kTrue = {1, 1, 2, 255};
  auto* const bytes = static_cast<unsigned char*>(tensor.data()) + start;
  for (std::int64_t i = 0; i < width; ++i) {
    if (bytes[i] != 0) bytes[i] = kTrue[static_cast<std::size_t>(random.integer(0, 3))];
  }
}

Tensor random_buffer(const BufferSpec& spec, const std::vector<std::int64_t>& extents,
                     Random random) {
  Tensor tensor = Tensor::zeros(spec.dtype, extents);
  const std::int64_t width = extents.empty() ? 1 : extents.back();
  const std::array<double, 2> range = spec.range.value_or(default_range(spec.dtype));
  const bool has_rare_ends = !is_floating(spec.dtype) && range[1] - range[0] > 16;
  const bool is_padding = pads_keys(spec.dtype, range);
  std::vector<double> line(static_cast<std::size_t>(width));
  for (std::int64_t start = 0; start < tensor.numel(); start += width) {
    for (double& value : line) {
      value = is_padding ? random_padding(range, random) : random_value(spec.dtype, range, random);
    }
    if (has_rare_ends) plant_ends(line, range, random);
    if (spec.sorted) std::sort(line.begin(), line.end());
    for (std::int64_t i = 0; i < width; ++i) {
      write_element(tensor.data(), spec.dtype, start + i, line[static_cast<std::size_t>(i)]);
    }
    if (spec.dtype == DType::boolean) vary_truths(tensor, start, width, random);
  }
  return tensor;
}

double random_scalar(const ScalarSpec& spec, std::int64_t kv_len, Random random) {
  if (spec.default_value) return *spec.default_value;
  if (spec.dtype == DType::i64) {  // a seed, whose high word counts too
    constexpr std::int64_t kGreatest = std::int64_t{1} << 52;
    return static_cast<double>(random.integer(-kGreatest, kGreatest));
  }
  if (spec.dtype == DType::i32) {
    return static_cast<double>(random.integer(1, std::max<std::int64_t>(1, kv_len / 2)));
  }
  return round_to(DType::f32, 0.5 + 1.5 * random.uniform());
}

}  // namespace

std::int64_t count_nulls(const BufferSpec& buffer) {
  return std::count_if(buffer.shape.begin(), buffer.shape.end(),
                       [](const BufferDim& dim) { return std::holds_alternative<FreeDim>(dim); });
}

Problem Inputs::problem() const {
  Problem problem{.shape = shape, .q = q, .k = k, .v = v, .snippet = {}, .scale = {}};
  for (const auto& [name, tensor] : buffers) problem.snippet.buffers.emplace(name, tensor);
  problem.snippet.scalars = scalars;
  if (k_new) problem.k_new = k_new->view();
  if (v_new) problem.v_new = v_new->view();
  return problem;
}

Inputs random_inputs(const Spec& spec, const Shape& shape, std::uint64_t seed,
                     const RandomOptions& options) {
  const DefaultFloatEnvironment floats;
  Inputs inputs = random_snippet_inputs(spec, shape, seed, options);
  const std::int64_t kv_batch = options.broadcast_kv ? 1 : shape.batch;
  const Layout kv_layout = spec.key_value_layout();
  inputs.q = empty_tensor(spec.dtype, spec.layout, shape.batch, shape.num_q_heads, shape.q_len,
                          spec.head_dim);
  const auto empty_kv = [&](std::int64_t width) {
    const DType dtype = spec.key_value_dtype();
    return spec.is_paged()
               ? Tensor::zeros(dtype, {shape.kv_len / options.page_size, options.page_size,
                                       shape.num_kv_heads, width})
               : empty_tensor(dtype, kv_layout, kv_batch, shape.num_kv_heads, shape.kv_len, width);
  };
  inputs.k = empty_kv(spec.head_dim);
  inputs.v = empty_kv(spec.value_head_dim());
  fill_normal(inputs.q, options.q_factor, seed, "q");
  fill_normal(inputs.k, 1, seed, "k");
  fill_normal(inputs.v, 1, seed, "v");
  if (spec.kv_new) {
    const auto empty_new = [&](std::int64_t width) {
      return Tensor::zeros(spec.dtype, {shape.q_len, shape.num_kv_heads, width});
    };
    inputs.k_new = empty_new(spec.head_dim);
    inputs.v_new = empty_new(spec.value_head_dim());
    fill_normal(*inputs.k_new, 1, seed, "k_new");
    fill_normal(*inputs.v_new, 1, seed, "v_new");
  }
  return inputs;
}

Inputs random_snippet_inputs(const Spec& spec, const Shape& shape, std::uint64_t seed,
                             const RandomOptions& options) {
  const DefaultFloatEnvironment floats;
  validate(shape);
  Inputs inputs{.shape = shape, .q = {}, .k = {}, .v = {}, .buffers = {}, .scalars = {}};
  for (const auto& [name, buffer] : spec.buffers) {
    inputs.buffers.emplace(name, random_buffer(buffer, extents_of(name, buffer, shape, options),
                                               Random(seed, "buffer " + name)));
  }
  for (const auto& [name, scalar] : spec.scalars) {
    inputs.scalars.emplace(name, random_scalar(scalar, options.longest_kv.value_or(shape.kv_len),
                                               Random(seed, "scalar " + name)));
  }
  return inputs;
}

}  // namespace tilewright::verify
