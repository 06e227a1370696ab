#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/attention.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"

// Buffers of each dtype that snippets read, on any device whose memory the host can write to.

namespace tilewright {

/// Numbers of a buffer, all different.
struct StoredNumbers {
  DType dtype;
  std::vector<double> numbers;
};

/// The least and the greatest numbers of each dtype, and such as lose something in a shorter type,
/// without their sign, or where 64 bits are read as a double.
inline std::vector<StoredNumbers> numbers_of_each_dtype() {
  return {{DType::i8, {-128, 127, -1, 0}},
          {DType::u8, {255, 128, 1, 0}},
          {DType::i16, {-32768, 32767, -1, 0}},
          {DType::u16, {65535, 32768, 255, 0}},
          {DType::i32, {-2147483648.0, 2147483647, -1, 0}},
          {DType::u32, {4294967295.0, 2147483648.0, 65536, 0}},
          {DType::i64, {-0x1p62, 0x1p62, -1, 0x1p32}},
          {DType::f64, {0.1, -0x1.fffffefp-1, 1e39, 0}}};  // the third is infinite as a float
}

/// Row i of head h keeps the column alone whose number is number i of dtype h: out is that column's
/// v, its position.
inline void check_reads_each_dtype(const Device& device) {
  const std::vector<StoredNumbers> stored = numbers_of_each_dtype();
  const auto heads = static_cast<std::int64_t>(stored.size());
  constexpr std::int64_t kCount = 4, kWidth = 16;
  Spec spec{.dtype = f32, .head_dim = kWidth};
  std::map<std::string, Tensor> tensors;
  const auto declare = [&](const std::string& name, DType dtype, std::vector<BufferDim> shape,
                           std::initializer_list<std::int64_t> extents) -> void* {
    spec.buffers[name] = {.dtype = dtype, .shape = std::move(shape)};
    return tensors.emplace(name, Tensor::zeros(dtype, extents)).first->second.data();
  };
  const std::vector<BufferDim> by_row = {NamedDim::num_q_heads, NamedDim::q_len};
  void* const whole = declare("whole", DType::i64, by_row, {heads, kCount});
  void* const real = declare("real", f32, by_row, {heads, kCount});
  for (std::int64_t h = 0; h < heads; ++h) {
    const auto& [dtype, numbers] = stored[static_cast<std::size_t>(h)];
    const std::string name = "x_" + std::string(to_string(dtype));
    void* const x = declare(name, dtype, {NamedDim::kv_len}, {kCount});
    for (std::int64_t i = 0; i < kCount; ++i) {
      const double number = numbers[static_cast<std::size_t>(i)];
      write_element(x, dtype, kCount - 1 - i, number);
      if (is_floating(dtype))
        write_element(real, f32, h * kCount + i, number);
      else
        write_element(whole, DType::i64, h * kCount + i, number);
    }
    spec.mask_mod += (h == 0 ? "h == " : " || h == ") + std::to_string(h) + " && " + name +
                     "[kv_idx] == " + (is_floating(dtype) ? "real" : "whole") + "(h, q_idx)";
  }
  const Attention attention(spec, {.device = device});
  std::map<std::string, TensorView> views(tensors.begin(), tensors.end());
  const Bindings bindings = attention.bind({.buffers = views});
  Tensor q = Tensor::zeros(f32, {1, heads, kCount, kWidth});
  Tensor k = Tensor::zeros(f32, {1, 1, kCount, kWidth}),
         v = Tensor::zeros(f32, {1, 1, kCount, kWidth});
  Tensor out = Tensor::zeros(f32, {1, heads, kCount, kWidth});
  for (std::int64_t i = 0; i < kCount; ++i)
    write_element(v.data(), f32, i * kWidth, static_cast<double>(i));
  const Shape shape{
      .batch = 1, .num_q_heads = heads, .num_kv_heads = 1, .q_len = kCount, .kv_len = kCount};
  const BlockMask mask = attention.block_mask(shape, bindings);
  attention.forward({.q = q, .k = k, .v = v, .out = out}, mask, bindings);
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t i = 0; i < kCount; ++i) {
      CAPTURE(to_string(stored[static_cast<std::size_t>(h)].dtype), i);
      CHECK(read_element(out.data(), f32, (h * kCount + i) * kWidth) ==
            static_cast<double>(kCount - 1 - i));
    }
  }
}

}  // namespace tilewright
