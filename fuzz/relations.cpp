#include "fuzz/relations.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "fuzz/relation_calls.hpp"
#include "fuzz/relation_comparison.hpp"
#include "fuzz/rewrite.hpp"
#include "generator/snippet/snippet.hpp"
#include "runtime/io/float16.hpp"
#include "verify/random.hpp"

namespace tilewright::verify::fuzz {
namespace {

class Checks {
 public:
  Checks(const Spec& spec, const Inputs& inputs, RelationRunner& runner)
      : base_(spec, inputs), runner_(runner), wanted_(run(base_)), comparison_(spec, wanted_) {}

  RelationResult permuted_keys() {
    const std::int64_t n = base_.inputs.shape.kv_len;
    std::vector<std::int64_t> from(static_cast<std::size_t>(n));
    std::iota(from.begin(), from.end(), 0);
    Random random(1, "permuted keys");
    for (std::int64_t i = n - 1; i > 0; --i) {
      std::swap(from[static_cast<std::size_t>(i)],
                from[static_cast<std::size_t>(random.integer(0, i))]);
    }
    RelationCall call = base_;
    Tensor old_key = Tensor::zeros(DType::i32, {n});
    for (std::int64_t i = 0; i < n; ++i) {
      write_element(old_key.data(), DType::i32, i,
                    static_cast<double>(from[static_cast<std::size_t>(i)]));
    }
    call.take_keys(from);
    const std::string name = unused_name(base_.spec, "old_key");
    call.rebind({{"kv_idx", name + "[kv_idx]"}});
    call.spec.buffers[name] = {.dtype = DType::i32, .shape = {NamedDim::kv_len}};
    call.inputs.buffers.emplace(name, std::move(old_key));
    return comparison_.with(run(call));
  }

  RelationResult split_keys() {
    const Shape& shape = base_.inputs.shape;
    const std::int64_t middle = shape.kv_offset + shape.kv_len * 2 / 5;
    const auto part = [&](const char* comparison) {
      RelationCall call = base_;
      drop_columns_unless(fmt::format("kv_idx {} {}", comparison, middle), call);
      return run(call);
    };
    return comparison_.with(merged(part("<"), part(">=")));
  }

  RelationResult added_constant() {
    RelationCall call = base_;
    const std::string original = unused_name(base_.spec, "original");
    call.spec.score_mod =
        around(SnippetKind::score_mod, base_.spec.score_mod, original, original + "() + 1.5");
    return comparison_.with(run(call), 1.5);
  }

  RelationResult mask_as_score() {
    RelationCall call = base_;
    const std::string kept = unused_name(base_.spec, "kept");
    const std::string original = unused_name(base_.spec, "original");
    call.spec.score_mod = as_lambda(SnippetKind::mask_mod, base_.spec.mask_mod, kept) +
                          around(SnippetKind::score_mod, base_.spec.score_mod, original,
                                 fmt::format("{}() ? {}() : -INFINITY", kept, original));
    call.spec.mask_mod.clear();
    return comparison_.with(run(call));
  }

  RelationResult tactics() {
    RelationResult result = comparison_.with(
        runner_.forward(base_.spec, base_.inputs.problem(), RelationRunner::Way::one_thread));
    if (!result.holds()) return result;
    RelationCall other_blocks = base_;
    other_blocks.spec.tactic.reset();
    other_blocks.spec.block = {64, 48};
    result = comparison_.with(run(other_blocks));
    for (const TacticSpec& tactic : runner_.tactics(base_.spec)) {
      if (!result.holds()) break;
      RelationCall call = base_;
      call.spec.tactic = tactic;
      result = comparison_.with(run(call));
    }
    return result;
  }

  RelationResult duplicated_keys() {
    const std::int64_t n = base_.inputs.shape.kv_len;
    RelationCall call = base_;
    call.freeze();
    const std::int64_t offset = base_.inputs.shape.kv_offset;
    call.rebind({{"kv_idx", fmt::format("(kv_idx - {0}) % {1} + {0}", offset, n)}});
    std::vector<std::int64_t> from(static_cast<std::size_t>(2 * n));
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::int64_t>(i) % n;
    call.take_keys(from);
    return comparison_.with(run(call), std::log(2.0));
  }

  RelationResult one_head() {
    const std::int64_t heads = base_.inputs.shape.num_q_heads;
    RelationCall call = base_;
    call.freeze();
    call.take_head(heads - 1);
    return RelationComparison(base_.spec, alone(wanted_, -1, heads - 1)).with(run(call));
  }

  RelationResult one_batch() {
    const std::int64_t batch = base_.inputs.shape.batch;
    RelationCall call = base_;
    call.freeze();
    call.take_batch(batch - 1);
    return RelationComparison(base_.spec, alone(wanted_, batch - 1, -1)).with(run(call));
  }

  // Twice a number of one byte, and the sum of two, may lie beyond the greatest one.
  void halve_v_of_one_byte() {
    const DType dtype = base_.inputs.v.dtype();
    if (!is_quantised(dtype)) return;
    for (std::int64_t i = 0; i < base_.inputs.v.numel(); ++i) {
      const double half = read_element(base_.inputs.v.data(), dtype, i) / 2;
      write_element(base_.inputs.v.data(), dtype, i, dtype == DType::i8 ? std::trunc(half) : half);
    }
    wanted_ = run(base_);
  }

  RelationResult linear_in_v() {
    halve_v_of_one_byte();
    RelationCall twice = base_, other = base_, sum = base_;
    const DType dtype = base_.inputs.v.dtype();
    double greatest_sum = 0;
    for (std::int64_t i = 0; i < base_.inputs.v.numel(); ++i) {
      const double v = read_element(base_.inputs.v.data(), dtype, i);
      const double w = read_element(base_.inputs.v.data(), dtype, base_.inputs.v.numel() - 1 - i);
      write_element(twice.inputs.v.data(), dtype, i, 2 * v);
      write_element(other.inputs.v.data(), dtype, i, w);
      write_element(sum.inputs.v.data(), dtype, i, v + w);
      greatest_sum = std::max(greatest_sum, std::abs(v + w));
    }
    AttentionValues doubled = wanted_;
    for (double& value : doubled.out.data) value *= 2;
    // Below its normal numbers float16 has steps, which do not grow with the number.
    const bool has_steps = base_.spec.output_dtype() == DType::f16;
    std::string wrong = same_bits(run(twice), doubled, "twice v", has_steps ? 0x1p-23 : 0);
    if (!wrong.empty()) return {.message = std::move(wrong)};
    // A rounded sum of two stored numbers grows with v_scale; those of i8 are exact.
    if (is_float8(dtype)) return {};
    const double rounding = dtype == DType::i8 ? 0 : ulp_at(dtype, greatest_sum);
    AttentionValues added = run(other);
    for (std::size_t i = 0; i < added.out.data.size(); ++i)
      added.out.data[i] += wanted_.out.data[i];
    return RelationComparison(base_.spec, added, rounding).with(run(sum));
  }

  RelationResult padding() {
    const Shape& shape = base_.inputs.shape;
    RelationCall call = base_;
    call.freeze();
    std::vector<std::int64_t> from(static_cast<std::size_t>(shape.kv_len + 37), 0);
    std::iota(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(shape.kv_len), 0);
    call.take_keys(from);
    fill_padding_with_nan(call, shape.kv_len);
    drop_columns_unless(fmt::format("kv_idx < {}", shape.kv_len + shape.kv_offset), call);
    return comparison_.with(run(call));
  }

  RelationResult offsets() {
    RelationCall call = base_;
    call.freeze();
    call.rebind({{"q_idx", "q_idx - 7"}, {"kv_idx", "kv_idx - 5"}});
    call.inputs.shape.q_offset += 7;
    call.inputs.shape.kv_offset += 5;
    return comparison_.with(run(call));
  }

  RelationResult proved_mask() {
    // Floating-point numbers are never proved.
    RelationCall call = base_;
    const std::string undecided = unused_name(base_.spec, "undecided");
    const std::string original = unused_name(base_.spec, "original");
    call.spec.mask_mod = fmt::format("const float {} = kv_idx;\n", undecided) +
                         around(SnippetKind::mask_mod, base_.spec.mask_mod, original,
                                fmt::format("{}() && {} == {}", original, undecided, undecided));
    const BlockMask proved = runner_.block_mask(base_.spec, base_.inputs.problem());
    const BlockMask exact = runner_.block_mask(call.spec, call.inputs.problem());
    return {.message = difference(proved, exact)};
  }

  RelationResult json_spec() {
    const Spec spec = runner_.reread(base_.spec);
    std::string wrong =
        same_bits(runner_.forward(spec, base_.inputs.problem()), wanted_, "the spec from JSON");
    return {.message = std::move(wrong)};
  }

  // By tensor, by head and by row.
  RelationResult equal_scales() {
    constexpr double kOfK = 0.75, kOfV = 1.5;
    const auto scaled = [&](const std::string& index, NamedDim dim, std::int64_t extent) {
      RelationCall call = base_;
      for (const auto& [kind, value] :
           {std::pair(SnippetKind::k_scale, kOfK), std::pair(SnippetKind::v_scale, kOfV)}) {
        if (index.empty()) {
          snippet_text(call.spec, kind) = fmt::format("{}f", value);
          continue;
        }
        const std::string name = unused_name(call.spec, "equal_values");
        Tensor values = Tensor::zeros(DType::f32, {extent});
        for (std::int64_t i = 0; i < extent; ++i) {
          write_element(values.data(), DType::f32, i, value);
        }
        call.spec.buffers[name] = {.dtype = DType::f32, .shape = {dim}};
        call.inputs.buffers.emplace(name, std::move(values));
        snippet_text(call.spec, kind) = fmt::format("{}[{}]", name, index);
      }
      call.spec.tactic.reset();
      return run(call);
    };
    const Shape& shape = base_.inputs.shape;
    const AttentionValues of_tensor = scaled("", NamedDim::batch, 0);
    const RelationComparison comparison(base_.spec, of_tensor);
    RelationResult result =
        comparison.with(scaled("h_kv", NamedDim::num_kv_heads, shape.num_kv_heads));
    if (!result.holds()) return result;
    return comparison.with(scaled("kv_idx", NamedDim::kv_len, shape.kv_len));
  }

  RelationResult no_sink() {
    RelationCall call = base_;
    call.spec.sink = "-INFINITY";
    return comparison_.with(run(call));
  }

  RelationResult cached() {
    const RelationRunner::FromCache cached =
        runner_.forward_from_cache(base_.spec, base_.inputs.problem());
    for (const std::string& source : cached.sources) {
      if (source == "disk") continue;
      return {.message = fmt::format("a kernel that the cache holds is {}", source)};
    }
    return {.message = same_bits(cached.values, wanted_, "a kernel from the cache")};
  }

 private:
  AttentionValues run(const RelationCall& call) const {
    return runner_.forward(call.spec, call.inputs.problem());
  }

  // In addition to what mask_mod drops. Where there was none, a tactic that the case forces is one
  // of a kernel that follows no mask, and may not divide the mask's blocks.
  static void drop_columns_unless(const std::string& condition, RelationCall& call) {
    Spec& spec = call.spec;
    if (spec.mask_mod.empty()) spec.tactic.reset();
    const std::string original = unused_name(spec, "original");
    spec.mask_mod = around(SnippetKind::mask_mod, spec.mask_mod, original,
                           fmt::format("{} && {}()", condition, original));
  }

  // One head or batch of a result; -1: all.
  static AttentionValues alone(const AttentionValues& all, std::int64_t b, std::int64_t h) {
    const auto part = [&](const Values& from) {
      Values to =
          Values::zeros(b < 0 ? from.batch : 1, h < 0 ? from.heads : 1, from.rows, from.width);
      for (std::int64_t i = 0; i < to.batch; ++i) {
        for (std::int64_t j = 0; j < to.heads; ++j) {
          const double* row = from.row(b < 0 ? i : b, h < 0 ? j : h, 0);
          std::copy(row, row + from.rows * from.width, to.row(i, j, 0));
        }
      }
      return to;
    };
    return {.out = part(all.out), .lse = part(all.lse)};
  }

  // Of two calls that share no key.
  static AttentionValues merged(const AttentionValues& a, const AttentionValues& b) {
    AttentionValues result = a;
    for (std::size_t row = 0; row < a.lse.data.size(); ++row) {
      const double x = a.lse.data[row], y = b.lse.data[row];
      const double most = std::max(x, y);
      const bool is_empty = most == -std::numeric_limits<double>::infinity();
      const double of_a = is_empty ? 0 : std::exp(x - most),
                   of_b = is_empty ? 0 : std::exp(y - most);
      const double sum = is_empty ? 1 : of_a + of_b;
      result.lse.data[row] = is_empty ? most : most + std::log(sum);
      const auto width = static_cast<std::size_t>(a.out.width);
      for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
        result.out.data[i] = (of_a * a.out.data[i] + of_b * b.out.data[i]) / sum;
      }
    }
    return result;
  }

  static void fill_padding_with_nan(RelationCall& call, std::int64_t first) {
    Tensor& k = call.inputs.k;
    const bool bhsd = call.spec.key_value_layout() == Layout::bhsd;
    const std::int64_t width = k.shape()[3];
    const std::int64_t between = bhsd ? 1 : k.shape()[2];
    for (std::int64_t i = 0; i < k.numel(); ++i) {
      const std::int64_t row = i / width / between % call.inputs.shape.kv_len;
      if (row < first) continue;
      write_element(k.data(), k.dtype(), i, std::numeric_limits<double>::quiet_NaN());
    }
  }

  static std::string difference(const BlockMask& a, const BlockMask& b) {
    for (std::int64_t batch = 0; batch < a.batch(); ++batch) {
      for (std::int64_t h = 0; h < a.heads(); ++h) {
        for (std::int64_t q = 0; q < a.q_blocks(); ++q) {
          if (a.row(batch, h, q) == b.row(batch, h, q)) continue;
          return fmt::format("tiles of batch {}, head {}, q block {} are others by evaluation",
                             batch, h, q);
        }
      }
    }
    return "";
  }

  RelationCall base_;
  RelationRunner& runner_;
  AttentionValues wanted_;
  RelationComparison comparison_;
};

using Check = RelationResult (Checks::*)();

Check check_of(Relation relation) {
  switch (relation) {
    case Relation::permuted_keys:
      return &Checks::permuted_keys;
    case Relation::split_keys:
      return &Checks::split_keys;
    case Relation::added_constant:
      return &Checks::added_constant;
    case Relation::mask_as_score:
      return &Checks::mask_as_score;
    case Relation::tactics:
      return &Checks::tactics;
    case Relation::duplicated_keys:
      return &Checks::duplicated_keys;
    case Relation::one_head:
      return &Checks::one_head;
    case Relation::one_batch:
      return &Checks::one_batch;
    case Relation::linear_in_v:
      return &Checks::linear_in_v;
    case Relation::padding:
      return &Checks::padding;
    case Relation::offsets:
      return &Checks::offsets;
    case Relation::proved_mask:
      return &Checks::proved_mask;
    case Relation::json_spec:
      return &Checks::json_spec;
    case Relation::equal_scales:
      return &Checks::equal_scales;
    case Relation::no_sink:
      return &Checks::no_sink;
    case Relation::cached:
      return &Checks::cached;
    default:
      break;
  }
  return nullptr;
}

bool rewrites_snippets(Relation relation) {
  switch (relation) {
    case Relation::tactics:
    case Relation::linear_in_v:
    case Relation::json_spec:
    case Relation::equal_scales:
    case Relation::no_sink:
    case Relation::cached:
    case Relation::reversed_batches:
    case Relation::doubled_dout:
    case Relation::no_dropout:
    case Relation::seed_in_buffer:
    case Relation::planned_again:
    case Relation::positions:
    case Relation::new_rows:
    case Relation::merged_ranges:
    case Relation::lying_lengths:
      return false;
    default:
      return true;
  }
}

bool is_compile_error(const Error& error) {
  return error.code() == ErrorCode::snippet || error.code() == ErrorCode::kernel_template ||
         error.code() == ErrorCode::compiler;
}

// What the spec says, its own call has shown to compile.
RelationResult run_check(Relation relation, const Spec& spec, const Inputs& inputs,
                         RelationRunner& runner, const FuzzPacking& packing) {
  try {
    if (is_of_gradients(relation)) {
      return check_gradient_relation(relation, spec, inputs, packing, runner);
    }
    if (is_of_dropout(relation)) {
      return check_dropout_relation(relation, spec, inputs, packing, runner);
    }
    if (is_of_packed(relation)) {
      return check_packed_relation(relation, spec, inputs, packing, runner);
    }
    Checks checks(spec, inputs, runner);
    return (checks.*check_of(relation))();
  } catch (const Error& error) {
    if (rewrites_snippets(relation) && is_compile_error(error)) return {.applies = false};
    throw;
  }
}

}  // namespace

RelationResult check_relation(Relation relation, const Spec& spec, const Inputs& inputs,
                              RelationRunner& runner, const FuzzPacking& packing) {
  if (!applies(relation, spec, inputs.shape)) return {.applies = false};
  Spec with_lse = spec;
  with_lse.outputs.lse = true;
  RelationResult result = run_check(relation, with_lse, inputs, runner, packing);
  if (!result.holds()) {
    result.message = fmt::format("{} does not hold: {}", to_string(relation), result.message);
  }
  return result;
}

}  // namespace tilewright::verify::fuzz
