// Packed calls of short sequences, whose k and v stay in shared memory, on the emulated GPU.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/call/plan_state.hpp"
#include "tests/emulated_gpu/findings.hpp"
#include "tests/gpu/packed_gpu_call.hpp"
#include "tests/support/packed_batch.hpp"
#include "verify/random_sequences.hpp"

namespace tilewright {
using namespace packed_calls;

namespace {

using test::Fault;
using Templates = std::shared_ptr<const jinja::Loader>;

constexpr float kF16Tolerance = 2 * 1.5f * 0x1p-11f;  // as of packed_test.cpp
constexpr int kMostColumns = 256;                     // that four tiles hold

// An environment variable, while it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

Spec f16_spec(int dim, const std::string& mask_mod) {
  Spec spec = packed_spec(dim, mask_mod, true);
  spec.dtype = f16;
  return spec;
}

int resident_heads_of(const Spec& spec, const PackedShape& shape, bool batch_invariant = false) {
  const Attention attention(spec, {.device = Device::parse("cuda")});
  const PackedGpuCall call(spec, shape);
  Workspace workspace(attention.workspace_size(shape));
  return attention
      .plan(shape, call.sequences(), {},
            {.workspace = workspace.view(), .batch_invariant = batch_invariant})
      .state()
      .geometry.resident_heads;
}

verify::PackedLengths lengths(std::int64_t q_heads, std::int64_t kv_heads,
                              std::vector<verify::PackedLengths::Sequence> sequences) {
  return {.num_q_heads = q_heads, .num_kv_heads = kv_heads, .sequences = std::move(sequences)};
}

// What the first order of threads shows that shows anything.
std::string findings_in_any_order(const Spec& spec, const verify::PackedLengths& of,
                                  const Templates& templates) {
  std::string found;
  for (int seed = 1; seed <= 16 && found.empty(); ++seed) {
    const Variable order("TILEWRIGHT_EMULATED_SEED", std::to_string(seed));
    found = test::findings_of([&] {
      const auto inputs = verify::random_packed_inputs(spec, of, 7, {.q_factor = 8});
      return verify::check(spec, inputs.problem(), test::check_options(templates));
    });
  }
  return found;
}

}  // namespace

TEST_CASE("resident k and v: lengths around units and tiles, rows and sequences without columns",
          "[every-kind]") {
  const Variable wherever("TILEWRIGHT_RESIDENT", "1");
  const char* const mask =
      GENERATE("", "q_idx >= kv_idx", "q_idx >= kv_idx && q_idx - kv_idx < 40 + 30 * h",
               "abs(q_idx - kv_idx) < 70 + 10 * h");
  const auto [heads, kv_heads] = GENERATE(std::pair{1, 1}, std::pair{4, 1}, std::pair{8, 1});
  CAPTURE(mask, heads);
  Batch batch = {.lengths = {{256, 256},
                             {255, 255},
                             {65, 65},
                             {64, 64},
                             {63, 63},
                             {1, 1},
                             {40, 0},
                             {0, 30},
                             {130, 250},
                             {200, 70},
                             {300, 129},
                             {2, 256}},
                 .heads = heads,
                 .kv_heads = kv_heads,
                 .dim = 64,
                 .max_kv_len = kMostColumns};
  batch.make();
  const Spec spec = f16_spec(64, mask);
  CHECK(resident_heads_of(spec, batch.shape()) == heads / kv_heads);
  check_against_dense(spec, batch, kF16Tolerance, Device::parse("cuda"));
}

TEST_CASE("resident k and v: a longer sequence counts as long as the bound of columns says") {
  const Variable wherever("TILEWRIGHT_RESIDENT", "1");
  const Spec spec = f16_spec(64, "q_idx >= kv_idx");
  const Attention attention(spec, {.device = Device::parse("cuda")});
  Batch batch = {.lengths = {{40, 100}, {70, 300}}, .heads = 2, .kv_heads = 1, .dim = 64};
  batch.make();
  // Without a bound a sequence may have all columns, which are more than the tiles hold.
  CHECK(resident_heads_of(spec, batch.shape()) == 0);
  check_against_dense(spec, batch, kF16Tolerance, Device::parse("cuda"));
  batch.max_kv_len = kMostColumns;
  Workspace workspace(attention.workspace_size(batch.shape()));
  const BatchTensors staged(batch, f16);
  const Plan plan =
      attention.plan(batch.shape(), staged.sequences(), {}, {.workspace = workspace.view()});
  CHECK(plan.state().geometry.resident_heads == 2);
  CHECK(plan.report().count == 1);
  Tensor out = in_dtype(batch.out, f16);
  attention.forward({.q = staged.q, .k = staged.k, .v = staged.v, .out = out, .lse = batch.lse},
                    plan);
  read_back(out, batch.out);
  for (int row = 0; row < 110; ++row) {
    for (int i = 0; i < 2 * 64; ++i) {
      REQUIRE(std::isfinite(floats(batch.out)[(batch.gap + row) * 2 * 64 + i]));
    }
  }
}

TEST_CASE("resident k and v: which calls they serve") {
  const PackedShape shape = {.batch = 8,
                             .num_q_heads = 8,
                             .num_kv_heads = 2,
                             .total_q = 2048,
                             .total_kv = 2048,
                             .max_kv_len = kMostColumns};
  const Spec spec = f16_spec(64, "q_idx >= kv_idx");
  CHECK(resident_heads_of(spec, shape) > 0);
  PackedShape longer = shape, unbounded = shape;
  longer.max_kv_len = kMostColumns + 1;
  unbounded.max_kv_len = 0;
  CHECK(resident_heads_of(spec, longer) == 0);
  CHECK(resident_heads_of(spec, unbounded) == 0);
  CHECK(resident_heads_of(spec, shape, true) > 0);  // what forward then leaves alone
  const Variable nowhere("TILEWRIGHT_RESIDENT", "0");
  CHECK(resident_heads_of(spec, shape) == 0);
}

TEST_CASE(
    "resident k and v: calls captured once replay with other lengths, and repeats have equal "
    "bits") {
  const Variable wherever("TILEWRIGHT_RESIDENT", "1");
  constexpr PackedShape kShape = {.batch = 5,
                                  .num_q_heads = 4,
                                  .num_kv_heads = 2,
                                  .total_q = 500,
                                  .total_kv = 700,
                                  .max_kv_len = kMostColumns};
  for (const char* const mask : {"", "q_idx >= kv_idx"}) {
    Spec spec = f16_spec(64, mask);
    spec.dtype = bf16;
    require_equal_replays(spec, kShape, 3);
    require_equal_repeats(spec, kShape, 4);
  }
}

TEST_CASE("resident k and v: planted faults are seen") {
  const Variable wherever("TILEWRIGHT_RESIDENT", "1");
  const std::string resident = "cuda/hopper/resident/";
  const std::string tiles = resident + "tiles.hpp";
  const std::string q_producer = resident + "q_producer.hpp";
  const std::string kv_producer = resident + "kv_producer.hpp";
  const std::string work = resident + "work.hpp";
  const std::string planner = resident + "planner.hpp";
  const std::string consumer = resident + "consumer.hpp";
  const std::vector<Fault> faults = {
      {"a tile is given back after each unit", tiles, "released_ = tiles.released;",
       "released_ = 15;"},
      {"a tile is never given back", tiles, "release_if((released_ >> place.stage & 1u) != 0,",
       "release_if(false,"},
      {"a warpgroup takes the tiles of the item before", tiles, "phases_ ^= released_;", ""},
      {"K of the item before is taken for this one's", tiles, "    has_k_ &= ~released_;\n", ""},
      {"V of the item before is taken for this one's", tiles, "    has_v_ &= ~released_;\n", ""},
      {"no tile is partial", tiles, "(partial_ >> place_.stage & 1u) != 0}", "false}"},
      {"K's place is filled before it is empty", kv_producer,
       "wait(shared_address(&control.k_empty[t]), parity,",
       "wait(shared_address(&control.k_empty[t]), parity ^ 1u,"},
      {"V's place is filled before it is empty", kv_producer,
       "wait(shared_address(&control.v_empty[t]), parity,",
       "wait(shared_address(&control.v_empty[t]), parity ^ 1u,"},
      {"K and V of one head serve all", kv_producer, "head_in(arguments_.k, q_tile.h_kv)", "0"},
      {"Q's place is filled before it is empty", q_producer, "q.parity() ^ 1, \"an empty place",
       "q.parity(), \"an empty place"},
      {"all warpgroups compute the same units", q_producer, ".after(first, item.heads)",
       ".after(0, item.heads)"},
      {"an item's first unit is taken by two warpgroups or none", q_producer,
       "next_group_ = (next_group_ + all) % kConsumers;",
       "next_group_ = (next_group_ + all + number_) % kConsumers;"},
      {"the last unit's head stays", q_producer, "q_tile.h += step.head;", ""},
      {"a warpgroup's rows begin where the other's do", q_producer,
       "first_row - number_ * kUnitRows;", "first_row;"},
      {"tiles are given back before the last unit that needs them", q_producer,
       "item.needed_up_to(next.unit)", "item.needed_up_to(next.unit - 1)"},
      {"a unit has the tiles of the rows before", q_producer, "number / kUnitsOfBlock;",
       "max(number / kUnitsOfBlock - 1, 0);"},
      {"no item is asked for", q_producer, "if (left == min(own, kLeftWhenAsking)) items_.ask();",
       ""},
      {"a plan is written over before it was followed", planner, "place_.parity(), \"being asked",
       "place_.parity() ^ 1u, \"being asked"},
      {"the last tile is not brought", planner, "if (tile >= item.kv_tiles)",
       "if (tile + 1 >= item.kv_tiles)"},
      {"rows that keep nothing are the unit's before", consumer, "if (!tiles.has_tile()) {",
       "if (false) {"},
      {"a unit's place for Q is never given back", consumer,
       "if (kOutOverQ && kStoresBoxes) visits_.runs().is_being_stored(q_empty);", ""},
      {"a place for Q is given back before out is stored", tiles, "    wait_until_stores_read();\n",
       ""},
      {"what out held before a unit counts", "cuda/hopper/tile_visits.hpp",
       "!Ring::kBeginsEmpty || !tile.begins", "true"},
      {"the kernel divides empty rows of a warp with other rows by 0", "cuda/hopper/store.hpp",
       "stage_out<true>(", "stage_out<false>("},
      {"a tile is full or empty as its block is", q_producer,
       "if (proof != Proof::undecided) partial ^= bit;", "partial ^= bit;"},
      {"full tiles are not visited", q_producer, "if (proof == Proof::empty)",
       "if (proof == Proof::full)"},
      {"empty tiles are full", q_producer, "if (proof == Proof::empty) kept ^= bit;", ""},
      {"proofs are of the sequence's first rows", resident + "proved_tiles.hpp",
       "{first_row + q_tile.q_offset(call),", "{q_tile.q_offset(call),"},
      {"proofs are of the first columns", resident + "proved_tiles.hpp", "tile * kKvTile;", "0;"},
      {"the last tile has all columns", q_producer, "all : partial | ragged", "all : partial"},
      {"an item ends with its first unit", work,
       "__forceinline__ int first_unit() const { return lead / kUnitRows; }",
       "__forceinline__ int first_unit() const { return units - 1; }"}};
  Spec spec = f16_spec(64, "q_idx >= kv_idx && q_idx - kv_idx < 200");
  const verify::PackedLengths of =
      lengths(4, 2, {{256, 256}, {70, 200}, {60, 60}, {50, 50}, {200, 90}, {40, 0}, {256, 130}});
  REQUIRE(findings_in_any_order(spec, of, default_template_loader()).empty());
  test::check_each_is_seen(faults, [&](const Templates& templates) {
    return findings_in_any_order(spec, of, templates);
  });
}

TEST_CASE("resident k and v: planted faults in what a mask without proofs leaves out are seen") {
  const Variable wherever("TILEWRIGHT_RESIDENT", "1");
  const std::vector<Fault> faults = {
      {"tiles that are left out stay", "cuda/hopper/resident/tiles.hpp",
       "      give_back_k();\n      give_back_v(place_);\n", ""},
      {"what the first tile leaves is forgotten", "cuda/hopper/resident/consumer.hpp",
       "!has_before, has_before, before);", "true, has_before, before);"}};
  const Spec spec = f16_spec(64, "clamp(q_idx - kv_idx, 0, 199) == q_idx - kv_idx");
  const verify::PackedLengths of =
      lengths(4, 2, {{256, 256}, {70, 200}, {60, 60}, {50, 50}, {200, 90}, {40, 0}, {256, 130}});
  REQUIRE(findings_in_any_order(spec, of, default_template_loader()).empty());
  test::check_each_is_seen(faults, [&](const Templates& templates) {
    return findings_in_any_order(spec, of, templates);
  });
}

TEST_CASE("resident k and v: a warpgroup without rows that gets ahead is seen") {
  const Variable wherever("TILEWRIGHT_RESIDENT", "1");
  const std::vector<Fault> faults = {{"it gives tiles back before they are there",
                                      "cuda/hopper/resident/tiles.hpp",
                                      "      wait_for_k(place);\n      wait_for_v(place);\n", ""}};
  const Spec spec = f16_spec(64, "");
  const verify::PackedLengths of = lengths(
      4, 4, {{256, 256}, {64, 64}, {63, 63}, {1, 1}, {60, 130}, {50, 250}, {60, 0}, {64, 200}});
  REQUIRE(findings_in_any_order(spec, of, default_template_loader()).empty());
  test::check_each_is_seen(faults, [&](const Templates& templates) {
    return findings_in_any_order(spec, of, templates);
  });
}

}  // namespace tilewright
