#include "cli/inputs.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/memory.hpp"
#include "base/nearest_name.hpp"
#include "cli/arguments.hpp"
#include "cli/buffer_extents.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "cli/random_lengths.hpp"
#include "runtime/api/bindings.hpp"
#include "runtime/call/forward_call.hpp"
#include "runtime/call/plan_state.hpp"
#include "verify/sequences.hpp"

namespace tilewright::cli {
namespace {

// In floating point: a product of unchecked sizes may exceed any integer.
double elements_of(const std::string& name, const BufferSpec& buffer, const Shape& shape,
                   const verify::RandomOptions& options) {
  const auto given = options.null_extents.find(name);
  std::size_t nulls = 0;
  double elements = 1;
  for (const BufferDim& dim : buffer.shape) {
    if (const auto* size = std::get_if<std::int64_t>(&dim)) {
      elements *= static_cast<double>(*size);
    } else if (const auto* named = std::get_if<NamedDim>(&dim)) {
      elements *= static_cast<double>(extent_of(*named, shape));
    } else {
      elements *= static_cast<double>(
          given == options.null_extents.end() ? options.free_dim : given->second.at(nulls++));
    }
  }
  return elements;
}

// Packed tensors have no batch.
double rows_of(const Spec& spec, const Shape& shape, std::int64_t heads, std::int64_t rows) {
  return (spec.is_packed() ? 1.0 : static_cast<double>(shape.batch)) * static_cast<double>(heads) *
         static_cast<double>(rows);
}

double bytes_of_qkv(const Spec& spec, const Shape& shape) {
  const double rows = rows_of(spec, shape, shape.num_q_heads, shape.q_len);
  const double columns = rows_of(spec, shape, shape.num_kv_heads, shape.kv_len);
  const double width = static_cast<double>(spec.head_dim + spec.value_head_dim());
  return width * (rows * static_cast<double>(size_of(spec.dtype)) +
                  columns * static_cast<double>(size_of(spec.key_value_dtype())));
}

double bytes_of_buffers(const Spec& spec, const Shape& shape,
                        const verify::RandomOptions& options = {}) {
  double bytes = 0;
  for (const auto& [name, buffer] : spec.buffers) {
    bytes += elements_of(name, buffer, shape, options) * static_cast<double>(size_of(buffer.dtype));
  }
  return bytes;
}

double bytes_of_outputs(const Spec& spec, const Shape& shape) {
  const double rows = rows_of(spec, shape, shape.num_q_heads, shape.q_len);
  const double of_out = static_cast<double>(spec.value_head_dim()) *
                        static_cast<double>(size_of(spec.output_dtype()));
  const int numbers = (spec.outputs.lse ? 1 : 0) + (spec.outputs.max_scores ? 1 : 0);
  const double of_weights =
      spec.outputs.weights
          ? static_cast<double>(shape.kv_len) * static_cast<double>(size_of(spec.output_dtype()))
          : 0;
  return rows * (of_out + of_weights + numbers * static_cast<double>(sizeof(float)));
}

void require_present(double needed, const std::string& sizes) {
  require_memory_for(needed, "the tensors of " + sizes);
}

const std::vector<std::string> kQueryKeyValue = {"q", "k", "v"};
const std::vector<std::string> kNewRows = {"k_new", "v_new"};

void append(std::vector<std::string>& names, const std::vector<std::string>& more) {
  names.insert(names.end(), more.begin(), more.end());
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string tensors_needed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "\"" : ", \"") + name + '"';
  return names.empty() ? "this spec needs no tensor here" : "this spec needs " + list;
}

// What a file of a call holds: tensors that it must hold, and others that it may.
struct FileNames {
  std::vector<std::string> needed;
  std::vector<std::string> optional;
  std::vector<std::string> ignored;

  // A mask needs the buffers alone, but takes the file of a call.
  FileNames(const Spec& spec, bool with_qkv, const std::vector<std::string>& others)
      : ignored(others) {
    std::vector<std::string>& of_call = with_qkv ? needed : ignored;
    append(of_call, kQueryKeyValue);
    if (spec.is_packed()) {
      append(of_call, SequenceTensors::required(spec));
      append(with_qkv ? optional : ignored, SequenceTensors::optional(spec));
    }
    if (!spec.gradients.empty()) {
      append(of_call, {"dout"});
      append(with_qkv ? optional : ignored, {"dlse"});
    }
    if (spec.kv_new) append(of_call, kNewRows);
    for (const auto& [name, buffer] : spec.buffers) {
      if (contains(kQueryKeyValue, name) || (spec.kv_new && contains(kNewRows, name))) {
        throw Error(ErrorCode::spec, fmt::format("buffer \"{}\" has the name of an input", name),
                    "in a file the names q, k and v, and with kv_new k_new and v_new, are taken: "
                    "call the buffer something else");
      }
      needed.push_back(name);
    }
  }

  std::vector<std::string> read() const {
    std::vector<std::string> names = needed;
    append(names, optional);
    return names;
  }
};

TensorFile read_tensors(const std::string& path, const FileNames& names) {
  const std::vector<std::string> read = names.read();
  TensorFile file = read_safetensors(path, read);
  for (const std::string& name : file.skipped) {
    if (contains(names.ignored, name)) continue;
    // Who gave a tensor did not misspell its name: a paged file's kv_begin is not meant as q_begin.
    std::vector<std::string> others = read;
    std::erase_if(others, [&](const std::string& other) { return file.tensors.contains(other); });
    const std::string hint = did_you_mean(name, others);
    throw Error(ErrorCode::tensor, fmt::format("\"{}\" holds an extra tensor \"{}\"", path, name),
                hint.empty() ? tensors_needed(names.needed) : hint);
  }
  for (const std::string& name : names.needed) {
    if (file.tensors.contains(name)) continue;
    throw Error(ErrorCode::tensor, fmt::format("\"{}\" holds no tensor \"{}\"", path, name),
                tensors_needed(names.needed));
  }
  return file;
}

verify::RandomOptions random_options(const Spec& spec, const InputArguments& arguments) {
  return {.null_extents = parse_buffer_extents(spec, arguments.buffers)};
}

// What says how random contents are made.
void refuse_random_options(const Spec& spec, const InputArguments& arguments) {
  if (arguments.seed) {
    const bool draws = spec.has_dropout() && !spec.has_seed_buffer();
    throw Error(ErrorCode::usage, "--seed is of random contents, and --inputs is a file",
                draws ? "leave --seed out: --scalar seed=N is the seed of dropout"
                      : "leave --seed out: every tensor comes from the file");
  }
  if (arguments.buffers.empty()) return;
  throw Error(ErrorCode::usage, "--buffer gives extents of random buffers, and --inputs is a file",
              "leave --buffer out: the file's buffers have their extents");
}

void refuse_offsets(const Spec& spec, const InputArguments& arguments) {
  if (!spec.is_packed() || (!arguments.q_offset && !arguments.kv_offset)) return;
  throw Error(ErrorCode::usage,
              fmt::format("--{}-offset is for dense calls, and the spec is packed",
                          arguments.q_offset ? "q" : "kv"),
              "sequences have offsets each: tensors q_offset and kv_offset of the file, or "
              "random:.../ctx=N");
}

void refuse_shared(const Spec& spec, const InputArguments& arguments) {
  if (!arguments.shared || (spec.is_paged() && is_random(arguments.inputs))) return;
  throw Error(
      ErrorCode::usage,
      fmt::format("--shared is for random inputs with pages, and {}",
                  spec.is_paged() ? "--inputs is a file" : "k and v of the spec are not in pages"),
      spec.is_paged() ? "leave it out: the file's page_table says which pages are shared"
                      : R"(leave it out, or write "kv_layout": "paged" in the spec)");
}

verify::PackedLengths lengths_for(const Spec& spec, const InputArguments& arguments) {
  verify::PackedLengths lengths = parse_random_packed(spec, arguments.inputs);
  if (!arguments.shared) return lengths;
  if (lengths.pages.table == verify::PageOptions::Table::none) {
    throw Error(ErrorCode::usage, "--shared needs a page_table, and /static gives none",
                "leave out one of the two: without a page_table sequence b has page b alone");
  }
  lengths.pages.shared_columns = *arguments.shared;
  return lengths;
}

std::int64_t extent(const TensorView& tensor, int dim) {
  return tensor.rank > dim ? tensor.shape[static_cast<std::size_t>(dim)] : 0;
}

// Reads the sizes of unchecked tensors.
PackedShape shape_of_tensors(const Spec& spec, const verify::Problem& problem) {
  const TensorView& q_begin = problem.sequences->q_begin;
  if (q_begin.rank != 1 || q_begin.shape[0] < 1) {
    throw Error(ErrorCode::tensor,
                fmt::format("q_begin is {}; it must be i32 [batch + 1]", q_begin.describe()),
                "rows q_begin[b] .. q_begin[b + 1] of q are sequence b's");
  }
  PackedShape shape = {.batch = q_begin.shape[0] - 1,
                       .num_q_heads = extent(problem.q, 1),
                       .num_kv_heads = extent(problem.k, 1),
                       .total_q = extent(problem.q, 0),
                       .total_kv = extent(problem.k, 0)};
  if (!spec.is_paged()) return shape;
  const bool is_x = spec.is_paged_x();
  shape.num_kv_heads = extent(problem.k, is_x ? 1 : 2);
  shape.page_size = extent(problem.k, is_x ? 3 : 1);
  shape.total_kv *= shape.page_size;
  return shape;
}

}  // namespace

void require_memory(const Spec& spec, const Shape& shape) {
  require_present(
      bytes_of_qkv(spec, shape) + bytes_of_buffers(spec, shape) + bytes_of_outputs(spec, shape),
      shape.describe());
}

std::string CallInputs::describe() const {
  return is_packed() ? verify::packed_shape(problem_).describe() : shape().describe();
}

void InputArguments::declare_values(CLI::App& app) {
  app.add_option("--scalar", scalars, "NAME=NUMBER: a scalar of the spec; may be repeated")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_buffer_option(app, buffers);
  add_whole(app, "--q-offset", q_offset, kAnyOffset, "q_idx = row + this (default 0)");
  add_whole(app, "--kv-offset", kv_offset, kAnyOffset, "kv_idx = column + this (default 0)");
  add_whole(app, "--seed", seed, kAnySeed, "of random contents (default 0)");
}

void InputArguments::declare_call(CLI::App& app) {
  app.add_option("--inputs", inputs,
                 "a safetensors file with q, k, v and the buffers, or random:B,HQ,HKV,SQ,SKV; of a "
                 "packed spec random:HQ,HKV/Q:KV,...")
      ->required();
  add_whole(app, "--shared", shared, kAnyIndex,
            "of random paged inputs: all sequences share the pages of so many columns");
  add_number(app, "--scale", scale, "multiplies q.k (default: the spec's)")
      ->check(held_by_a_float());
  app.add_flag("--batch-invariant", batch_invariant,
               "of a packed spec: the bits of a row depend on its own sequence alone");
  add_whole(app, "--splits", splits, kAnyIndex,
            "parts that a GPU cuts the columns of decoded rows and of q tiles into, where it can "
            "(default: by the call's sizes)");
  declare_values(app);
}

void refuse_batch_invariant(bool given) {
  if (!given) return;
  throw Error(ErrorCode::usage, "--batch-invariant is for packed specs, and this one is dense",
              "leave it out; dense calls have no such choice");
}

CallInputs CallInputs::load(const Spec& spec, const InputArguments& arguments) {
  refuse_offsets(spec, arguments);
  refuse_shared(spec, arguments);
  CallInputs inputs;
  if (!is_random(arguments.inputs)) {
    inputs.take_file(spec, arguments, true);
  } else if (spec.is_packed()) {
    inputs.take_random_packed(spec, arguments, lengths_for(spec, arguments));
  } else {
    inputs.take_random(spec, arguments, parse_random_dense(arguments.inputs));
  }
  inputs.take_values(spec, arguments);
  inputs.make_outputs(spec);
  inputs.problem_.splits = arguments.splits;
  if (spec.is_packed()) {
    inputs.take_sequences(spec);
    inputs.problem_.batch_invariant = arguments.batch_invariant;
  } else {
    refuse_batch_invariant(arguments.batch_invariant);
    inputs.problem_.shape = resolve_call(spec, inputs.tensors(), inputs.options()).shape;
  }
  Bindings(spec, inputs.problem_.snippet).check(spec, inputs.problem_.shape);
  if (!spec.gradients.empty()) {
    inputs.gradients_ = CallGradients::load(spec, inputs.problem_, inputs.out_.view(),
                                            inputs.file_.tensors, arguments.seed.value_or(0));
  }
  return inputs;
}

CallInputs CallInputs::load_for_mask(const Spec& spec, const InputArguments& arguments,
                                     Shape shape) {
  CallInputs inputs;
  shape.q_offset = arguments.q_offset.value_or(0);
  shape.kv_offset = arguments.kv_offset.value_or(0);
  if (spec.is_packed()) inputs.take_one_sequence(spec, arguments, shape);
  validate(shape);
  if (arguments.inputs.empty()) {
    inputs.take_random_buffers(spec, arguments, shape);
  } else if (is_random(arguments.inputs)) {
    throw Error(ErrorCode::usage, "--inputs of mask is a file with the spec's buffers",
                "without --inputs the buffers are random; --seed picks their contents");
  } else {
    inputs.take_file(spec, arguments, false);
  }
  inputs.take_values(spec, arguments);
  inputs.problem_.shape = shape;
  if (inputs.sequences_) inputs.problem_.sequences = inputs.sequences_->sequences();
  if (spec.is_paged()) inputs.problem_.page_size = shape.kv_len;
  Bindings(spec, inputs.problem_.snippet).check(spec, shape);
  return inputs;
}

void CallInputs::take_file(const Spec& spec, const InputArguments& arguments, bool with_qkv) {
  refuse_random_options(spec, arguments);
  file_ = read_tensors(arguments.inputs, FileNames(spec, with_qkv, arguments.others));
  for (const auto& [name, buffer] : spec.buffers) {
    problem_.snippet.buffers[name] = file_.tensors.at(name).view();
  }
  if (!with_qkv) return;
  problem_.q = file_.tensors.at("q").view();
  problem_.k = file_.tensors.at("k").view();
  problem_.v = file_.tensors.at("v").view();
  if (spec.kv_new) {
    problem_.k_new = file_.tensors.at("k_new").view();
    problem_.v_new = file_.tensors.at("v_new").view();
  }
  if (!spec.is_packed()) return;
  sequences_ = SequenceTensors::of_file(spec, arguments.inputs, file_);
  problem_.sequences = sequences_->sequences();
}

void CallInputs::take_random(const Spec& spec, const InputArguments& arguments,
                             const Shape& shape) {
  validate(shape);
  const verify::RandomOptions options = random_options(spec, arguments);
  require_present(bytes_of_qkv(spec, shape) + bytes_of_buffers(spec, shape, options) +
                      bytes_of_outputs(spec, shape),
                  shape.describe());
  random_ = verify::random_inputs(spec, shape, arguments.seed.value_or(0), options);
  problem_ = random_->problem();
}

void CallInputs::take_random_packed(const Spec& spec, const InputArguments& arguments,
                                    const verify::PackedLengths& lengths) {
  const Shape shape = verify::shape_of(lengths);
  const PackedShape packed = {.batch = shape.batch,
                              .num_q_heads = shape.num_q_heads,
                              .num_kv_heads = shape.num_kv_heads,
                              .total_q = shape.q_len,
                              .total_kv = shape.kv_len,
                              .page_size = lengths.pages.page_size};
  tilewright::validate(packed);
  const verify::RandomOptions options = random_options(spec, arguments);
  require_present(bytes_of_qkv(spec, shape) + bytes_of_buffers(spec, shape, options) +
                      bytes_of_outputs(spec, shape),
                  packed.describe());
  random_packed_ = verify::random_packed_inputs(spec, lengths, arguments.seed.value_or(0), options);
  problem_ = random_packed_->problem();
}

void CallInputs::take_random_buffers(const Spec& spec, const InputArguments& arguments,
                                     const Shape& shape) {
  const verify::RandomOptions options = random_options(spec, arguments);
  require_present(bytes_of_buffers(spec, shape, options), shape.describe());
  random_ = verify::random_snippet_inputs(spec, shape, arguments.seed.value_or(0), options);
  problem_ = random_->problem();
}

// Reads the sizes of a packed call off its tensors, and checks them.
void CallInputs::take_sequences(const Spec& spec) {
  const PackedShape shape = shape_of_tensors(spec, problem_);
  resolve_packed_call(spec, tensors(), shape, options());
  tilewright::validate(shape);
  require_sequences(*problem_.sequences, shape, spec.kv_new);
  problem_.shape = shape_of_totals(shape);
  problem_.page_size = shape.page_size;
}

void CallInputs::take_one_sequence(const Spec& spec, const InputArguments& arguments,
                                   Shape& shape) {
  if (shape.batch != 1) {
    throw Error(
        ErrorCode::usage,
        fmt::format("--batch is {}, but mask shows one sequence of a packed spec", shape.batch),
        "leave --batch out");
  }
  shape.q_offset = arguments.q_offset.value_or(shape.kv_offset + shape.kv_len - shape.q_len);
  validate(shape);
  sequences_ =
      SequenceTensors::of_one(spec, shape.q_len, shape.kv_len, shape.q_offset, shape.kv_offset);
}

void CallInputs::take_values(const Spec& spec, const InputArguments& arguments) {
  problem_.snippet.scalars = parse_scalars(arguments.scalars, spec);
  problem_.shape.q_offset = arguments.q_offset.value_or(0);
  problem_.shape.kv_offset = arguments.kv_offset.value_or(0);
  problem_.scale = arguments.scale;
}

// A q that is wrong gives outputs that are wrong; the check of the call then names q. Rows of a
// packed call that belong to no sequence keep what is here.
void CallInputs::make_outputs(const Spec& spec) {
  std::vector<std::int64_t> extents(problem_.q.extents().begin(), problem_.q.extents().end());
  const bool has_sizes = extents.size() == (spec.is_packed() ? 3 : 4);
  if (has_sizes) extents.back() = spec.value_head_dim();
  out_ = Tensor::zeros(spec.output_dtype(), extents);
  std::vector<std::int64_t> rows(3, 1);
  if (has_sizes && spec.is_packed()) {
    rows = {extents[1], extents[0]};
  } else if (has_sizes) {
    const bool heads_first = spec.layout == Layout::bhsd;
    rows = {extents[0], extents[heads_first ? 1 : 2], extents[heads_first ? 2 : 1]};
  }
  const auto make = [&](bool is_output, std::optional<Tensor>& tensor) {
    if (!is_output) return;
    tensor = Tensor::zeros(DType::f32, rows);
    if (!spec.is_packed()) return;
    std::fill_n(static_cast<float*>(tensor->data()), tensor->numel(),
                -std::numeric_limits<float>::infinity());
  };
  make(spec.outputs.lse, lse_);
  make(spec.outputs.max_scores, max_scores_);
  if (!spec.outputs.weights) return;
  const std::span<const std::int64_t> k = problem_.k.extents();
  rows.push_back(k.size() == 4 ? k[spec.key_value_layout() == Layout::bhsd ? 2 : 1] : 1);
  weights_ = Tensor::zeros(spec.output_dtype(), rows);
}

Bindings CallInputs::bindings(const Attention& attention) const {
  return attention.bind(problem_.snippet);
}

ForwardTensors CallInputs::tensors() {
  ForwardTensors tensors{
      .q = problem_.q, .k = problem_.k, .v = problem_.v, .out = out_.view(), .lse = std::nullopt};
  if (lse_) tensors.lse = lse_->view();
  if (max_scores_) tensors.max_scores = max_scores_->view();
  if (weights_) tensors.weights = weights_->view();
  tensors.k_new = problem_.k_new;
  tensors.v_new = problem_.v_new;
  return tensors;
}

ForwardOptions CallInputs::options() const {
  return {.q_offset = problem_.shape.q_offset,
          .kv_offset = problem_.shape.kv_offset,
          .scale = problem_.scale,
          .splits = is_packed() ? 0 : problem_.splits};
}

}  // namespace tilewright::cli
