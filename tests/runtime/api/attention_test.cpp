#include "runtime/api/attention.hpp"

#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "runtime/call/mask_placement.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

// Float tensors of one call, filled with a fixed pattern.
struct Call {
  std::int64_t batch = 1, q_heads = 2, kv_heads = 1, q_len = 70, kv_len = 90, width = 16;
  Tensor q = Tensor::zeros(f32, {batch, q_heads, q_len, width});
  Tensor k = Tensor::zeros(f32, {batch, kv_heads, kv_len, width});
  Tensor v = Tensor::zeros(f32, {batch, kv_heads, kv_len, width});
  Tensor out = Tensor::zeros(f32, {batch, q_heads, q_len, width});
  Tensor lse = Tensor::zeros(f32, {batch, q_heads, q_len});

  Call() {
    unsigned state = 1;
    for (Tensor* tensor : {&q, &k, &v}) {
      for (std::int64_t i = 0; i < tensor->numel(); ++i) {
        state = state * 1664525u + 1013904223u;
        static_cast<float*>(tensor->data())[i] = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
      }
    }
  }

  Shape shape() const {
    return {.batch = batch,
            .num_q_heads = q_heads,
            .num_kv_heads = kv_heads,
            .q_len = q_len,
            .kv_len = kv_len};
  }
  ForwardTensors tensors() const { return {.q = q, .k = k, .v = v, .out = out}; }
  float out_at(std::int64_t h, std::int64_t row, std::int64_t column) const {
    return static_cast<const float*>(out.data())[(h * q_len + row) * width + column];
  }

  // One element of causal attention, in double.
  double causal_reference(std::int64_t h, std::int64_t row, std::int64_t column) const {
    const auto* q_data = static_cast<const float*>(q.data()) + (h * q_len + row) * width;
    const auto* k_data = static_cast<const float*>(k.data());
    const auto* v_data = static_cast<const float*>(v.data());
    double numerator = 0, denominator = 0;
    for (std::int64_t kv = 0; kv <= row && kv < kv_len; ++kv) {
      double score = 0;
      for (std::int64_t d = 0; d < width; ++d) score += double(q_data[d]) * k_data[kv * width + d];
      const double weight = std::exp(score / 4.0);
      numerator += weight * v_data[kv * width + column];
      denominator += weight;
    }
    return numerator / denominator;
  }
};

const Spec kCausal{.dtype = f32, .head_dim = 16, .mask_mod = "q_idx >= kv_idx"};

const Attention& causal() {
  static const Attention attention(kCausal);
  return attention;
}

std::string refusal(const Attention& attention, const ForwardTensors& tensors) {
  try {
    attention.forward(tensors);
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + ": " + error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("attention: a causal call gives what its definition says") {
  const Call call;
  const BlockMask mask = causal().block_mask(call.shape());
  causal().forward(call.tensors(), mask);
  for (const std::int64_t row : {0, 1, 63, 64, 69}) {
    for (const std::int64_t h : {0, 1}) {
      REQUIRE_THAT(call.out_at(h, row, 5),
                   Catch::Matchers::WithinAbs(call.causal_reference(h, row, 5), 2e-6));
    }
  }
}

TEST_CASE("attention: a mask that names neither b nor h is made once for all of them") {
  Call call;
  const BlockMask mask = causal().block_mask(
      {.batch = 3, .num_q_heads = 8, .num_kv_heads = 2, .q_len = 300, .kv_len = 300});
  REQUIRE(mask.batch() == 1);
  REQUIRE(mask.heads() == 1);
  REQUIRE(mask.partial_tiles() == 3);
  REQUIRE(mask.full_tiles() == 3);
  REQUIRE(mask.path() == "proved");
}

TEST_CASE("attention: a capacity that no block mask can have is refused") {
  const auto with_capacity = [](std::int64_t capacity) {
    return causal().block_mask({.q_len = 64, .kv_len = 64}, {}, {.capacity = capacity});
  };
  REQUIRE_NOTHROW(with_capacity(0));
  REQUIRE_THROWS_WITH(with_capacity(-1), ContainsSubstring("capacity of a block mask is -1"));
  REQUIRE_THROWS_WITH(with_capacity(std::int64_t{1} << 62), ContainsSubstring("hint: "));
}

TEST_CASE("attention: a block mask with more rows of tiles than can be counted is refused") {
  Spec spec = kCausal;
  spec.mask_mod = "b + h + q_idx >= kv_idx";
  const Attention attention(spec, {.masks_only = true});
  const auto refusal_of = [&](std::int64_t batch, std::int64_t heads, std::int64_t q_len) {
    try {
      attention.block_mask({.batch = batch, .num_q_heads = heads, .q_len = q_len, .kv_len = 1});
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  const std::int64_t most = 2147483647;
  REQUIRE(refusal_of(65536, 65536, 1) == ErrorCode::tensor);
  REQUIRE(refusal_of(most, most, most - 1024) == ErrorCode::tensor);
  REQUIRE(refusal_of(most, 2, 1) == ErrorCode::tensor);
}

TEST_CASE("attention: a mask that names h or b is made for each of them") {
  Spec spec = kCausal;
  spec.mask_mod = "h == 0 || b == 1 || q_idx >= kv_idx";
  const Attention attention(spec);
  const BlockMask mask = attention.block_mask(
      {.batch = 2, .num_q_heads = 3, .num_kv_heads = 1, .q_len = 256, .kv_len = 256});
  REQUIRE(mask.batch() == 2);
  REQUIRE(mask.heads() == 3);
  REQUIRE(mask.row(0, 0, 0)[1] == BlockMask::Tile::full);
  REQUIRE(mask.row(0, 1, 0)[1] == BlockMask::Tile::empty);
  REQUIRE(mask.row(1, 2, 0)[1] == BlockMask::Tile::full);
}

TEST_CASE(
    "attention: a ragged tile is judged by its elements inside the lengths, so it may be full") {
  Spec spec = kCausal;
  spec.mask_mod = "kv_idx < 200";
  const BlockMask mask = Attention(spec).block_mask({.q_len = 1, .kv_len = 150});
  REQUIRE(mask.full_tiles() == 2);
  REQUIRE(mask.partial_tiles() == 0);
}

TEST_CASE("attention: a call on a CPU reads the lists of a GPU's mask with a capacity once") {
  class CountedLists final : public DeviceTileLists {
   public:
    CountedLists() : DeviceTileLists(1) {}
    TileLists to_host() const override {
      ++times_read;
      return {
          .row_offsets = {0, 1}, .indices = {0}, .full_row_offsets = {0, 0}, .full_indices = {}};
    }
    std::optional<TileLists> transposed_to_host() const override { return std::nullopt; }
    TileCounts counts() const override { return {}; }
    mutable std::atomic<int> times_read = 0;
  };
  const Call call;
  MaskFingerprint fingerprint = causal().mask_fingerprint(call.shape());
  fingerprint.shape.num_q_heads = fingerprint.shape.num_kv_heads = 1;
  const auto lists = std::make_shared<CountedLists>();
  causal().forward(call.tensors(), BlockMask(fingerprint, lists, std::nullopt, "exact"));
  REQUIRE(lists->times_read == 1);
  REQUIRE_THAT(call.out_at(1, 69, 5),
               Catch::Matchers::WithinAbs(call.causal_reference(1, 69, 5), 2e-6));
}

TEST_CASE("attention: a mask built for another call is refused before anything is written") {
  Call call;
  const BlockMask mask =
      causal().block_mask({.num_q_heads = 2, .num_kv_heads = 1, .q_len = 70, .kv_len = 91});
  REQUIRE_THROWS_WITH(causal().forward(call.tensors(), mask),
                      ContainsSubstring("kv_len 91, but this call has 90"));
  REQUIRE(call.out_at(0, 0, 0) == 0.0f);
}

TEST_CASE("attention: a mask built for other heads is refused where mask_mod depends on them") {
  Call call;
  const auto outcome = [&call](const char* mask_mod, Shape built_for) {
    Spec spec = kCausal;
    spec.mask_mod = mask_mod;
    const Attention attention(spec);
    built_for.q_len = call.q_len;
    built_for.kv_len = call.kv_len;
    try {
      attention.forward(call.tensors(), attention.block_mask(built_for));
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  CHECK_THAT(outcome("h == 0 || q_idx >= kv_idx", {}),
             ContainsSubstring("num_q_heads 1, but this call has 2"));
  CHECK_THAT(outcome("h_kv == 0 && q_idx >= kv_idx", {.num_q_heads = 2, .num_kv_heads = 2}),
             ContainsSubstring("num_kv_heads 2, but this call has 1"));
  CHECK_THAT(outcome("num_q_heads == 1 || q_idx >= kv_idx", {}),
             ContainsSubstring("num_q_heads 1, but this call has 2"));
  CHECK_THAT(outcome("b == 0 || q_idx >= kv_idx", {.batch = 2}),
             ContainsSubstring("batch 2, but this call has 1"));
  CHECK(outcome("q_idx >= kv_idx", {.batch = 3, .num_q_heads = 8, .num_kv_heads = 4}) ==
        "accepted");
}

TEST_CASE("attention: a spec with mask_mod asks for its block mask, one without refuses any") {
  const Call call;
  REQUIRE_THAT(refusal(causal(), call.tensors()),
               ContainsSubstring("block_mask: ") && ContainsSubstring("attention.block_mask("));
  const Attention plain({.dtype = f32, .head_dim = 16});
  const BlockMask mask = causal().block_mask(call.shape());
  REQUIRE_THROWS_WITH(plain.forward(call.tensors(), mask),
                      ContainsSubstring("the spec has no mask_mod"));
  REQUIRE_THROWS_WITH(plain.block_mask(call.shape()), ContainsSubstring("has no block mask"));
}

TEST_CASE(
    "attention: tensors that do not fit are refused by name, with what was given and wanted") {
  static const Attention plain({.dtype = f32, .head_dim = 16});
  const Call call;
  const auto refuse_if = [&](const auto& change) {
    ForwardTensors tensors = call.tensors();
    change(tensors);
    return refusal(plain, tensors);
  };
  REQUIRE(refusal(plain, call.tensors()) == "accepted");
  REQUIRE_THAT(refuse_if([](ForwardTensors& t) { t.q.rank = 3; }),
               ContainsSubstring("q has rank 3"));
  REQUIRE_THAT(refuse_if([](ForwardTensors& t) { t.k.dtype = f16; }),
               ContainsSubstring("k is f16, but the spec says f32"));
  REQUIRE_THAT(refuse_if([](ForwardTensors& t) { t.v.data = nullptr; }),
               ContainsSubstring("v has no data"));
  REQUIRE_THAT(refuse_if([](ForwardTensors& t) { t.k.shape[3] = 8; }),
               ContainsSubstring("k has head_dim 8"));
  REQUIRE_THAT(refuse_if([](ForwardTensors& t) { t.v.shape[2] = 80; }),
               ContainsSubstring("v has kv_len 80"));
  REQUIRE_THAT(refuse_if([](ForwardTensors& t) { t.q.shape[2] = 0; }),
               ContainsSubstring("q is empty"));
  REQUIRE_THAT(refuse_if([](ForwardTensors& t) { t.q.strides[3] = 2; }),
               ContainsSubstring("must be contiguous"));
  REQUIRE_THAT(refuse_if([](ForwardTensors& t) { t.out.strides[2] = 0; }),
               ContainsSubstring("out overlaps itself: elements [0, 0, 0, 0] and [0, 0, 1, 0]"));
  REQUIRE_THAT(refuse_if([](ForwardTensors& t) { t.k.shape[1] = t.v.shape[1] = 3; }),
               ContainsSubstring("2 query heads cannot be shared by 3 kv heads"));
  REQUIRE_THAT(refuse_if([](ForwardTensors& t) { t.k.shape[0] = 2; }),
               ContainsSubstring("k has batch 2"));
  REQUIRE_THAT(refuse_if([&](ForwardTensors& t) { t.lse = call.lse; }),
               ContainsSubstring("lse was given, but"));
  REQUIRE_THAT(refuse_if([](ForwardTensors& t) { t.q.data = static_cast<char*>(t.q.data) + 2; }),
               ContainsSubstring("does not start at a multiple"));
  REQUIRE_THAT(refuse_if([](ForwardTensors& t) { t.q.rank = -1; }),
               ContainsSubstring("q has rank -1"));
  REQUIRE_THAT(refuse_if([](ForwardTensors& t) { t.k.strides[1] = -(std::int64_t{1} << 62); }),
               ContainsSubstring("k has stride -4611686018427387904 in dimension 1"));
}

TEST_CASE("attention: a spec that outputs lse wants it, and a row with nothing kept has -inf") {
  Call call;
  const Attention attention(
      {.dtype = f32, .head_dim = 16, .mask_mod = "q_idx > kv_idx", .outputs = {.lse = true}});
  const BlockMask mask = attention.block_mask(call.shape());
  REQUIRE_THROWS_WITH(attention.forward(call.tensors(), mask), ContainsSubstring("lse is missing"));
  ForwardTensors tensors = call.tensors();
  tensors.lse = call.lse;
  tensors.lse->data = static_cast<char*>(tensors.lse->data) + 2;
  REQUIRE_THROWS_WITH(attention.forward(tensors, mask),
                      ContainsSubstring("lse does not start at a multiple"));
  tensors.lse = call.lse;
  attention.forward(tensors, mask);
  const auto* lse = static_cast<const float*>(call.lse.data());
  REQUIRE(lse[0] == -std::numeric_limits<float>::infinity());
  REQUIRE(std::isfinite(lse[1]));
  REQUIRE(call.out_at(0, 0, 0) == 0.0f);
}

TEST_CASE("attention: a snippet that does not compile is reported at its own line and column") {
  try {
    const Attention attention(
        {.dtype = f32,
         .head_dim = 16,
         .score_mod = "float slope = 0.5;\nreturn score + slop * (kv_idx - q_idx);"});
    FAIL("it compiled");
  } catch (const Error& error) {
    REQUIRE(error.code() == ErrorCode::snippet);
    REQUIRE(error.place().has_value());
    REQUIRE(error.place()->file == "score_mod");
    REQUIRE(error.place()->line == 2);
    REQUIRE(error.place()->column == 16);
  }
}

TEST_CASE("attention: scalars with defaults need no bindings, and a new value never recompiles") {
  Spec spec = kCausal;
  spec.mask_mod = "q_idx - kv_idx < window && q_idx >= kv_idx";
  spec.scalars = {{"window", {.dtype = i32, .default_value = 4.0}}};
  const Attention attention(spec);
  const Call call;
  const BlockMask mask = attention.block_mask(call.shape());
  REQUIRE_NOTHROW(attention.forward(call.tensors(), mask));
  const Bindings wider = attention.bind({.scalars = {{"window", 40}}});
  REQUIRE_THROWS_WITH(attention.forward(call.tensors(), mask, wider),
                      ContainsSubstring("window 4, but this call has 40"));
  REQUIRE_NOTHROW(
      attention.forward(call.tensors(), attention.block_mask(call.shape(), wider), wider));
}

TEST_CASE("attention: many threads share one object and get the same bits") {
  const Call first;
  const BlockMask mask = causal().block_mask(first.shape());
  causal().forward(first.tensors(), mask);
  std::vector<Call> calls(4);
  {
    std::vector<std::jthread> threads;
    for (Call& call : calls) {
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) causal().forward(call.tensors(), mask);
      });
    }
  }
  for (const Call& call : calls) {
    REQUIRE(std::equal(static_cast<const float*>(first.out.data()),
                       static_cast<const float*>(first.out.data()) + first.out.numel(),
                       static_cast<const float*>(call.out.data())));
  }
}

TEST_CASE("attention: builds tell how each kernel came to be") {
  const std::vector<KernelBuild> builds = causal().builds();
  REQUIRE(builds.size() == 2);
  REQUIRE(builds[0].kernel == "forward_masked");
  REQUIRE(builds[1].kernel == "mask_proved");
  REQUIRE(builds[0].bytes > 0);
}
