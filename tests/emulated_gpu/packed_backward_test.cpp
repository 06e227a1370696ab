// The portable backward kernels over packed sequences.

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/packed_gradients.hpp"

using namespace tilewright;
using namespace tilewright::packed_calls;

namespace {

const std::vector<Lengths> kLengths = {{1, 43}, {50, 50}, {0, 9}, {35, 18}, {7, 0}, {21, 70}};

Batch batch_of(int dim) {
  Batch batch{.lengths = kLengths, .heads = 4, .kv_heads = 2, .dim = dim};
  batch.make();
  return batch;
}

Spec spec_of(DType dtype, int dim, std::vector<std::string> gradients) {
  return {.dtype = dtype,
          .head_dim = dim,
          .layout = Layout::packed,
          .mask_mod = "q_idx >= kv_idx || (kv_idx > 60 && h != 2)",
          .block = {32, 48},
          .outputs = {.lse = true},
          .gradients = std::move(gradients)};
}

void check(GradientCase one, float share) {
  PackedGradients calls(one, Device::parse("cuda"));
  const Gradients got = calls.run();
  calls.compare(got, calls.dense(), share);
  if (!one.deterministic) return;
  const Gradients again = calls.run();
  for (const auto& [name, tensor] : got.named) {
    CHECK(std::memcmp(tensor.data(), again.named.at(name).data(),
                      static_cast<std::size_t>(tensor.view().bytes())) == 0);
  }
}

// A read of each pattern of an index.
Spec with_buffers(Spec spec) {
  spec.score_mod =
      "cap * tanh(score / cap) * gain[h] + bias[kv_idx - q_idx + 75] + column[kv_idx] * "
      "row[q_idx + 20] + own[q_idx * 2 + kv_idx + 40]";
  spec.buffers = {{"gain", {.dtype = f32, .shape = {std::int64_t{4}}}},
                  {"bias", {.dtype = f32, .shape = {std::int64_t{150}}}},
                  {"column", {.dtype = f32, .shape = {std::int64_t{70}}}},
                  {"row", {.dtype = f32, .shape = {std::int64_t{90}}}},
                  {"own", {.dtype = f32, .shape = {std::int64_t{260}}}}};
  spec.scalars = {{"cap", {.dtype = f32}}};
  for (const char* const name : {"gain", "bias", "column", "row", "own", "cap"}) {
    spec.gradients.emplace_back(name);
  }
  return spec;
}

}  // namespace

TEST_CASE("emulated GPU: gradients of packed sequences on tensor cores", "[every-kind]") {
  check({.spec = with_buffers(spec_of(bf16, 24, {"q", "k", "v"})),
         .batch = batch_of(24),
         .deterministic = true},
        0.02f);
}

TEST_CASE("emulated GPU: gradients of packed sequences in float32", "[every-kind]") {
  check({.spec = with_buffers(spec_of(f32, 24, {"q", "k", "v"})), .batch = batch_of(24)}, 2e-4f);
}

TEST_CASE("emulated GPU: packed gradients of sequences that share rows of K") {
  Batch batch{.lengths = {{20, 70}, {50, 50}, {21, 60}}, .heads = 4, .kv_heads = 2, .dim = 24};
  batch.make();
  batch.kv_begins[1] = batch.kv_begins[0] + 11;
  batch.kv_begins[2] = batch.kv_begins[0] + 3;
  GradientCase one{.spec = spec_of(f32, 24, {"k", "v"}), .batch = std::move(batch)};
  check(std::move(one), 2e-4f);
}

TEST_CASE("emulated GPU: packed gradients without a mask") {
  Spec spec = spec_of(f16, 136, {"q", "k", "v"});
  spec.mask_mod.clear();
  check({.spec = spec, .batch = batch_of(136), .has_dlse = false}, 0.02f);
}

TEST_CASE("emulated GPU: packed gradients by lists over positions") {
  Spec spec = spec_of(f32, 24, {"q", "k", "v"});
  spec.mask_mod = "q_idx >= kv_idx && kv_idx % 7 != 3";
  const BlockMask positions = lists_of_mask(spec, 96);
  Batch batch{.lengths = {{1, 43}, {50, 50}, {35, 66}}, .heads = 4, .kv_heads = 2, .dim = 24};
  batch.make();
  check({.spec = spec, .batch = std::move(batch), .positions = &positions}, 2e-4f);
}

TEST_CASE("emulated GPU: packed gradients beside a decode kernel", "[every-kind]") {
  Batch batch{.lengths = {{1, 43}, {2, 50}, {35, 66}}, .heads = 4, .kv_heads = 2, .dim = 64};
  batch.make();
  check({.spec = spec_of(bf16, 64, {"q", "k", "v"}), .batch = std::move(batch)}, 0.02f);
}

TEST_CASE("emulated GPU: NaN of a packed sequence reaches no rows of K that others have") {
  const std::vector<Lengths> lengths = {{20, 25}, {9, 13}, {30, 41}};
  const auto batch_without_gaps = [&] {
    Batch batch{.lengths = lengths, .heads = 4, .kv_heads = 2, .dim = 24, .gap = 0};
    batch.make();
    return batch;
  };
  for (const DType dtype : {bf16, f32}) {
    GradientCase sound{.spec = spec_of(dtype, 24, {"q", "k", "v"}), .batch = batch_without_gaps()};
    GradientCase spoilt{.spec = sound.spec, .batch = batch_without_gaps(), .spoilt = 1};
    PackedGradients first(sound, Device::parse("cuda")), second(spoilt, Device::parse("cuda"));
    const Gradients one = first.run(), other = second.run();
    const int begin = sound.batch.kv_begins[1], end = begin + lengths[1].kv;
    const int total = static_cast<int>(sound.batch.k.shape()[0]);
    for (const auto of : {&Gradients::dk, &Gradients::dv}) {
      CAPTURE(dtype);
      CHECK(PackedGradients::have_equal_rows(one.*of, other.*of, 0, begin));
      CHECK(PackedGradients::have_equal_rows(one.*of, other.*of, end, total - end));
      CHECK_FALSE(PackedGradients::have_equal_rows(one.*of, other.*of, begin, lengths[1].kv));
    }
  }
}
