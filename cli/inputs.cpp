#include "cli/inputs.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/memory.hpp"
#include "base/nearest_name.hpp"
#include "cli/arguments.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "runtime/api/bindings.hpp"
#include "runtime/call/forward_call.hpp"

namespace tilewright::cli {
namespace {

constexpr std::string_view kRandom = "random:";

bool is_random(const std::string& inputs) {
  return inputs.starts_with(kRandom);
}

Shape parse_random(const std::string& inputs) {
  const std::vector<std::string> parts = split_at_commas(inputs.substr(kRandom.size()));
  if (parts.size() != 5) {
    throw Error(ErrorCode::usage,
                fmt::format("--inputs \"{}\" has {} sizes, but needs 5", inputs, parts.size()),
                "write random:B,HQ,HKV,SQ,SKV (batch, query heads, kv heads, q and kv length), for "
                "example random:1,8,2,1024,1024");
  }
  const auto size = [&](std::size_t i) {
    constexpr std::array<std::string_view, 5> kNames = {"B", "HQ", "HKV", "SQ", "SKV"};
    return static_cast<std::int64_t>(
        parse_whole(parts[i], fmt::format("--inputs random: {}", kNames[i]), kAnyOffset));
  };
  return {.batch = size(0),
          .num_q_heads = size(1),
          .num_kv_heads = size(2),
          .q_len = size(3),
          .kv_len = size(4)};
}

double extent_of(const BufferDim& dim, const Shape& shape) {
  if (const auto* size = std::get_if<std::int64_t>(&dim)) return static_cast<double>(*size);
  const auto* named = std::get_if<NamedDim>(&dim);
  if (!named) return static_cast<double>(verify::RandomOptions{}.free_dim);
  return static_cast<double>(tilewright::extent_of(*named, shape));
}

// In floating point, because a product of sizes that nobody has checked may exceed any integer.
double bytes_of_qkv(const Spec& spec, const Shape& shape) {
  const double rows = static_cast<double>(shape.batch) * static_cast<double>(shape.num_q_heads) *
                      static_cast<double>(shape.q_len);
  const double columns = static_cast<double>(shape.batch) *
                         static_cast<double>(shape.num_kv_heads) *
                         static_cast<double>(shape.kv_len);
  const double width = static_cast<double>(spec.head_dim + spec.value_head_dim());
  return width * (rows * static_cast<double>(size_of(spec.dtype)) +
                  columns * static_cast<double>(size_of(spec.key_value_dtype())));
}

double bytes_of_buffers(const Spec& spec, const Shape& shape) {
  double bytes = 0;
  for (const auto& [name, buffer] : spec.buffers) {
    double elements = 1;
    for (const BufferDim& dim : buffer.shape) elements *= extent_of(dim, shape);
    bytes += elements * static_cast<double>(size_of(buffer.dtype));
  }
  return bytes;
}

double bytes_of_outputs(const Spec& spec, const Shape& shape) {
  const double rows = static_cast<double>(shape.batch) * static_cast<double>(shape.num_q_heads) *
                      static_cast<double>(shape.q_len);
  const double of_out = static_cast<double>(spec.value_head_dim()) *
                        static_cast<double>(size_of(spec.output_dtype()));
  return rows * (of_out + (spec.outputs.lse ? static_cast<double>(sizeof(float)) : 0));
}

void require_present(double needed, const Shape& shape) {
  require_memory_for(needed, fmt::format("the tensors of {}", shape.describe()));
}

const std::vector<std::string> kQueryKeyValue = {"q", "k", "v"};

std::string tensors_needed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "\"" : ", \"") + name + '"';
  return names.empty() ? "this spec needs no tensor here" : "this spec needs " + list;
}

// A mask needs the buffers alone, but takes the file of a call.
TensorFile read_tensors(const Spec& spec, const std::string& path, bool with_qkv,
                        const std::vector<std::string>& others) {
  std::vector<std::string> names;
  if (with_qkv) names = kQueryKeyValue;
  for (const auto& [name, buffer] : spec.buffers) {
    if (std::count(kQueryKeyValue.begin(), kQueryKeyValue.end(), name) > 0) {
      throw Error(ErrorCode::spec, fmt::format("buffer \"{}\" has the name of an input", name),
                  "in a file the names q, k and v are taken: call the buffer something else");
    }
    names.push_back(name);
  }
  TensorFile file = read_safetensors(path, names);
  for (const std::string& name : file.skipped) {
    if (std::count(kQueryKeyValue.begin(), kQueryKeyValue.end(), name) > 0) continue;
    if (std::count(others.begin(), others.end(), name) > 0) continue;
    const std::string hint = did_you_mean(name, names);
    throw Error(ErrorCode::tensor, fmt::format("\"{}\" holds an extra tensor \"{}\"", path, name),
                hint.empty() ? tensors_needed(names) : hint);
  }
  for (const std::string& name : names) {
    if (file.tensors.contains(name)) continue;
    throw Error(ErrorCode::tensor, fmt::format("\"{}\" holds no tensor \"{}\"", path, name),
                tensors_needed(names));
  }
  return file;
}

}  // namespace

void require_memory(const Spec& spec, const Shape& shape) {
  require_present(
      bytes_of_qkv(spec, shape) + bytes_of_buffers(spec, shape) + bytes_of_outputs(spec, shape),
      shape);
}

void InputArguments::declare_values(CLI::App& app) {
  app.add_option("--scalar", scalars, "NAME=NUMBER: a scalar of the spec; may be repeated")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_whole(app, "--q-offset", q_offset, kAnyOffset, "q_idx = row + this (default 0)");
  add_whole(app, "--kv-offset", kv_offset, kAnyOffset, "kv_idx = column + this (default 0)");
  add_whole(app, "--seed", seed, kAnySeed, "of random contents (default 0)");
}

void InputArguments::declare_call(CLI::App& app) {
  app.add_option("--inputs", inputs,
                 "a safetensors file with q, k, v and the buffers, or random:B,HQ,HKV,SQ,SKV")
      ->required();
  add_number(app, "--scale", scale, "multiplies q.k (default: the spec's)")
      ->check(held_by_a_float());
  declare_values(app);
}

CallInputs CallInputs::load(const Spec& spec, const InputArguments& arguments) {
  CallInputs inputs;
  if (is_random(arguments.inputs)) {
    inputs.take_random(spec, arguments, parse_random(arguments.inputs));
  } else {
    inputs.take_file(spec, arguments, true);
  }
  inputs.take_values(arguments);
  inputs.make_outputs(spec);
  inputs.problem_.shape = resolve_call(spec, inputs.tensors(), inputs.options()).shape;
  Bindings(spec, inputs.problem_.snippet).check(spec, inputs.problem_.shape);
  return inputs;
}

CallInputs CallInputs::load_for_mask(const Spec& spec, const InputArguments& arguments,
                                     Shape shape) {
  CallInputs inputs;
  shape.q_offset = arguments.q_offset;
  shape.kv_offset = arguments.kv_offset;
  validate(shape);
  if (arguments.inputs.empty()) {
    inputs.take_random_buffers(spec, arguments, shape);
  } else if (is_random(arguments.inputs)) {
    throw Error(ErrorCode::usage, "--inputs of mask is a file with the spec's buffers",
                "without --inputs the buffers are random; --seed picks their contents");
  } else {
    inputs.take_file(spec, arguments, false);
  }
  inputs.take_values(arguments);
  inputs.problem_.shape = shape;
  Bindings(spec, inputs.problem_.snippet).check(spec, shape);
  return inputs;
}

void CallInputs::take_file(const Spec& spec, const InputArguments& arguments, bool with_qkv) {
  file_ = read_tensors(spec, arguments.inputs, with_qkv, arguments.others);
  for (const auto& [name, buffer] : spec.buffers) {
    problem_.snippet.buffers[name] = file_.tensors.at(name).view();
  }
  if (!with_qkv) return;
  problem_.q = file_.tensors.at("q").view();
  problem_.k = file_.tensors.at("k").view();
  problem_.v = file_.tensors.at("v").view();
}

void CallInputs::take_random(const Spec& spec, const InputArguments& arguments,
                             const Shape& shape) {
  validate(shape);
  require_memory(spec, shape);
  random_ = verify::random_inputs(spec, shape, arguments.seed);
  problem_ = random_->problem();
}

void CallInputs::take_random_buffers(const Spec& spec, const InputArguments& arguments,
                                     const Shape& shape) {
  require_present(bytes_of_buffers(spec, shape), shape);
  random_ = verify::random_snippet_inputs(spec, shape, arguments.seed);
  problem_ = random_->problem();
}

void CallInputs::take_values(const InputArguments& arguments) {
  problem_.snippet.scalars = parse_scalars(arguments.scalars);
  problem_.shape.q_offset = arguments.q_offset;
  problem_.shape.kv_offset = arguments.kv_offset;
  problem_.scale = arguments.scale;
}

// A q that is wrong gives outputs that are wrong; the check of the call then names q.
void CallInputs::make_outputs(const Spec& spec) {
  std::vector<std::int64_t> extents(problem_.q.extents().begin(), problem_.q.extents().end());
  const bool has_sizes = extents.size() == 4;
  if (has_sizes) extents[3] = spec.value_head_dim();
  out_ = Tensor::zeros(spec.output_dtype(), extents);
  if (!spec.outputs.lse) return;
  std::vector<std::int64_t> rows(3, 1);
  if (has_sizes) {
    const bool heads_first = spec.layout == Layout::bhsd;
    rows = {extents[0], extents[heads_first ? 1 : 2], extents[heads_first ? 2 : 1]};
  }
  lse_ = Tensor::zeros(DType::f32, rows);
}

Bindings CallInputs::bindings(const Attention& attention) const {
  return attention.bind(problem_.snippet);
}

ForwardTensors CallInputs::tensors() {
  ForwardTensors tensors{
      .q = problem_.q, .k = problem_.k, .v = problem_.v, .out = out_.view(), .lse = std::nullopt};
  if (lse_) tensors.lse = lse_->view();
  return tensors;
}

ForwardOptions CallInputs::options() const {
  return {.q_offset = problem_.shape.q_offset,
          .kv_offset = problem_.shape.kv_offset,
          .scale = problem_.scale};
}

}  // namespace tilewright::cli
