// The backward kernels for Hopper in deterministic calls: blocks of threads add to dq by turns.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "generator/tactic/hopper_backward_tactic.hpp"
#include "tests/emulated_gpu/hopper_backward_call.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;

namespace {

constexpr char kCausal[] = "q_idx >= kv_idx";
constexpr char kWindow[] = "abs(q_idx - kv_idx) < 150 || kv_idx < 40";

// Four blocks of columns and more meet most rows, so an order shows in the bits, of f16 more than
// of bf16.
constexpr Shape kManyColumns{
    .batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 203, .kv_len = 500};
constexpr Shape kSquare{
    .batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 500, .kv_len = 500};

Spec spec_of(DType dtype, std::int64_t head_dim, std::string mask_mod = "") {
  return {.dtype = dtype,
          .head_dim = head_dim,
          .mask_mod = std::move(mask_mod),
          .outputs = {.lse = true},
          .gradients = {"q", "k", "v"}};
}

bool has_equal_bits(HopperCall& call, int runs) {
  call.run();
  const std::string first = call.bits();
  for (int i = 1; i < runs; ++i) {
    call.run();
    if (call.bits() != first) return false;
  }
  return true;
}

// Each run has its threads, and blocks side by side, in another order.
void check_by_turns(const Spec& spec, const Shape& shape, CallOptions options = {}) {
  CHECK(has_deterministic_backward(spec, Target::parse("sm_90a"), backward_kernel(spec)));
  options.deterministic = true;
  HopperCall call(spec, shape, std::move(options));
  CHECK(has_equal_bits(call, 4));
  call.judge();
}

bool is_seen(const Fault& fault, const Spec& spec, const Shape& shape) {
  constexpr int kRuns = 24;
  try {
    HopperCall call(spec, shape,
                    {.deterministic = true, .templates = std::make_shared<FaultyTemplates>(fault)});
    return !has_equal_bits(call, kRuns) || !call.is_right();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::device) throw;
    return true;  // the emulator ended the kernel
  }
}

}  // namespace

TEST_CASE("emulated GPU: deterministic gradients on Hopper have equal bits", "[every-kind]") {
  check_by_turns(spec_of(bf16, 128), kManyColumns);
  check_by_turns(spec_of(f16, 64, kCausal), kSquare);
}

TEST_CASE("emulated GPU: deterministic gradients on Hopper under masks") {
  check_by_turns(spec_of(bf16, 128, kWindow), kSquare);
  check_by_turns(spec_of(bf16, 64, "kv_idx < 100 || kv_idx > 390"), kSquare);
  check_by_turns(spec_of(bf16, 128, "q_idx / 130 == kv_idx / 130 && q_idx >= kv_idx"), kSquare);
  check_by_turns(spec_of(f16, 64, "q_idx >= kv_idx && q_idx != 72"), kManyColumns,
                 {.q_offset = -5, .dead_rows = {0, 1, 2, 3, 4, 77}});
}

TEST_CASE("emulated GPU: deterministic gradients on Hopper of several batches and heads") {
  check_by_turns(spec_of(bf16, 64, kCausal),
                 {.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 140, .kv_len = 300});
  Spec by_head = spec_of(bf16, 64, "h == 1 || abs(q_idx - kv_idx) < 70");
  check_by_turns(by_head,
                 {.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 300, .kv_len = 400});
}

// Blocks of the mask of several blocks' columns, the last of which has fewer; and of several tiles.
TEST_CASE("emulated GPU: deterministic gradients on Hopper in blocks of other sides") {
  Spec spec = spec_of(bf16, 128, kCausal);
  spec.block = {64, 256};
  check_by_turns(spec,
                 {.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 400, .kv_len = 300});
  check_by_turns(spec,
                 {.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 400, .kv_len = 700});
  spec.mask_mod = "kv_idx < 300";
  check_by_turns(spec,
                 {.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 100, .kv_len = 700});
}

TEST_CASE("emulated GPU: deterministic gradients on Hopper of other head dims", "[every-kind]") {
  for (const auto& [head_dim, v_head_dim] :
       {std::pair<std::int64_t, std::int64_t>{72, 80}, {40, 112}, {192, 128}, {64, 256}}) {
    CAPTURE(head_dim, v_head_dim);
    Spec spec = spec_of(bf16, head_dim, kCausal);
    spec.v_head_dim = v_head_dim;
    check_by_turns(spec,
                   {.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 140, .kv_len = 330});
  }
  check_by_turns(spec_of(f16, 256),
                 {.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 140, .kv_len = 330});
}

TEST_CASE("emulated GPU: a workspace for any call serves deterministic ones on Hopper") {
  const Spec spec = spec_of(bf16, 64, kCausal);
  const Attention attention(spec, {.device = Device::parse("cuda")});
  const Bindings bindings = attention.bind({});
  const std::int64_t bytes = attention.workspace_size(kSquare, Pass::backward);
  CHECK(attention.workspace_size(kSquare, Pass::backward, bindings, true) == bytes);
  CHECK(attention.workspace_size(kSquare, Pass::backward, bindings, false) == bytes);
}

TEST_CASE("emulated GPU: planted faults of deterministic gradients on Hopper are seen") {
  const std::string folder = "cuda/hopper/backward/";
  const test::Fault impatient = {"blocks add without their turn", folder + "turns.hpp",
                                 "    wait_for_turn(counter_, turn_);\n", ""};
  CHECK(is_seen(impatient, spec_of(f16, 128),
                {.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 203, .kv_len = 1100}));
  const std::vector<test::Fault> faults = {
      {"a turn is passed on before what was added is in memory", folder + "turns.hpp",
       "      wait_until_stores_written();\n", ""},
      {"all parts of dQ share turns", folder + "turns.hpp", "* kConsumers +\n               part_",
       "* kConsumers"},
      {"turns of full tiles are not counted", folder + "ordered_planner.hpp",
       "for (int i = 0; i < 2; ++i)", "for (int i = 0; i < 1; ++i)"},
      {"turns are of the first head's mask", folder + "ordered_planner.hpp",
       "list_row(arguments_.rows, own.b, h, block)", "list_row(arguments_.rows, own.b, 0, block)"}};
  Spec by_head = spec_of(f16, 128, "h == 1 || abs(q_idx - kv_idx) < 70");
  const Shape two_heads{
      .batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 300, .kv_len = 1100};
  for (const test::Fault& fault : faults) {
    CAPTURE(fault.what);
    CHECK(is_seen(fault, by_head, two_heads));
  }
  Spec of_two = spec_of(f16, 128, kCausal);
  of_two.block = {64, 256};
  CHECK(is_seen({"the last block of columns counts as whole", folder + "ordered_planner.hpp",
                 "turn -= blocks * kOfBlock - arguments_.kv_tiles", "turn -= 0"},
                of_two,
                {.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 400, .kv_len = 300}));
}

TEST_CASE("emulated GPU: planted faults of deterministic gradients above 128 columns are seen") {
  const std::string file = "cuda/hopper/backward/turns.hpp";
  const std::vector<test::Fault> faults = {
      {"a warpgroup does not wait for its turn", file,
       "{ sync_named<kDqTurnThreads>(kDqEmptyBarrier + part); }", "{}"},
      {"a turn is passed on before the warpgroup has added", file,
       "    sync_named<kDqTurnThreads>(kDqFullBarrier + part);\n", ""}};
  Spec spec = spec_of(f16, 192);
  spec.v_head_dim = 128;
  const Shape shape{.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 203, .kv_len = 300};
  for (const test::Fault& fault : faults) {
    CAPTURE(fault.what);
    CHECK(is_seen(fault, spec, shape));
  }
}
