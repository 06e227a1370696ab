// Hopper's backward kernels over packed sequences.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/emulated_gpu/hopper_backward_call.hpp"
#include "tests/support/packed_gradients.hpp"

using namespace tilewright;
using namespace tilewright::packed_calls;

namespace {

// A tile, one row more and one less; a row alone; none.
const std::vector<Lengths> kLengths = {{1, 43},   {63, 127}, {0, 9},   {65, 129},
                                       {128, 64}, {7, 0},    {1, 128}, {210, 150}};
const std::string kCausal = "q_idx >= kv_idx";

Batch batch_of(int dim, std::vector<Lengths> lengths = kLengths, int gap = 3) {
  Batch batch{.lengths = std::move(lengths), .heads = 4, .kv_heads = 2, .dim = dim, .gap = gap};
  batch.make();
  return batch;
}

Spec spec_of(DType dtype, int dim, std::string mask_mod = "", std::string score_mod = "") {
  return {.dtype = dtype,
          .head_dim = dim,
          .layout = Layout::packed,
          .score_mod = std::move(score_mod),
          .mask_mod = std::move(mask_mod),
          .outputs = {.lse = true},
          .gradients = {"q", "k", "v"}};
}

GradientCase case_of(const Spec& spec, Batch batch) {
  GradientCase one;
  one.spec = spec;
  one.batch = std::move(batch);
  return one;
}

constexpr float kShare = 0.02f;
// A term p (dp - delta) of a buffer's gradient has an error of p |dp| 2^-8, as the products take 16
// bits. Terms cancel: the sum of slopes over a few hundred of them is some 30 times smaller than
// the sum of their sizes, so 2^-8 * 30 of it.
constexpr float kShareOfSums = 0.1f;

void check(GradientCase one) {
  CHECK(test::takes_maps(one.spec));
  PackedGradients calls(one, Device::parse("cuda"));
  calls.compare(calls.run(), calls.dense(), kShare, kShareOfSums);
}

void check(const Spec& spec) {
  check(case_of(spec, batch_of(static_cast<int>(spec.head_dim))));
}

// Whether a call with a fault is right after all.
bool is_right(const test::Fault& fault, GradientCase one) {
  one.templates = std::make_shared<test::FaultyTemplates>(fault);
  try {
    PackedGradients calls(one, Device::parse("cuda"));
    return PackedGradients::agree(calls.run(), calls.dense(), kShare);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::device) throw;
    return false;  // the emulator ended the kernel
  }
}

}  // namespace

TEST_CASE("emulated GPU: packed gradients on Hopper", "[every-kind]") {
  check(spec_of(bf16, 128));
  check(spec_of(f16, 64));
}

TEST_CASE("emulated GPU: packed gradients on Hopper under a causal mask", "[every-kind]") {
  check(spec_of(bf16, 64, kCausal));
  check(spec_of(bf16, 128, kCausal));
}

TEST_CASE("emulated GPU: packed gradients on Hopper with values by the difference of indices") {
  for (const std::string& mask : {std::string(), kCausal}) {
    Spec spec = spec_of(bf16, mask.empty() ? 128 : 64, mask,
                        "score + 2.0 * log(3.0 + abs(kv_idx - q_idx))");
    CHECK(SpecFacts(spec).difference.has_value());
    check(spec);
  }
}

TEST_CASE("emulated GPU: packed gradients on Hopper of other head dims") {
  check(spec_of(bf16, 96, kCausal));
  check(spec_of(f16, 40));
  check(spec_of(bf16, 192, kCausal));
  check(spec_of(f16, 256));
}

TEST_CASE("emulated GPU: packed gradients on Hopper of sequences without lengths of columns") {
  const std::vector<Lengths> lengths = {{1, 43}, {0, 9}, {65, 129}, {7, 0}, {128, 64}, {3, 70}};
  for (const std::string& mask : {std::string(), kCausal}) {
    GradientCase one = case_of(spec_of(bf16, 128, mask), batch_of(128, lengths, 0));
    one.has_kv_len = false;
    one.rebuilds = true;
    check(std::move(one));
  }
}

TEST_CASE("emulated GPU: packed gradients on Hopper by masks that differ between heads") {
  // Rows of tiles are of 192 or 128 rows, and tiles of 128: some are of two.
  check(spec_of(bf16, 64, "q_idx + 20 * h >= kv_idx && (q_idx < 100 || kv_idx > 30)"));
  check(spec_of(f16, 128, "abs(q_idx - kv_idx) < 40 && q_idx % 7 != 3"));
}

TEST_CASE("emulated GPU: packed gradients on Hopper with a score_mod and offsets") {
  GradientCase one = case_of(spec_of(f16, 128, kCausal, "4.0 * tanh(score / 4.0)"), batch_of(128));
  one.q_offsets = {0, 5, 0, -3, 20, 0, 1, 100};
  check(std::move(one));
}

TEST_CASE("emulated GPU: packed gradients of buffers on Hopper", "[every-kind]") {
  for (const int dim : {64, 128}) {
    Spec spec = spec_of(bf16, dim, kCausal,
                        "score + slopes[h] * (kv_idx - q_idx) * 0.01 + column[kv_idx] + "
                        "bias[clamp(kv_idx - q_idx, -90, 90) + 90]");
    spec.buffers = {{"slopes", {.dtype = f32, .shape = {std::int64_t{4}}}},
                    {"column", {.dtype = f32, .shape = {std::int64_t{150}}}},
                    {"bias", {.dtype = f32, .shape = {std::int64_t{181}}}}};
    for (const char* const name : {"slopes", "column", "bias"}) spec.gradients.emplace_back(name);
    check(spec);
  }
}

TEST_CASE("emulated GPU: packed gradients on Hopper of sequences that share rows of K",
          "[every-kind]") {
  Batch batch = batch_of(128, {{20, 70}, {50, 50}, {21, 60}});
  batch.kv_begins[1] = batch.kv_begins[0] + 11;
  batch.kv_begins[2] = batch.kv_begins[0] + 3;
  Spec spec = spec_of(bf16, 128, kCausal, "score + slopes[h] * (kv_idx - q_idx) * 0.1");
  spec.buffers = {{"slopes", {.dtype = f32, .shape = {std::int64_t{4}}}}};
  spec.gradients.emplace_back("slopes");
  check(case_of(spec, std::move(batch)));
}

TEST_CASE("emulated GPU: packed gradients on Hopper of sequences in another order than their K") {
  Batch batch = batch_of(64, {{70, 140}, {50, 50}, {21, 60}});
  std::swap(batch.kv_begins[0], batch.kv_begins[2]);
  batch.kv_begins[0] = 60;
  batch.kv_begins[1] = 2;
  // Poison lies between the sequences as batch_of() had them.
  for (Tensor* tensor : {&batch.k, &batch.v}) *tensor = random_tensor({290, 2, 64}, 4);
  batch.kv_begins[2] = 215;
  check(case_of(spec_of(bf16, 64, kCausal), std::move(batch)));
}

TEST_CASE("emulated GPU: NaN of a packed sequence reaches no other on Hopper", "[every-kind]") {
  for (const std::string& mask : {std::string(), kCausal}) {
    const std::vector<Lengths> lengths = {{70, 140}, {66, 90}, {60, 131}};
    GradientCase sound = case_of(spec_of(bf16, 128, mask), batch_of(128, lengths, 0));
    GradientCase spoilt = case_of(sound.spec, batch_of(128, lengths, 0));
    spoilt.spoilt = 1;
    PackedGradients first(sound, Device::parse("cuda")), second(spoilt, Device::parse("cuda"));
    const Gradients one = first.run(), other = second.run();
    for (const std::size_t b : {0, 2}) {
      CAPTURE(b, mask);
      const int kv_begin = sound.batch.kv_begins[b], kv_len = lengths[b].kv;
      CHECK(PackedGradients::have_equal_rows(one.dk, other.dk, kv_begin, kv_len));
      CHECK(PackedGradients::have_equal_rows(one.dv, other.dv, kv_begin, kv_len));
      const std::int64_t width = one.dq.numel() / one.dq.shape()[0];
      std::int64_t faults = 0;
      for (std::int64_t i = 0; i < lengths[b].q * width; ++i) {
        const std::int64_t at = sound.batch.q_begins[b] * width + i;
        const double is = read_element(other.dq.data(), bf16, at);
        const double was = read_element(one.dq.data(), bf16, at);
        if (!(std::abs(is - was) <= 0.01 * std::abs(was) + 1e-4)) ++faults;
      }
      CHECK(faults == 0);
    }
  }
}

TEST_CASE("emulated GPU: planted faults of packed gradients on Hopper are seen") {
  const std::string folder = "cuda/hopper/backward/";
  const std::vector<test::Fault> faults = {
      {"sequences share tiles of dQ", folder + "planned_columns.hpp",
       "own.shared->first_tile + first_row / kKvTile", "first_row / kKvTile"},
      {"boxes of Q and dO reach into the next sequence", folder + "loader.hpp",
       "box_row(sequence.q_begin(), sequence.q_len(call_), tile.rows.first())",
       "box_row(sequence.q_begin(), sequence.q_len(call_) + 40, tile.rows.first())"},
      {"a tile's last row is left out", folder + "plan_tiles.hpp",
       "min(kKvTile, sequence.q_len - row)", "min(kKvTile, sequence.q_len - row) - 1"},
      {"rows of dv that have no sequence are not written", folder + "planned_prepare.hpp",
       "    clear_row<kValueDim>(arguments.dv, its_h, its_row, lane);\n", ""},
      {"mask_mod decides over no tile", folder + "mapped_planner.hpp", "{some, !all}",
       "{some, false}"},
      {"blocks own the same columns", folder + "plan_tiles.hpp", "max(tiles - cost, 0)", "0"}};
  const auto sound = [] {
    return case_of(spec_of(bf16, 128, kCausal), batch_of(128, {{70, 140}, {66, 90}, {30, 61}}));
  };
  CHECK(is_right({"none", folder + "planned_columns.hpp", "// Whether the portable kernels",
                  "// Whether portable kernels"},
                 sound()));
  for (const test::Fault& fault : faults) {
    CAPTURE(fault.what);
    CHECK_FALSE(is_right(fault, sound()));
  }
  Batch batch = batch_of(128, {{20, 70}, {50, 50}});
  batch.kv_begins[1] = batch.kv_begins[0] + 11;
  CHECK_FALSE(is_right({"sequences that share rows are not found", folder + "plan_tiles.hpp",
                        "if (shares) *plan.shares_rows = 1;", ""},
                       case_of(spec_of(bf16, 128), std::move(batch))));
}
