#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "packed_batch.hpp"

// Merges of random parts, and what they should give, for tests on any device whose memory is the
// host's.

namespace tilewright::merged_parts {

inline constexpr float kInf = std::numeric_limits<float>::infinity();

/// Parts of one call in f32, with rows in any order of dimensions.
struct Parts {
  std::vector<std::int64_t> out_shape, lse_shape;
  std::vector<Tensor> out, lse;

  Parts(const Spec& spec, int count, std::int64_t batch, std::int64_t heads, std::int64_t rows) {
    const std::int64_t width = spec.value_head_dim();
    out_shape = spec.layout == Layout::packed ? std::vector{rows, heads, width}
                : spec.layout == Layout::bshd ? std::vector{batch, rows, heads, width}
                                              : std::vector{batch, heads, rows, width};
    lse_shape =
        spec.layout == Layout::packed ? std::vector{heads, rows} : std::vector{batch, heads, rows};
    for (int i = 0; i < count; ++i) {
      out.push_back(packed_calls::random_tensor(out_shape, 2 * i + 1));
      lse.push_back(packed_calls::random_tensor(lse_shape, 2 * i + 2));
      for (std::int64_t j = 0; j < lse.back().numel(); ++j) {
        packed_calls::floats(lse.back())[j] *= 7;
      }
    }
  }

  /// Element of `out` where a row's first column is; `row` counts as lse's elements do.
  std::int64_t row_in_out(const Spec& spec, std::int64_t row) const {
    const std::int64_t heads =
        out_shape[spec.layout == Layout::bhsd || spec.layout == Layout::packed ? 1 : 2];
    const std::int64_t rows = lse_shape.back(), width = out_shape.back();
    if (spec.layout == Layout::bhsd) return row * width;
    const std::int64_t b = row / (heads * rows), h = row / rows % heads;
    return ((b * rows + row % rows) * heads + h) * width;
  }
};

inline bool floats_are_poison(Tensor& tensor) {
  const float* const begin = packed_calls::floats(tensor);
  return std::all_of(begin, begin + tensor.numel(), [](float x) { return std::isnan(x); });
}

/// One row by its definition, in double.
struct Merged {
  std::vector<double> out;
  double lse;
};

inline Merged merge_row(const Spec& spec, const Parts& parts, std::int64_t row) {
  const auto lse_of = [&](const Tensor& lse) {
    return double{static_cast<const float*>(lse.data())[row]};
  };
  double max = -kInf;
  for (const Tensor& lse : parts.lse) max = std::fmax(max, lse_of(lse));
  Merged merged = {std::vector<double>(static_cast<std::size_t>(parts.out_shape.back())), -kInf};
  if (max == -kInf) return merged;
  double sum = 0;
  for (const Tensor& lse : parts.lse) sum += std::exp(lse_of(lse) - max);
  merged.lse = max + std::log(sum);
  for (std::size_t i = 0; i < parts.out.size(); ++i) {
    if (lse_of(parts.lse[i]) == -kInf) continue;
    const double weight = std::exp(lse_of(parts.lse[i]) - merged.lse);
    const auto* const from =
        static_cast<const float*>(parts.out[i].data()) + parts.row_in_out(spec, row);
    for (std::size_t d = 0; d < merged.out.size(); ++d) merged.out[d] += weight * double{from[d]};
  }
  return merged;
}

/// Out is below 2, so half a unit in its last place is at most 2^-11 in f16 and 2^-8 in bf16. In
/// f32 16 sums lose 16 times 2^-24, and weights as much again.
inline double out_tolerance(DType dtype) {
  return dtype == f16 ? 0x1p-11 : dtype == bf16 ? 0x1p-8 : 0x1p-19;
}

inline void require_merged(const Spec& spec, const Parts& parts, const Tensor& out,
                           const Tensor* lse) {
  Tensor found = Tensor::zeros(f32, out.shape());
  packed_calls::read_back(out, found);
  for (std::int64_t row = 0; row < parts.lse[0].numel(); ++row) {
    const Merged wanted = merge_row(spec, parts, row);
    const auto* const at = static_cast<const float*>(found.data()) + parts.row_in_out(spec, row);
    for (std::size_t d = 0; d < wanted.out.size(); ++d) {
      CAPTURE(row, d, at[d], wanted.out[d]);
      const bool is_near =
          std::fabs(double{at[d]} - wanted.out[d]) <= 1.01 * out_tolerance(spec.output_dtype());
      REQUIRE(is_near);
    }
    if (lse == nullptr) continue;
    const double given = double{static_cast<const float*>(lse->data())[row]};
    CAPTURE(row, given, wanted.lse);
    const bool is_near = given == wanted.lse || std::fabs(given - wanted.lse) <= 0x1p-18;
    REQUIRE(is_near);
  }
}

inline Spec merge_spec(DType dtype, Layout layout, std::int64_t width) {
  return {.dtype = dtype,
          .head_dim = 32,
          .v_head_dim = width,
          .layout = layout,
          .outputs = {.lse = true}};
}

/// Out and lse of a merge, first poison.
struct MergedCall {
  Tensor out, lse;
  std::vector<Tensor> parts;  // in the spec's dtype

  MergedCall(const Attention& attention, Parts& given)
      : out(Tensor::zeros(attention.spec().dtype, given.out_shape)),
        lse(Tensor::zeros(f32, given.lse_shape)) {
    const DType dtype = attention.spec().dtype;
    Tensor poison = Tensor::zeros(f32, given.out_shape);
    packed_calls::fill(poison, packed_calls::kPoison);
    out = packed_calls::in_dtype(poison, dtype);
    packed_calls::fill(lse, packed_calls::kPoison);
    for (Tensor& part : given.out) {
      parts.push_back(packed_calls::in_dtype(part, dtype));
      packed_calls::read_back(parts.back(), part);  // what the dtype holds
    }
  }

  std::vector<Part> views(const Parts& given) const {
    std::vector<Part> views;
    for (std::size_t i = 0; i < parts.size(); ++i) views.push_back({parts[i], given.lse[i]});
    return views;
  }
};

/// A merge of random parts, with lse and without, aligned and 2 elements off.
inline void check_merge(const Attention& attention, int count, std::int64_t batch,
                        std::int64_t heads, std::int64_t rows) {
  const Spec& spec = attention.spec();
  Parts parts(spec, count, batch, heads, rows);
  MergedCall call(attention, parts);
  attention.merge(call.views(parts), call.out, call.lse.view());
  require_merged(spec, parts, call.out, &call.lse);

  MergedCall other(attention, parts);
  const auto element = static_cast<std::int64_t>(size_of(spec.dtype));
  Tensor room = Tensor::zeros(spec.dtype, {other.parts[0].numel() + 2});
  std::memcpy(static_cast<std::byte*>(room.data()) + 2 * element, other.parts[0].data(),
              static_cast<std::size_t>(other.parts[0].bytes()));
  std::vector<Part> views = other.views(parts);
  views[0].out.data = static_cast<std::byte*>(room.data()) + 2 * element;
  attention.merge(views, other.out);
  require_merged(spec, parts, other.out, nullptr);
  CHECK(floats_are_poison(other.lse));
}

inline void check_empty_parts(const Attention& attention) {
  Parts parts(attention.spec(), 3, 1, 2, 12);
  const std::int64_t width = parts.out_shape.back();
  for (std::int64_t row = 0; row < parts.lse[0].numel(); ++row) {
    for (std::size_t i = 0; i < 3; ++i) {
      if ((row >> i) % 2 == 0) continue;
      packed_calls::floats(parts.lse[i])[row] = -kInf;
      float* const out =
          packed_calls::floats(parts.out[i]) + parts.row_in_out(attention.spec(), row);
      std::fill(out, out + width, packed_calls::kPoison);
    }
  }
  MergedCall call(attention, parts);
  attention.merge(call.views(parts), call.out, call.lse.view());
  require_merged(attention.spec(), parts, call.out, &call.lse);
  CHECK(packed_calls::floats(call.lse)[7] == -kInf);
}

/// A NaN spreads over its row alone; of infinite lse the others weigh nothing.
inline void check_special_values(const Attention& attention) {
  Parts parts(attention.spec(), 2, 1, 1, 5);
  const std::int64_t width = parts.out_shape.back();
  packed_calls::floats(parts.lse[0])[1] = packed_calls::kPoison;
  packed_calls::floats(parts.lse[1])[2] = kInf;
  packed_calls::floats(parts.lse[0])[3] = packed_calls::kPoison;
  packed_calls::floats(parts.lse[1])[3] = -kInf;
  packed_calls::floats(parts.lse[0])[4] = 3e38f;
  packed_calls::floats(parts.lse[1])[4] = -3e38f;
  packed_calls::floats(parts.out[1])[0] = packed_calls::kPoison;
  MergedCall call(attention, parts);
  attention.merge(call.views(parts), call.out, call.lse.view());
  const float* const out = packed_calls::floats(call.out);
  const float* const lse = packed_calls::floats(call.lse);
  CHECK(std::isnan(out[0]));
  CHECK_FALSE(std::isnan(out[1]));
  for (const std::int64_t row : {1, 3}) {
    CHECK(std::isnan(lse[row]));
    for (std::int64_t d = 0; d < width; ++d) CHECK(std::isnan(out[row * width + d]));
  }
  CHECK(lse[2] == kInf);
  CHECK(lse[4] == 3e38f);
  for (std::int64_t d = 0; d < width; ++d) {
    CHECK(out[2 * width + d] == packed_calls::floats(parts.out[1])[2 * width + d]);
    CHECK(out[4 * width + d] == packed_calls::floats(parts.out[0])[4 * width + d]);
  }
}

/// The second part's tensors are the result's.
inline void check_in_place(const Attention& attention) {
  Parts parts(attention.spec(), 3, 2, 2, 33);
  MergedCall call(attention, parts);
  attention.merge(call.views(parts), call.out, call.lse.view());
  MergedCall in_place(attention, parts);
  Tensor lse = Tensor::copy_of(parts.lse[1]);
  std::vector<Part> views = in_place.views(parts);
  views[1].lse = lse;
  attention.merge(views, in_place.parts[1], lse.view());
  CHECK(std::memcmp(in_place.parts[1].data(), call.out.data(),
                    static_cast<std::size_t>(call.out.bytes())) == 0);
  CHECK(std::memcmp(lse.data(), call.lse.data(), static_cast<std::size_t>(lse.bytes())) == 0);
}

}  // namespace tilewright::merged_parts
