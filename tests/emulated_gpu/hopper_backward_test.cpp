// The backward kernels for Hopper: gradients of q, k and v.

#include <string>
#include <utility>
#include <vector>

#include "tests/emulated_gpu/hopper_backward_call.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;

namespace {

Spec spec_of(DType dtype, std::int64_t head_dim, std::string mask_mod = "",
             std::string score_mod = "") {
  return {.dtype = dtype,
          .head_dim = head_dim,
          .score_mod = std::move(score_mod),
          .mask_mod = std::move(mask_mod),
          .outputs = {.lse = true},
          .gradients = {"q", "k", "v"}};
}

}  // namespace

TEST_CASE("emulated GPU: gradients on Hopper of ragged lengths", "[every-kind]") {
  check_on_hopper(spec_of(bf16, 128), kRagged);
  check_on_hopper(spec_of(f16, 64), kRagged);
}

TEST_CASE("emulated GPU: gradients on Hopper of head dims that fill no whole panel",
          "[every-kind]") {
  for (const auto& [head_dim, v_head_dim] :
       {std::pair<std::int64_t, std::int64_t>{96, 96}, {72, 80}, {48, 16}, {128, 64}, {40, 112}}) {
    CAPTURE(head_dim, v_head_dim);
    Spec spec = spec_of(v_head_dim == 80 ? f16 : bf16, head_dim, "q_idx >= kv_idx");
    spec.v_head_dim = v_head_dim;
    check_on_hopper(spec, kRagged);
  }
}

TEST_CASE("emulated GPU: gradients on Hopper of head dims above 128", "[every-kind]") {
  for (const auto& [head_dim, v_head_dim] :
       {std::pair<std::int64_t, std::int64_t>{192, 128}, {192, 192}, {256, 256}}) {
    CAPTURE(head_dim, v_head_dim);
    Spec spec = spec_of(head_dim == 256 ? f16 : bf16, head_dim);
    spec.v_head_dim = v_head_dim;
    check_on_hopper(spec, kRagged);
    spec.mask_mod = "q_idx >= kv_idx && q_idx != 72";
    check_on_hopper(spec, kRagged, {.q_offset = -5, .dead_rows = {0, 1, 2, 3, 4, 77}});
  }
}

TEST_CASE("emulated GPU: gradients on Hopper of head dims above 128 that fill no whole panels") {
  for (const auto& [head_dim, v_head_dim] : {std::pair<std::int64_t, std::int64_t>{136, 200},
                                             {152, 40},
                                             {64, 256},
                                             {248, 72},
                                             {16, 136}}) {
    CAPTURE(head_dim, v_head_dim);
    Spec spec = spec_of(bf16, head_dim, "q_idx >= kv_idx");
    spec.v_head_dim = v_head_dim;
    check_on_hopper(spec,
                    {.batch = 2, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 70, .kv_len = 90});
  }
}

TEST_CASE("emulated GPU: gradients on Hopper of heads of several batches") {
  check_on_hopper(spec_of(f16, 64),
                  {.batch = 2, .num_q_heads = 2, .num_kv_heads = 2, .q_len = 70, .kv_len = 64},
                  {.has_dlse = false});
  check_on_hopper(spec_of(bf16, 128),
                  {.batch = 3, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 1, .kv_len = 129});
}

TEST_CASE("emulated GPU: gradients on Hopper under a causal mask, with rows that keep nothing",
          "[every-kind]") {
  // Rows 0 to 4 are before the first column, and 77 keeps nothing in the middle of a tile.
  const std::string mask = "q_idx >= kv_idx && q_idx != 72";
  for (const std::int64_t head_dim : {64, 128}) {
    check_on_hopper(spec_of(bf16, head_dim, mask), kRagged,
                    {.q_offset = -5, .dead_rows = {0, 1, 2, 3, 4, 77}});
  }
}

TEST_CASE("emulated GPU: gradients on Hopper of columns that nobody keeps") {
  const Shape shape{.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 140, .kv_len = 400};
  check_on_hopper(spec_of(bf16, 128, "kv_idx < 100 || kv_idx > 390"), shape);
  check_on_hopper(spec_of(f16, 64, "abs(q_idx + 200 - kv_idx) < 30"), shape);
}

TEST_CASE("emulated GPU: gradients on Hopper by the score_mod's derivative", "[every-kind]") {
  Spec softcap = spec_of(bf16, 128, "q_idx >= kv_idx", "4.0 * tanh(score / 4.0)");
  check_on_hopper(softcap, kRagged);
  softcap.head_dim = 64;
  check_on_hopper(softcap, kRagged);
}

TEST_CASE(
    "emulated GPU: gradients on Hopper beside elements that do not exist, whose weights are "
    "infinite") {
  // lse is about -300, and a tile's last columns and rows are past the tensors' ends.
  check_on_hopper(
      spec_of(bf16, 128, "",
              "(kv_idx < 150 ? score - 300.0 : score) + (q_idx < 203 ? 0.0 : INFINITY)"),
      kRagged);
}

TEST_CASE("emulated GPU: gradients on Hopper of score_mods that read buffers") {
  Spec alibi = spec_of(f16, 64, "q_idx >= kv_idx", "score + slopes[h] * (kv_idx - q_idx)");
  alibi.buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}}};
  check_on_hopper(alibi, kRagged);
  Spec bias = spec_of(bf16, 128, "", "score * gain[kv_idx] + bias[kv_idx - q_idx + 203]");
  bias.buffers = {{"gain", {.dtype = bf16, .shape = {NamedDim::kv_len}}},
                  {"bias", {.dtype = f32, .shape = {400}}}};
  check_on_hopper(bias, kRagged);
}

TEST_CASE("emulated GPU: gradients on Hopper of documents, in blocks of other sides") {
  Spec spec = spec_of(bf16, 128, "q_idx >= kv_idx && doc[q_idx] == doc[kv_idx]");
  spec.buffers = {{"doc", {.dtype = i32, .shape = {203}, .sorted = true}}};
  spec.block = {64, 256};
  check_on_hopper(spec, kRagged);
}

TEST_CASE("emulated GPU: a call of backward that Hopper's kernel does not serve", "[every-kind]") {
  Spec learnt = spec_of(bf16, 64, "", "score + slopes[h] * (kv_idx - q_idx)");
  learnt.buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}}};
  learnt.gradients.emplace_back("slopes");
  HopperCall call(learnt, kRagged, {.deterministic = true});
  call.run();
  call.judge();
}

TEST_CASE("emulated GPU: planted faults of gradients on Hopper are seen") {
  const std::string folder = "cuda/hopper/backward/";
  const std::vector<test::Fault> faults = {
      {"dX of the tile before is not waited for", folder + "consumer.hpp",
       "    wait(shared_address(&shared_.control->gradients_full[before]), parity_before(), \"dX, "
       "stage\", before);\n",
       ""},
      {"dX is not fenced", folder + "consumer.hpp", "    fence_for_copies();\n    release(",
       "    release("},
      {"dX is written while it is read", folder + "consumer.hpp",
       "    wait(shared_address(&shared_.control->gradients_read[before]), parity_before(), \"a "
       "place for dX, stage\", "
       "before);\n",
       ""},
      {"dX lies in one place", folder + "consumer.hpp", "gradient_stage_ ^= 1;", ""},
      {"dQ of the last tile is left out", folder + "consumer.hpp",
       "    issue_dq_of_tile_before(dq);\n    store_sums(", "    store_sums("},
      {"dQ that was staged is kept", folder + "consumer.hpp",
       "    hand_over_staged();\n    issue_dq_of_tile_before", "    issue_dq_of_tile_before"},
      {"dQ is handed over before it is staged", folder + "consumer.hpp",
       "    if (has_before_) stage_dq(shared_, number_, dq);  // while dK runs\n    has_staged_ = "
       "has_before_;\n",
       "    has_staged_ = has_before_;\n    hand_over_staged();\n"
       "    if (has_before_) stage_dq(shared_, number_, dq);\n"},
      {"the first rows do not wait for K", folder + "loader.hpp",
       "    expect_bytes(q_full, kKeyPanels * kOwnPanelBytes);\n", ""},
      {"dout of rows that keep nothing is not cleared", folder + "loader.hpp",
       "    clear_dead_rows();\n", ""},
      {"delta without dlse", folder + "prepare_row.hpp", "delta - dlse", "delta"},
      {"dK is not scaled", folder + "consumer.hpp", "place, arguments_.scale, dk",
       "place, 1.0f, dk"},
      {"facts of all heads are the first's", folder + "dense_columns.hpp",
       "b * call.num_q_heads + h)", "b * call.num_q_heads)"},
      {"sums of dQ begin with what the workspace holds", folder + "prepare_row.hpp",
       "  clear_dq_row(tiles.dq_sums + index * kHeadWidth, lane);\n", ""}};
  const CallOptions dead{.q_offset = -5, .dead_rows = {0, 1, 2, 3, 4}};
  for (const test::Fault& fault : faults) {
    CAPTURE(fault.what);
    CHECK_FALSE(is_right(fault, spec_of(bf16, 128, "q_idx >= kv_idx"), kRagged, dead));
  }
  const std::vector<test::Fault> faults_of_padding = {
      {"dQ of the second panel is left out", folder + "layout.hpp", "kDqPairs - kDqPartPairs", "0"},
      {"dQ is stored whole panels wide", folder + "store_dq.hpp", "kChunks = kHeadDim / 8",
       "kChunks = kHeadWidth / 8"}};
  for (const test::Fault& fault : faults_of_padding) {
    CAPTURE(fault.what);
    CHECK_FALSE(is_right(fault, spec_of(bf16, 72, "q_idx >= kv_idx"), kRagged, dead));
  }
}

TEST_CASE("emulated GPU: planted faults of gradients on Hopper of head dims above 128 are seen") {
  const std::string file = "cuda/hopper/backward/wide_consumer.hpp";
  const std::vector<test::Fault> faults = {
      {"P and dX of the other warpgroup are not waited for", file,
       "    fence_for_copies();\n    sync_named<kConsumers * kWarpgroup>(kGradientsBarrier);\n",
       "    fence_for_copies();\n"},
      {"P and dX are not fenced", file,
       "    fence_for_copies();\n    sync_named<kConsumers * kWarpgroup>(kGradientsBarrier);\n",
       "    sync_named<kConsumers * kWarpgroup>(kGradientsBarrier);\n"},
      {"P and dX lie in one place", file, "gradient_stage_ ^= 1;", ""},
      {"both warpgroups have the first rows' facts", file, "shared_.lse(stage) + first_row * 4",
       "shared_.lse(stage)"},
      {"mask_mod decides over the first rows for both", file,
       "tile.rows.first() + static_cast<int>(first_row)", "tile.rows.first()"},
      {"both shares of dQ are added at the first's place", file, "number_ * (kDqPartBytes / 4)",
       "0"},
      {"Q is released while dK reads it", file, "wait_for_share<0>(dk)", "wait_for_share<1>(dk)"}};
  Spec spec = spec_of(bf16, 192, "q_idx >= kv_idx");
  spec.v_head_dim = 128;
  const Shape shape{.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 203, .kv_len = 70};
  for (const test::Fault& fault : faults) {
    CAPTURE(fault.what);
    CHECK_FALSE(is_right(fault, spec, shape, {}));
  }
}
