// Attention::quantise on a CPU: what it stores, and what it refuses.
#include <limits>

#include "tests/support/quantised.hpp"

namespace tilewright {
using namespace quantised;
using test::refusal;

TEST_CASE("quantise: dense tensors of each dtype") {
  check_dense(Device::cpu());
  check_strides(Device::cpu());
  check_shape(Device::cpu());
}

TEST_CASE("quantise: packed tensors and pools, by a plan and without") {
  check_packed(Device::cpu());
  check_paged(Device::cpu(), 16, TableForm::rows, false);
  check_paged(Device::cpu(), 3, TableForm::flat_with_ends, true);
  check_paged(Device::cpu(), 140, TableForm::none, false);
}

TEST_CASE("quantise: ties go to even, values are clamped, and NaN is as the dtype has it") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  struct Case {
    DType stored;
    float value, wanted;
  };
  const auto check = [](DType stored, std::initializer_list<std::pair<float, float>> cases) {
    Spec spec = quantised_spec(stored, Layout::bhsd, Layout::bhsd, 32);
    spec.k_scale = "0.5f";
    spec.buffers.clear();
    const Attention attention = quantising(spec, Device::cpu());
    Tensor from = Tensor::zeros(f32, {1, 1, 1, 32}), to = Tensor::zeros(stored, from.shape());
    int i = 0;
    for (const auto& [value, wanted] : cases) floats(from)[i++] = value / 2;
    attention.quantise(from, to, nullptr, Operand::k);
    i = 0;
    for (const auto& [value, wanted] : cases) {
      CAPTURE(to_string(stored), value);
      const auto found = static_cast<float>(read_element(to.data(), stored, i++));
      if (std::isnan(wanted)) {
        CHECK(std::isnan(found));
      } else {
        CHECK(found == wanted);
      }
    }
  };
  check(f8e4m3, {{1.0625f, 1.0f},
                 {1.1875f, 1.25f},
                 {-1.0625f, -1.0f},
                 {449.0f, 448.0f},
                 {-1e30f, -448.0f},
                 {kInfinity, 448.0f},
                 {-kInfinity, -448.0f},
                 {kPoison, kPoison},
                 {0x1p-9f, 0x1p-9f},
                 {0x1p-10f, 0.0f},
                 {0x3p-10f, 0x1p-8f}});
  check(f8e5m2, {{1.125f, 1.0f},
                 {1.375f, 1.5f},
                 {6e4f, 57344.0f},
                 {-1e30f, -57344.0f},
                 {kInfinity, kInfinity},
                 {kPoison, kPoison},
                 {0x1p-16f, 0x1p-16f},
                 {0x1p-17f, 0.0f}});
  check(i8, {{0.5f, 0.0f},
             {1.5f, 2.0f},
             {-2.5f, -2.0f},
             {127.5f, 127.0f},
             {1e9f, 127.0f},
             {-128.4f, -128.0f},
             {-1e9f, -128.0f},
             {kInfinity, 127.0f},
             {kPoison, 0.0f}});
}

TEST_CASE("quantise: what it refuses says what to do") {
  const Spec spec = quantised_spec(f8e4m3, Layout::bhsd, Layout::bhsd);
  const Attention attention = quantising(spec, Device::cpu());
  Tensor scales = scales_of_heads(2), three = scales_of_heads(3);
  const Bindings bindings = attention.bind({.buffers = {{"k_scales", scales}}});
  const Bindings of_three = attention.bind({.buffers = {{"k_scales", three}}});
  const Tensor from = random_tensor({1, 2, 5, 24}, 1), to = Tensor::zeros(f8e4m3, {1, 2, 5, 24});
  const auto quantise = [&](const TensorView& source, const TensorView& stored, Operand which,
                            const Bindings& bound) {
    return refusal([&] { attention.quantise(source, stored, nullptr, which, bound); });
  };
  CHECK(quantise(from, to, Operand::k, bindings).empty());
  CHECK(quantise(from, to, Operand::k, of_three) ==
        "buffer \"k_scales\" has size 3 in dimension 0, but num_kv_heads of this call is 2");
  CHECK(quantise(from, to, Operand::k, {}).starts_with("bind() was not called"));
  CHECK(quantise(from, to, Operand::q, bindings) ==
        "q is bf16 in this spec; quantise stores one-byte dtypes");
  CHECK(quantise(to, to, Operand::k, bindings) == "from is f8e4m3; it must be f32, f16 or bf16");
  CHECK(quantise(from, from, Operand::k, bindings) == "to is f32, but the spec says f8e4m3");
  const Tensor few = random_tensor({1, 2, 4, 24}, 1), narrow = random_tensor({1, 2, 5, 16}, 1);
  CHECK(quantise(few, to, Operand::k, bindings) == "to has kv_len 5, but that of from is 4");
  CHECK(quantise(narrow, to, Operand::k, bindings) ==
        "from has head_dim 16, but the spec's head_dim is 24");
  TensorView shared = to.view();
  shared.strides[2] = 0;
  CHECK(quantise(from, shared, Operand::k, bindings).starts_with("to overlaps itself"));
  TensorView inside = to.view();
  inside.data = from.view().data;
  CHECK(quantise(from, inside, Operand::k, bindings) == "to overlaps from in memory");
  const Shape shape = {.num_q_heads = 2, .num_kv_heads = 2, .q_len = 1, .kv_len = 6};
  CHECK(refusal([&] { attention.quantise(from, to, shape, Operand::k, bindings); }) ==
        "to has kv_len 5, but that of the shape is 6");

  const Attention without(spec, {.device = Device::cpu()});
  CHECK(refusal([&] { without.quantise(from, to, nullptr, Operand::k, bindings); }) ==
        "this Attention has no kernel that quantises");
  CHECK(refusal([&] { quantising({.dtype = f16, .head_dim = 24}, Device::cpu()); }) ==
        "quantise stores numbers of one byte, and k and v are f16");
  Spec packed = quantised_spec(f8e4m3, Layout::packed, Layout::packed);
  CHECK(refusal([&] {
          quantising(packed, Device::cpu()).quantise(from, to, shape, Operand::k, bindings);
        }) == "the spec is packed, and quantise was given a shape");
}

TEST_CASE("quantise: k and v of batch 1 are for all sequences, unless a scale tells them apart") {
  Spec spec = quantised_spec(f8e4m3, Layout::bhsd, Layout::bhsd);
  spec.v_scale = "0.5f + b";
  const Attention attention = quantising(spec, Device::cpu());
  Tensor scales = scales_of_heads(2);
  const Bindings bindings = attention.bind({.buffers = {{"k_scales", scales}}});
  const Tensor from = random_tensor({1, 2, 5, 24}, 1), to = Tensor::zeros(f8e4m3, {1, 2, 5, 24});
  const Shape shape = {.batch = 3, .num_q_heads = 2, .num_kv_heads = 2, .q_len = 1, .kv_len = 5};
  const auto quantise = [&](Operand which) {
    return refusal([&] { attention.quantise(from, to, shape, which, bindings); });
  };
  CHECK(quantise(Operand::k).empty());
  CHECK(quantise(Operand::v) == "to has batch 1 for 3 sequences, but v_scale names b");
}

}  // namespace tilewright
