#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generator/spec/spec_json.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "verify/check.hpp"
#include "verify/outputs.hpp"
#include "verify/random_inputs.hpp"
#include "verify/random_sequences.hpp"

// Specs with dropout and their calls, for tests on any device whose memory is the host's, and what
// their draws must be.

namespace tilewright::dropout_calls {

/// Word kv_idx & 3 of Philox 4x32-10 with the seed as the key and (kv_idx >> 2, q_idx, h, b) as the
/// counter.
inline std::uint32_t random_word(std::uint64_t seed, std::int64_t b, std::int64_t h,
                                 std::int64_t q_idx, std::int64_t kv_idx) {
  const auto word = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
  std::uint32_t x0 = word(kv_idx >> 2), x1 = word(q_idx), x2 = word(h), x3 = word(b);
  auto k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * x0, p1 = std::uint64_t{0xCD9E8D57} * x2;
    const auto high = [](std::uint64_t p) { return static_cast<std::uint32_t>(p >> 32); };
    x0 = high(p1) ^ x1 ^ k0;
    x1 = static_cast<std::uint32_t>(p1);
    x2 = high(p0) ^ x3 ^ k1;
    x3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  const std::uint32_t words[] = {x0, x1, x2, x3};
  return words[kv_idx & 3];
}

inline bool keeps(std::uint64_t seed, float p, std::int64_t b, std::int64_t h, std::int64_t q_idx,
                  std::int64_t kv_idx) {
  return static_cast<float>(random_word(seed, b, h, q_idx, kv_idx) >> 8) * 0x1p-24f >= p;
}

inline Spec spec_of(const std::string& fields) {
  return spec_from_json(
      R"({"head_dim": 32, "outputs": ["out", "lse"], "block": [64, 64],
          "scalars": {"seed": {"dtype": "i64"}, "p": {"dtype": "f32", "default": 0.3}}, )" +
          fields + "}",
      "dropout");
}

/// Each element of out is one weight: scores are 0, and v has a unit vector for each column.
inline Spec showing_spec(DType dtype, const std::string& layout, std::int64_t columns) {
  Spec spec = spec_of(R"("dtype": "f32", "dropout": "p + 0.125f * h", "layout": ")" + layout + '"');
  spec.dtype = dtype;
  spec.v_head_dim = columns;
  return spec;
}

inline float probability(std::int64_t h) {
  return 0.3f + 0.125f * static_cast<float>(h);
}

inline void clear(Tensor& tensor) {
  std::fill_n(static_cast<std::byte*>(tensor.data()), tensor.bytes(), std::byte{0});
}

/// rows: from row `first` of v on, which lie `row_stride` rows apart
inline void put_units(Tensor& v, std::int64_t first, std::int64_t row_stride, std::int64_t rows) {
  const std::int64_t width = v.shape().back();
  for (std::int64_t i = 0; i < rows; ++i) {
    write_element(v.data(), v.dtype(), (first + i * row_stride) * width + i, 1);
  }
}

inline std::uint64_t seed_of(const verify::Inputs& inputs) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(inputs.scalars.at("seed")));
}

/// Draws of a dense call, one by one, that are wrong. mask: of q_idx and kv_idx, as the spec's
/// mask_mod
template <typename Mask>
int count_wrong_draws(const Spec& spec, const Shape& shape, const Device& device,
                      const Mask& mask) {
  verify::Inputs inputs = verify::random_inputs(spec, shape, 7);
  for (Tensor* const tensor : {&inputs.q, &inputs.k, &inputs.v}) clear(*tensor);
  for (std::int64_t i = 0; i < shape.batch * shape.num_kv_heads; ++i) {
    put_units(inputs.v, i * shape.kv_len, 1, shape.kv_len);
  }
  const verify::AttentionValues values =
      verify::run_call(Attention(spec, {.device = device}), inputs.problem());
  int wrong = 0;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < shape.num_q_heads; ++h) {
      for (std::int64_t row = 0; row < shape.q_len; ++row) {
        for (std::int64_t column = 0; column < shape.kv_len; ++column) {
          const std::int64_t q_idx = row + shape.q_offset, kv_idx = column + shape.kv_offset;
          const bool wanted =
              mask(q_idx, kv_idx) && keeps(seed_of(inputs), probability(h), b, h, q_idx, kv_idx);
          wrong += (values.out.at(b, h, row, column) != 0) != wanted;
        }
      }
    }
  }
  return wrong;
}

inline void check_dense_draws(const Device& device, DType dtype, std::int64_t columns,
                              std::int64_t q_offset, std::int64_t kv_offset,
                              const std::optional<TacticSpec>& tactic) {
  const Shape shape = {.batch = 2,
                       .num_q_heads = 4,
                       .num_kv_heads = 2,
                       .q_len = 70,
                       .kv_len = columns - 3,
                       .q_offset = q_offset,
                       .kv_offset = kv_offset};
  const auto keeps_all = [](std::int64_t, std::int64_t) { return true; };
  Spec spec = showing_spec(dtype, "bhsd", columns);
  spec.tactic = tactic;
  CHECK(count_wrong_draws(spec, shape, device, keeps_all) == 0);
}

/// Those of packed sequences, whose indices count inside each.
inline void check_packed_draws(const Device& device, DType dtype) {
  const Spec spec = showing_spec(dtype, "packed", 200);
  verify::PackedLengths lengths = {.num_q_heads = 4, .num_kv_heads = 2};
  lengths.sequences = {{1, 132}, {5, 18}, {40, 73}, {0, 9}, {70, 67}, {66, 200}};
  verify::PackedInputs packed = verify::random_packed_inputs(spec, lengths, 7);
  for (Tensor* const tensor : {&packed.inputs.q, &packed.inputs.k, &packed.inputs.v}) {
    clear(*tensor);
  }
  const auto* const kv_begin = static_cast<const std::int32_t*>(packed.kv_begin->data());
  const auto* const q_begin = static_cast<const std::int32_t*>(packed.q_begin.data());
  for (std::size_t b = 0; b < lengths.sequences.size(); ++b) {
    for (std::int64_t h_kv = 0; h_kv < 2; ++h_kv) {
      put_units(packed.inputs.v, kv_begin[b] * 2 + h_kv, 2, lengths.sequences[b].kv_len);
    }
  }
  const verify::AttentionValues values =
      verify::run_call(Attention(spec, {.device = device}), packed.problem());
  int wrong = 0;
  for (std::size_t b = 0; b < lengths.sequences.size(); ++b) {
    const auto [q_len, kv_len] = lengths.sequences[b];
    for (std::int64_t h = 0; h < 4; ++h) {
      for (std::int64_t row = 0; row < q_len; ++row) {
        for (std::int64_t column = 0; column < kv_len; ++column) {
          const bool wanted = keeps(seed_of(packed.inputs), probability(h),
                                    static_cast<std::int64_t>(b), h, row + kv_len - q_len, column);
          wrong += (values.out.at(0, h, q_begin[b] + row, column) != 0) != wanted;
        }
      }
    }
  }
  CHECK(wrong == 0);
}

/// On tensor cores and not, with quads of columns that begin at those of a tile and that do not.
inline void check_draws(const Device& device, const std::optional<TacticSpec>& tactic = {}) {
  for (const std::int64_t offset : {0, 5}) {
    CAPTURE(offset);
    check_dense_draws(device, f32, 64, -4 * offset, offset, tactic);
    check_dense_draws(device, bf16, 200, -4 * offset, offset, tactic);
  }
}

inline void require_ok(const verify::Report& report) {
  for (const std::string& reason : report.reasons()) UNSCOPED_INFO(reason);
  CHECK(report.ok);
}

inline void check_dense(const Spec& spec, const Device& device) {
  const Shape shape = {
      .batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 75, .kv_len = 147, .kv_offset = 4};
  const verify::Inputs inputs = verify::random_inputs(spec, shape, 7);
  require_ok(verify::check(spec, inputs.problem(), {.attention = {.device = device}}));
}

inline void check_sequences(const Spec& spec, const Device& device) {
  verify::PackedLengths lengths = {.num_q_heads = 4, .num_kv_heads = 2};
  lengths.sequences = {{1, 132}, {5, 18}, {40, 73}, {6, 6}, {0, 9}};
  lengths.pages.page_size = spec.is_paged() ? 16 : 0;
  lengths.has_new_rows = spec.kv_new;
  const verify::PackedInputs inputs = verify::random_packed_inputs(spec, lengths, 7);
  require_ok(verify::check(spec, inputs.problem(), {.attention = {.device = device}}));
}

inline void check(const Spec& spec, const Device& device) {
  spec.is_packed() ? check_sequences(spec, device) : check_dense(spec, device);
}

/// In each dtype and layout, with masks whose tiles are skipped, scales and sinks.
inline std::vector<std::string> forward_fields() {
  return {
      R"x("dtype": "bf16", "dropout": "p")x",
      R"x("dtype": "f32", "dropout": "h == 1 ? log(-1.0) : p")x",
      R"x("dtype": "f32", "dropout": "0.5f", "layout": "bshd",
          "mask_mod": "q_idx >= kv_idx && kv_idx % 3 != 1")x",
      R"x("dtype": "f16", "dropout": "p * (h + 1) / num_q_heads", "mask_mod": "kv_idx > q_idx + 80",
          "score_mod": "5 * tanh(score / 5)", "sink": "h - 1")x",
      R"x("dtype": "f16", "dropout": "h == 2 ? 1 : 0.999f", "v_scale": "kv_idx % 3 + 1")x",
      R"x("dtype": "bf16", "dropout": "p", "layout": "packed", "mask_mod": "q_idx >= kv_idx")x",
      R"x("dtype": "f16", "dropout": "h == 1 ? 0 : p", "layout": "packed", "kv_layout": "paged",
          "kv_new": true, "mask_mod": "q_idx >= kv_idx && q_idx - kv_idx < 30")x",
      R"x("dtype": "f16", "dropout": "0.25f", "kv_dtype": "f8e4m3", "k_scale": "0.5", "v_scale": "2",
          "layout": "packed", "kv_layout": "paged_x")x"};
}

/// A probability of 0 keeps every weight as it is.
inline void check_no_dropout(const Device& device, const std::string& fields) {
  const Spec with = spec_of("\"dropout\": \"0\", " + fields);
  Spec without = with;
  without.dropout.clear();
  without.scalars.erase("seed");
  const Shape shape = {.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 40, .kv_len = 130};
  const verify::Inputs inputs = verify::random_inputs(with, shape, 7);
  const auto out_of = [&](const Spec& spec) {
    verify::Problem problem = inputs.problem();
    if (!spec.has_dropout()) problem.snippet.scalars.erase("seed");
    return verify::run_call(Attention(spec, {.device = device}), problem);
  };
  const verify::AttentionValues a = out_of(with), b = out_of(without);
  CHECK(a.out.data == b.out.data);
  CHECK(a.lse.data == b.lse.data);
}

/// The seed in a buffer draws what it draws as a scalar, and all of its 64 bits count.
inline void check_seed_buffer(const Device& device) {
  const Spec scalar = spec_of(R"("dtype": "f32", "dropout": "0.5f")");
  Spec buffer = scalar;
  buffer.scalars.erase("seed");
  buffer.buffers["seed"] = {.dtype = i64, .shape = {}};
  const Shape shape = {.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 20, .kv_len = 70};
  const verify::Inputs inputs = verify::random_inputs(scalar, shape, 7);
  auto seed = static_cast<std::int64_t>(inputs.scalars.at("seed"));
  verify::Problem problem = inputs.problem();
  const auto out = verify::run_call(Attention(scalar, {.device = device}), problem).out.data;
  problem.snippet.scalars.erase("seed");
  problem.snippet.buffers["seed"] = TensorView::contiguous(&seed, i64, {});
  const Attention attention(buffer, {.device = device});
  CHECK(verify::run_call(attention, problem).out.data == out);
  require_ok(verify::check(buffer, problem, {.attention = {.device = device}}));
  seed ^= std::int64_t{1} << 62;
  CHECK(verify::run_call(attention, problem).out.data != out);
  require_ok(verify::check(buffer, problem, {.attention = {.device = device}}));
}

/// The output weights: those that met V.
inline void check_weights(const Device& device, const std::string& fields) {
  Spec spec = spec_of(fields);
  spec.outputs.weights = true;
  const Shape shape = {
      .batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 75, .kv_len = 147, .kv_offset = 4};
  const verify::Inputs inputs = verify::random_inputs(spec, shape, 7);
  const verify::Report report =
      verify::check(spec, inputs.problem(), {.attention = {.device = device}});
  require_ok(report);
  CHECK(report.verdict.weights_bound > 0);
}

}  // namespace tilewright::dropout_calls
