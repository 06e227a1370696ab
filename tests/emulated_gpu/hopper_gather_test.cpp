// The backward kernels for Hopper: gradients of buffers and scalars.

#include <string>
#include <utility>
#include <vector>

#include "tests/emulated_gpu/hopper_backward_call.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;

namespace {

struct Learnt {
  std::string name;
  BufferSpec buffer;
};

Spec spec_of(DType dtype, std::int64_t head_dim, std::string score_mod,
             const std::vector<Learnt>& learnt, std::string mask_mod = "") {
  Spec spec{.dtype = dtype,
            .head_dim = head_dim,
            .score_mod = std::move(score_mod),
            .mask_mod = std::move(mask_mod),
            .outputs = {.lse = true},
            .gradients = {"q", "k", "v"}};
  for (const Learnt& one : learnt) {
    spec.buffers.emplace(one.name, one.buffer);
    spec.gradients.push_back(one.name);
  }
  return spec;
}

const Learnt kSlopes = {"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}};
const Learnt kColumn = {"column", {.dtype = bf16, .shape = {NamedDim::kv_len}}};
const Learnt kRow = {"row", {.dtype = f32, .shape = {NamedDim::batch, NamedDim::q_len}}};
// Of heads, and of differences from -130 to 130: some are clamped.
const Learnt kBias = {"bias", {.dtype = f32, .shape = {NamedDim::num_q_heads, 261}}};
const std::string kAddBias = "bias(h, clamp(kv_idx - q_idx, -130, 130) + 130)";
// Most differences are the first or the last, so that a warp's lanes have one cell.
const Learnt kShortBias = {"short_bias", {.dtype = f32, .shape = {NamedDim::num_q_heads, 41}}};
const std::string kAddShortBias = "short_bias(h, clamp(kv_idx - q_idx, -20, 20) + 20)";
// The last sums are beyond the table's end, where the table of another head lies.
const Learnt kTooShort = {"too_short", {.dtype = f32, .shape = {NamedDim::num_q_heads, 200}}};
const std::string kAddTooShort = "too_short(h_kv, q_idx + kv_idx)";
// The last head alone reads beyond the end.
const Learnt kOfHeads = {"of_heads", {.dtype = f32, .shape = {2, 2, 400}}};
const std::string kAddOfLastHead = "of_heads(0, h + 1, q_idx + kv_idx)";
const std::string kCausal = "q_idx >= kv_idx";

constexpr Shape kHeads{
    .batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 150, .kv_len = 131};

}  // namespace

TEST_CASE("emulated GPU: gradients on Hopper of slopes and scalars", "[every-kind]") {
  Spec spec = spec_of(bf16, 128, "score + slopes[h] * (kv_idx - q_idx) * 0.01 + gain * (q_idx % 3)",
                      {kSlopes}, kCausal);
  spec.scalars = {{"gain", {.dtype = f32, .default_value = 0.5}}};
  spec.gradients.emplace_back("gain");
  check_on_hopper(spec, kHeads);
  spec.head_dim = 64;
  spec.dtype = f16;
  check_on_hopper(spec, kHeads, {.q_offset = -5, .dead_rows = {0, 1, 2, 3, 4}});
}

TEST_CASE("emulated GPU: gradients on Hopper of buffers and scalars with head dims above 128") {
  Spec spec = spec_of(bf16, 192,
                      "score + slopes[h] * (kv_idx - q_idx) * 0.01 + gain * (q_idx % 3) + "
                      "column[kv_idx] + own[(q_idx * 7 + kv_idx) % 101]",
                      {kSlopes, kColumn, {"own", {.dtype = f32, .shape = {101}}}}, kCausal);
  spec.v_head_dim = 128;
  spec.scalars = {{"gain", {.dtype = f32, .default_value = 0.5}}};
  spec.gradients.emplace_back("gain");
  check_on_hopper(spec, kHeads, {.q_offset = -5, .dead_rows = {0, 1, 2, 3, 4}});
}

TEST_CASE("emulated GPU: gradients on Hopper of reads by column and by row") {
  const std::vector<Learnt> learnt = {kColumn, kRow};
  const std::string score_mod = "score + column[kv_idx] + row(b, q_idx) * (kv_idx % 5)";
  check_on_hopper(spec_of(bf16, 64, score_mod, learnt, kCausal), kHeads);
  check_on_hopper(spec_of(f16, 128, score_mod, learnt), kHeads);
}

TEST_CASE("emulated GPU: gradients on Hopper of a relative bias", "[every-kind]") {
  check_on_hopper(spec_of(bf16, 128, "score + " + kAddBias, {kBias}), kHeads);
  check_on_hopper(spec_of(bf16, 64, "score + " + kAddBias, {kBias}, kCausal), kRagged);
  check_on_hopper(spec_of(bf16, 128, "score + " + kAddShortBias, {kShortBias}), kRagged);
}

TEST_CASE("emulated GPU: gradients on Hopper of a relative bias, with rows that keep nothing") {
  check_on_hopper(spec_of(f16, 128, "score + bias[q_idx - kv_idx + 150] * 2.0",
                          {{"bias", {.dtype = bf16, .shape = {353}, .bounds = Bounds::trusted}}},
                          "q_idx >= kv_idx && q_idx != 72"),
                  kRagged, {.q_offset = -5, .dead_rows = {0, 1, 2, 3, 4, 77}});
}

TEST_CASE("emulated GPU: gradients on Hopper of a table with a cell for each difference") {
  const Learnt table = {"table", {.dtype = f32, .shape = {NamedDim::num_q_heads, 400}}};
  const std::string score_mod = "score + table(h, kv_idx - q_idx + q_len - 1)";
  check_on_hopper(spec_of(bf16, 128, score_mod, {table}, kCausal), kRagged);
  check_on_hopper(spec_of(f16, 64, score_mod, {table}), kHeads);
  check_on_hopper(spec_of(bf16, 128, "score + " + kAddTooShort, {kTooShort}), kRagged);
  check_on_hopper(spec_of(bf16, 64, "score + " + kAddOfLastHead, {kOfHeads}), kRagged);
}

TEST_CASE("emulated GPU: gradients on Hopper of several reads, of one buffer too") {
  const std::string score_mod = "score + slopes[h] * (kv_idx - q_idx) * 0.01 + " + kAddBias +
                                " + column[kv_idx] + column[kv_idx / 2] * 0.5";
  check_on_hopper(spec_of(bf16, 128, score_mod, {kSlopes, kBias, kColumn}, kCausal), kHeads);
  check_on_hopper(spec_of(bf16, 64, score_mod, {kSlopes, kBias, kColumn}, kCausal), kHeads);
}

TEST_CASE("emulated GPU: gradients on Hopper of reads that differ between elements") {
  const Learnt own = {"own", {.dtype = f32, .shape = {FreeDim{}}}};
  check_on_hopper(spec_of(bf16, 128, "score + own[q_idx * 7 + kv_idx]", {own}, kCausal), kRagged);
  check_on_hopper(spec_of(f16, 64, "score + own[q_idx * 7 + kv_idx]", {own}), kRagged);
}

TEST_CASE("emulated GPU: gradients on Hopper whose factors are infinite where nothing is kept") {
  // 1 / 0 in the diagonal, which the mask drops.
  const std::string score_mod = "score + slopes[h] / float(q_idx - kv_idx)";
  check_on_hopper(spec_of(bf16, 128, score_mod, {kSlopes}, "q_idx > kv_idx"), kRagged);
}

TEST_CASE("emulated GPU: gradients of buffers that Hopper's kernel does not sum") {
  const auto takes = [](const std::string& score_mod, const std::vector<Learnt>& learnt) {
    return takes_maps(spec_of(bf16, 128, score_mod, learnt));
  };
  CHECK(takes("score + slopes[h]", {kSlopes}));
  CHECK_FALSE(takes("score * slopes[h]", {kSlopes}));
  CHECK_FALSE(takes("tanh(score) + slopes[h]", {kSlopes}));
  CHECK_FALSE(takes("score + (score > 1.0 ? slopes[h] : 0.0)", {kSlopes}));
  const Learnt one = {"one", {.dtype = f32, .shape = {100}}};
  const Learnt two = {"two", {.dtype = f32, .shape = {100}}};
  CHECK_FALSE(takes("score + one[q_idx - kv_idx] + two[kv_idx - q_idx]", {one, two}));
}

TEST_CASE("emulated GPU: planted faults of gradients of buffers on Hopper are seen") {
  const std::string folder = "cuda/hopper/backward/";
  const Spec slopes = spec_of(bf16, 128, "score + slopes[h] * (kv_idx - q_idx) * 0.01", {kSlopes});
  const Spec column = spec_of(bf16, 128, "score + column[kv_idx]", {kColumn});
  const Spec row = spec_of(bf16, 128, "score + row(b, q_idx) * (kv_idx % 5)", {kRow});
  const Spec bias = spec_of(bf16, 128, "score + " + kAddBias, {kBias});
  const Spec short_bias = spec_of(bf16, 128, "score + " + kAddShortBias, {kShortBias});
  const Spec wide_bias = spec_of(bf16, 64, "score + " + kAddBias, {kBias});
  const Spec too_short = spec_of(bf16, 128, "score + " + kAddTooShort, {kTooShort});
  const Spec last_head = spec_of(bf16, 128, "score + " + kAddOfLastHead, {kOfHeads});
  const Spec unsafe =
      spec_of(bf16, 128, "score + slopes[h] / float(q_idx - kv_idx)", {kSlopes}, "q_idx > kv_idx");
  struct Case {
    Fault fault;
    const Spec& spec;
  };
  const std::vector<Case> cases = {
      {{"sums are not added where the head changes", folder + "consumer_base.hpp",
        "(!tile.rows.exists() || tile.h != h)", "!tile.rows.exists()"},
       slopes},
      {{"sums are not added where the last head ends", folder + "consumer_base.hpp",
        "(!tile.rows.exists() || tile.h != h)", "tile.rows.exists() && tile.h != h"},
       slopes},
      {{"sums of a head begin with those of the one before", folder + "gather.hpp",
        "    end_slots<0>(inputs);\n    begin_head();\n", "    end_slots<0>(inputs);\n"},
       slopes},
      {{"a sum over a head is added by two lanes", folder + "gather.hpp",
        "add_to_memory<kSlot>(lane() == 0,", "add_to_memory<kSlot>(lane() < 2,"},
       slopes},
      {{"a column's sum is added by each lane that shares it", folder + "gather.hpp",
        "const bool adds = lane() % 4 == 0 && column", "const bool adds = column"},
       column},
      {{"all parts of a row's sum are of the same warps", folder + "gather.hpp",
        "(part * (kWarps / kParts) + warp) * kKvTile", "warp * kKvTile"},
       row},
      {{"a row's sum leaves out half of the columns", folder + "gather.hpp",
        "    sum += __shfl_xor_sync(~0u, sum, 4);\n", ""},
       row},
      {{"a lane of odd rows adds to the even ones", folder + "gather.hpp",
        "(is_upper ? 8 : 0) + (is_odd ? 1 : 0)", "(is_upper ? 8 : 0)"},
       row},
      {{"the last diagonal is lost", folder + "diagonals.hpp",
        "kDifferences = 16 + kDiagonalRows - 1", "kDifferences = 16 + kDiagonalRows - 2"},
       bias},
      {{"the first diagonal is lost", folder + "diagonals.hpp",
        "      if (group == kDiagonalGroups - 1) put(e, 0, left_[e]);\n", ""},
       bias},
      {{"a group's terms do not add to the next one's", folder + "diagonals.hpp",
        "group == 0 ? terms[1][e] : left_[e] + terms[1][e]", "terms[1][e]"},
       bias},
      {{"the last difference is added again by lanes behind it", folder + "gather.hpp",
        "place == lane_of_all && ", ""},
       bias},
      {{"a lane keeps what is of another cell", folder + "waiting_sum.hpp", "cells[i] == cell_",
        "true"},
       bias},
      {{"a lane adds for itself what waits, too", folder + "waiting_sum.hpp",
        "!waits && terms[i] != 0.0f", "terms[i] != 0.0f"},
       short_bias},
      {{"a warp's sum goes on in another cell", folder + "waiting_sum.hpp",
        "moves ? sum : sum_before + sum", "sum_before + sum"},
       short_bias},
      {{"a warp forgets what waits", folder + "waiting_sum.hpp", "moves ? sum : sum_before + sum",
        "sum"},
       short_bias},
      {{"a warp that moves adds to where it goes", folder + "waiting_sum.hpp", "sums + cell_before",
        "sums + cell_"},
       short_bias},
      {{"a tile of several cells is taken to have one", folder + "gather.hpp",
        "__all_sync(~0u, is_same) != 0", "true"},
       bias},
      {{"a tile has one cell if its first differences have", folder + "gather.hpp",
        "kTileDifferences + 31) / 32", "31 + 1) / 32"},
       bias},
      {{"half of a tile's terms for its cell are lost", folder + "diagonals.hpp",
        "left_[0] + left_[1]", "left_[0]"},
       short_bias},
      {{"a tile's sum goes on in another cell", folder + "waiting_sum.hpp",
        "moves ? term : sum_before + term", "sum_before + term"},
       short_bias},
      {{"what waited at another cell is lost", folder + "waiting_sum.hpp",
        "    add_float_if(moves && sum_before != 0.0f, sums + cell_, sum_before);\n", ""},
       short_bias},
      {{"each lane adds what its warp has", folder + "waiting_sum.hpp",
        "lane() == 0 && sum != 0.0f", "sum != 0.0f"},
       short_bias},
      {{"what waited counts for the next head again", folder + "waiting_sum.hpp",
        "    store_shared(place, 0.0f);\n", ""},
       short_bias},
      {{"what waits when a head ends is lost", folder + "gather.hpp",
        "        waiting_.end(diagonals_.place_of_lane(), sums_of<kSlot>());\n", ""},
       short_bias},
      {{"a table that is too short is read without bounds", folder + "consumer_base.hpp",
        "!loads_in_bounds_ || ", ""},
       too_short},
      {{"the last head's reads are taken to be in bounds", folder + "consumer_base.hpp",
        "first_head + heads - 1", "first_head"},
       last_head},
      {{"terms are read before all are there", folder + "diagonals.hpp",
        "    __syncwarp();  // all terms are there\n", ""},
       wide_bias},
      {{"diagonals of the first 64 rows of a tile of 128 are not added", folder + "elements.hpp",
        "    gathered.end_rows(inputs,", "    (void)(inputs,"},
       wide_bias},
      {{"0 times infinity", folder + "gather.hpp", "(kHow.is_finite || w[i][j] != 0.0f)", "true"},
       unsafe}};
  for (const Case& one : cases) {
    CAPTURE(one.fault.what);
    CHECK_FALSE(is_right(one.fault, one.spec, kRagged, {}));
  }
}
