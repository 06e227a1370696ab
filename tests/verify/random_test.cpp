#include "verify/random.hpp"

#include <cmath>

#include "base/error.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "verify/random_inputs.hpp"

using namespace tilewright;
using namespace tilewright::verify;

namespace {

Spec document_spec() {
  return {.name = "documents",
          .dtype = bf16,
          .head_dim = 16,
          .v_head_dim = 24,
          .layout = Layout::bshd,
          .kv_layout = Layout::bhsd,
          .kv_dtype = f16,
          .mask_mod = "doc(b, q_idx) == doc(b, kv_idx)",
          .buffers = {{"doc",
                       {.dtype = i32,
                        .shape = {NamedDim::batch, NamedDim::kv_len},
                        .range = {{2, 9}},
                        .sorted = true}},
                      {"table", {.dtype = f32, .shape = {std::int64_t{5}, FreeDim{}}}}},
          .scalars = {{"cap", {.dtype = f32, .default_value = 50.0}}, {"window", {.dtype = i32}}}};
}

bool same_elements(const Tensor& a, const Tensor& b) {
  if (a.numel() != b.numel()) return false;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    if (read_element(a.data(), a.dtype(), i) != read_element(b.data(), b.dtype(), i)) return false;
  }
  return true;
}

}  // namespace

// The values come from a second implementation, in Python.
TEST_CASE("random: the sequence is pinned, so that a seed means the same on every platform") {
  Random random(42, "q");
  CHECK(random.next() == 0x6404f8b7442c4b26u);
  CHECK(random.next() == 0xb090921ebce49cfeu);
  CHECK(Random(42, "q").normal() == 0x1.936b0a6eb9e80p-3);
  CHECK(Random(42, "k").normal() == -0x1.52a57dcb8f300p-4);
}

TEST_CASE("random: normal numbers have mean 0, variance 1 and nearly the normal's fourth moment") {
  Random random(1, "moments");
  double sum = 0, squares = 0, fourth = 0, greatest = 0;
  const int count = 1 << 20;
  for (int i = 0; i < count; ++i) {
    const double value = random.normal();
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
    greatest = std::max(greatest, std::fabs(value));
  }
  CHECK(std::fabs(sum / count) < 0.004);
  CHECK(std::fabs(squares / count - 1) < 0.006);
  CHECK(std::fabs(fourth / count - 2.9) < 0.05);  // of twelve uniform numbers: 3 - 6 / (5 * 12)
  CHECK(greatest > 4.2);
  CHECK(greatest < 6);
}

TEST_CASE("random: integers reach both ends of their range and nothing else") {
  Random random(1, "integers");
  bool low = false, high = false;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t value = random.integer(-3, 4);
    REQUIRE(value >= -3);
    REQUIRE(value <= 4);
    low = low || value == -3;
    high = high || value == 4;
  }
  CHECK(low);
  CHECK(high);
}

TEST_CASE("random inputs: tensors have the shape of their layout and the spec's dtypes") {
  const Shape shape{.batch = 2, .num_q_heads = 6, .num_kv_heads = 3, .q_len = 7, .kv_len = 11};
  const Inputs inputs = random_inputs(document_spec(), shape, 1, {.broadcast_kv = true});
  CHECK(inputs.q.describe() == "bf16 [2, 7, 6, 16]");
  CHECK(inputs.k.describe() == "f16 [1, 3, 11, 16]");
  CHECK(inputs.v.describe() == "f16 [1, 3, 11, 24]");
  CHECK(inputs.buffers.at("doc").describe() == "i32 [2, 11]");
  CHECK(inputs.buffers.at("table").describe() == "f32 [5, 64]");
  const Inputs broadcast = random_inputs(document_spec(), shape, 1, {.broadcast_buffers = true});
  CHECK(broadcast.buffers.at("doc").describe() == "i32 [1, 11]");
}

TEST_CASE("random inputs: buffers keep to their range and rise where they are sorted") {
  const Shape shape{.batch = 3, .q_len = 50, .kv_len = 50};
  const Inputs inputs = random_inputs(document_spec(), shape, 1);
  const Tensor& doc = inputs.buffers.at("doc");
  for (std::int64_t i = 0; i < doc.numel(); ++i) {
    const double value = read_element(doc.data(), i32, i);
    REQUIRE(value >= 2);
    REQUIRE(value <= 9);
    if (i % 50 != 0) REQUIRE(value >= read_element(doc.data(), i32, i - 1));
  }
  CHECK(read_element(doc.data(), i32, 0) < read_element(doc.data(), i32, 49));
  CHECK(inputs.scalars.at("cap") == 50.0);
  CHECK(inputs.scalars.at("window") >= 1);
  CHECK(inputs.scalars.at("window") <= 25);
}

TEST_CASE("random inputs: the ends of a wide range of integers are among a buffer's contents") {
  Spec spec;
  spec.buffers["slot"] = {
      .dtype = i32, .shape = {NamedDim::batch, NamedDim::kv_len}, .range = {{-100'000, 100'000}}};
  spec.buffers["start"] = {.dtype = i32, .shape = {NamedDim::batch}, .range = {{0, 99}}};
  const Shape shape{.batch = 2, .q_len = 1, .kv_len = 40};
  const Inputs inputs = random_inputs(spec, shape, 1);
  const Tensor& slot = inputs.buffers.at("slot");
  std::int64_t low = 0, high = 0;
  for (std::int64_t i = 0; i < slot.numel(); ++i) {
    const double value = read_element(slot.data(), i32, i);
    CHECK(std::fabs(value) <= 100'000);
    low += value == -100'000 ? 1 : 0;
    high += value == 100'000 ? 1 : 0;
  }
  CHECK(low >= 2);
  CHECK(high >= 2);
  CHECK(low + high <= 8);
  bool ends = false, between = false;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Inputs one = random_inputs(spec, shape, seed);
    const double value = read_element(one.buffers.at("start").data(), i32, 0);
    (value == 0 || value == 99 ? ends : between) = true;
  }
  CHECK(ends);
  CHECK(between);
}

TEST_CASE(
    "random inputs: a seed repeats, another seed differs, another buffer changes nothing else") {
  const Shape shape{.batch = 2, .q_len = 20, .kv_len = 30};
  Spec spec = document_spec();
  const Inputs first = random_inputs(spec, shape, 7);
  CHECK(same_elements(first.q, random_inputs(spec, shape, 7).q));
  CHECK_FALSE(same_elements(first.q, random_inputs(spec, shape, 8).q));
  CHECK_FALSE(same_elements(first.k, first.v));
  spec.buffers["another"] = {.dtype = f32, .shape = {std::int64_t{3}}};
  const Inputs second = random_inputs(spec, shape, 7);
  CHECK(same_elements(first.v, second.v));
  CHECK(same_elements(first.buffers.at("table"), second.buffers.at("table")));
}

TEST_CASE("random inputs: a shape that no kernel can run is refused") {
  CHECK_THROWS_AS(random_inputs(document_spec(), {.q_len = 0, .kv_len = 1}, 1), Error);
}
