// Packed calls on the emulated GPU, against dense calls on the CPU: the portable kernel in float32
// and on tensor cores, and Hopper's.
#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "runtime/call/plan_state.hpp"
#include "tests/support/packed_batch.hpp"

namespace tilewright {
using namespace packed_calls;

namespace {

// P in f16 is off by 2^-11 of each weight, and so is each element of out, of at most 1.5, and its
// rounding by as much again.
constexpr float kF16Tolerance = 2 * 1.5f * 0x1p-11f;

void check(Spec spec, const Batch& batch) {
  spec.dtype = GENERATE(f32, f16);
  if (spec.dtype == f16)
    spec.tactic =
        GENERATE(values<std::optional<TacticSpec>>({std::nullopt, TacticSpec{.name = "portable"}}));
  CAPTURE(to_string(spec.dtype), spec.tactic.has_value(), spec.mask_mod);
  Batch made = {
      .lengths = batch.lengths, .heads = batch.heads, .kv_heads = batch.kv_heads, .dim = batch.dim};
  made.make();
  check_against_dense(spec, made, spec.dtype == f16 ? kF16Tolerance : 2e-5f, Device::parse("cuda"));
}

}  // namespace

TEST_CASE("packed on a GPU: without snippets") {
  check(packed_spec(64, "", true), {.lengths = {{128, 128}, {57, 57}, {1, 1}, {200, 200}},
                                    .heads = 2,
                                    .kv_heads = 2,
                                    .dim = 64});
}

TEST_CASE("packed on a GPU: causal, bottom right, rows and sequences without columns",
          "[every-kind]") {
  check(packed_spec(32, "q_idx >= kv_idx", true),
        {.lengths = {{1, 332}, {5, 18}, {129, 263}, {0, 9}, {7, 3}, {64, 0}, {140, 30}},
         .heads = 4,
         .kv_heads = 2,
         .dim = 32});
}

TEST_CASE("packed on a GPU: more kv tiles than the ring of tiles has room for") {
  check(packed_spec(16, "q_idx >= kv_idx && (q_idx - kv_idx) % 1500 < 700", false),
        {.lengths = {{3, 5000}, {40, 2500}}, .heads = 1, .kv_heads = 1, .dim = 16});
}

// Hopper's q tiles have 192 rows, and rows of tiles 128; the portable kernel's fill either.
TEST_CASE("packed on a GPU: q tiles over two rows of the tile map") {
  // Rows of tiles without anything next to full ones; both with partial tiles; heads with their
  // own.
  const char* const mask =
      GENERATE("(q_idx / 128 + kv_idx / 128) % 3 == 1", "q_idx >= kv_idx && q_idx - kv_idx < 150",
               "(q_idx / 128 + h) % 2 == 0 && kv_idx % 200 < 190");
  Spec spec = packed_spec(16, mask, true);
  spec.dtype = f16;
  spec.tactic =
      GENERATE(values<std::optional<TacticSpec>>({std::nullopt, TacticSpec{.name = "portable"}}));
  CAPTURE(mask, spec.tactic.has_value());
  Batch batch = {
      .lengths = {{1, 300}, {128, 129}, {192, 260}, {193, 193}, {0, 9}, {321, 1}, {500, 500}},
      .heads = 2,
      .kv_heads = 1,
      .dim = 16};
  batch.make();
  check_against_dense(spec, batch, kF16Tolerance, Device::parse("cuda"));
}

TEST_CASE("packed on a GPU: masks that tell heads apart, and one that no interval decides") {
  const char* const mask = GENERATE("q_idx >= kv_idx && (q_idx - kv_idx) < 100 + 64 * h",
                                    "(q_idx * 7 + kv_idx * 13) % 5 != 2");
  check(packed_spec(32, mask, true),
        {.lengths = {{200, 300}, {33, 400}}, .heads = 2, .kv_heads = 1, .dim = 32});
}

namespace {

// What two devices plan for the same tensors.
struct Plans {
  Attention on_cpu, on_gpu;
  Workspace cpu_memory, gpu_memory;
  Plan cpu, gpu;

  Plans(const Spec& spec, const PackedShape& shape, const Sequences& sequences)
      : on_cpu(spec, {.device = Device::cpu()}),
        on_gpu(spec, {.device = Device::parse("cuda")}),
        cpu_memory(on_cpu.workspace_size(shape)),
        gpu_memory(on_gpu.workspace_size(shape)),
        cpu(on_cpu.plan(shape, sequences, {}, {.workspace = cpu_memory.view()})),
        gpu(on_gpu.plan(shape, sequences, {}, {.workspace = gpu_memory.view()})) {}

  void rebuild() {
    on_cpu.rebuild(cpu);
    on_gpu.rebuild(gpu);
  }

  // Sequences, and the tiles of each row that has rows of q.
  void check_equal() const {
    const PlanState& a = cpu.state();
    const PlanState& b = gpu.state();
    const abi::PlanLayout& layout = a.geometry.layout;
    const auto batch = static_cast<int>(a.shape.batch);
    const auto at = [](const PlanState& plan, long long offset) { return plan.memory + offset; };
    REQUIRE(std::memcmp(at(a, layout.sequences), at(b, layout.sequences),
                        static_cast<std::size_t>(batch) * sizeof(abi::PlannedSequence)) == 0);
    const auto* const header = reinterpret_cast<const abi::PlanHeader*>(a.memory);
    REQUIRE(header->rows == reinterpret_cast<const abi::PlanHeader*>(b.memory)->rows);
    const auto* const sequences =
        reinterpret_cast<const abi::PlannedSequence*>(at(a, layout.sequences));
    const auto* const work = reinterpret_cast<const abi::PlannedRow*>(at(a, layout.work));
    std::size_t different = 0;
    for (int head = 0; head < a.geometry.heads; ++head) {
      for (int i = 0; i < header->rows; ++i) {
        const abi::PlannedSequence& sequence = sequences[work[i].sequence];
        const long long row = 1LL * head * a.geometry.rows + work[i].q_block + sequence.tile_row;
        const std::size_t spans = (static_cast<std::size_t>(sequence.kv_len) + 4095) / 4096;
        const long long offset = layout.spans + row * a.geometry.spans_of_row * 8LL;
        different += std::memcmp(at(a, offset), at(b, offset), spans * 8) != 0 ? 1 : 0;
      }
    }
    CHECK(different == 0);
    check_orders();
  }

  // Each list has every row once, those that keep most tiles first.
  void check_orders() const {
    const PlanState& a = cpu.state();
    const PlanGeometry& geometry = gpu.state().geometry;
    const std::byte* const memory = gpu.state().memory;
    const auto* const header = reinterpret_cast<const abi::PlanHeader*>(memory);
    const auto* const sequences =
        reinterpret_cast<const abi::PlannedSequence*>(memory + geometry.layout.sequences);
    const auto* const spans =
        reinterpret_cast<const abi::TileSpan*>(memory + geometry.layout.spans);
    for (int head = 0; head < geometry.heads; ++head) {
      std::vector<std::pair<int, int>> rows[2];
      long long least = 1LL << 40;
      std::size_t rises = 0;
      for (int i = 0; i < header->rows; ++i) {
        const auto row_of = [&](const PlanState& plan) {
          return reinterpret_cast<const abi::PlannedRow*>(
              plan.memory + plan.geometry.layout.work)[1LL * head * geometry.rows + i];
        };
        const abi::PlannedRow row = row_of(gpu.state());
        rows[0].emplace_back(row.sequence, row.q_block);
        rows[1].emplace_back(row_of(a).sequence, row_of(a).q_block);
        const abi::PlannedSequence& sequence = sequences[row.sequence];
        const long long first =
            (1LL * head * geometry.rows + sequence.tile_row + row.q_block) * geometry.spans_of_row;
        long long tiles = 0;
        for (int span = 0; span * 4096 < sequence.kv_len; ++span) {
          tiles += std::popcount(spans[first + span].kept);
        }
        rises += tiles > least ? 1 : 0;
        least = tiles;
      }
      for (auto& list : rows) std::sort(list.begin(), list.end());
      CHECK(rows[0] == rows[1]);
      CHECK(rises == 0);
    }
    const auto* const arrivals =
        reinterpret_cast<const unsigned*>(memory + geometry.layout.arrivals);
    CHECK(std::count(arrivals, arrivals + geometry.heads, 0u) == geometry.heads);
  }
};

}  // namespace

TEST_CASE("packed on a GPU: the plan has the tiles of the CPU's") {
  const char* const mask =
      GENERATE("q_idx >= kv_idx", "q_idx >= kv_idx && q_idx - kv_idx < 700 + 100 * h",
               "(q_idx / 64 + kv_idx / 64) % 3 == b % 3", "kv_len - kv_idx > q_len % 7 * 100");
  CAPTURE(mask);
  const Tensor q_begin = int_tensor({0, 130, 130, 139, 700});
  const Tensor kv_begin = int_tensor({5, 4600, 0, 4700}), kv_len = int_tensor({4500, 3, 4321, 0});
  const PackedShape shape = {.batch = 4, .num_q_heads = 2, .total_q = 710, .total_kv = 4700};
  const Plans plans(packed_spec(16, mask, false), shape,
                    {.q_begin = q_begin, .kv_begin = kv_begin.view(), .kv_len = kv_len.view()});
  CHECK(plans.gpu.report().count == 0);
  CHECK(plans.gpu.report().unplanned_rows == 10);
  plans.check_equal();
}

TEST_CASE("packed on a GPU: more sequences than a block of threads reads at once") {
  std::vector<int> begin = {0};
  for (int b = 0; b < 1100; ++b) begin.push_back(begin.back() + (b % 7 == 0 ? 0 : b % 3));
  begin.back() += 300;
  const int total = begin.back();
  const Tensor q_begin = int_tensor(begin), kv_begin = int_tensor(begin);
  const PackedShape shape = {.batch = 1100, .total_q = total, .total_kv = total};
  Plans plans(packed_spec(16, "q_idx >= kv_idx", false), shape,
              {.q_begin = q_begin, .kv_begin = kv_begin.view()});
  CHECK(plans.gpu.report().count == 0);
  CHECK(plans.gpu.report().unplanned_rows == 0);
  plans.check_equal();
  plans.rebuild();
  plans.check_equal();
}

TEST_CASE("packed on a GPU: more rows of tiles than a block of threads keeps at once") {
  const Tensor q_begin = int_tensor({0, 270'000, 270'000, 270'500});
  const Tensor kv_begin = int_tensor({0, 200, 200, 300});
  const PackedShape shape = {.batch = 3, .total_q = 270'500, .total_kv = 300};
  const Plans plans(packed_spec(16, "q_idx / 1000 % 3 != kv_idx / 64", false), shape,
                    {.q_begin = q_begin, .kv_begin = kv_begin.view()});
  plans.check_equal();
}

TEST_CASE("packed on a GPU: lengths that lie are clamped and reported as on the CPU") {
  Tensor q_begin = int_tensor({0, 20, 30, 40}), kv_begin = int_tensor({0, 10, 20, 50});
  Tensor kv_len = int_tensor({10, 10, 10}), q_offset = int_tensor({0, 0, 0});
  Tensor kv_offset = int_tensor({0, 0, 0});
  const PackedShape shape = {
      .batch = 3, .total_q = 40, .total_kv = 50, .max_q_len = 18, .max_kv_len = 25};
  Plans plans(packed_spec(16, "q_idx >= kv_idx", false), shape,
              {.q_begin = q_begin,
               .kv_begin = kv_begin.view(),
               .kv_len = kv_len.view(),
               .q_offset = q_offset.view(),
               .kv_offset = kv_offset.view()});
  const Tensor q = random_tensor({40, 1, 16}, 1), k = random_tensor({50, 1, 16}, 2);
  Tensor out = Tensor::zeros(f32, {40, 1, 16});
  unsigned state = 7;
  const auto lie = [&] {
    state = state * 1664525u + 1013904223u;
    const int wild[] = {
        0, -1, 40, 41, 2147483647, -2147483647 - 1, 20, 17, static_cast<int>(state)};
    return wild[state >> 20 & 7];
  };
  for (int round = 0; round < 40; ++round) {
    for (Tensor* tensor : {&q_begin, &kv_begin, &kv_len, &q_offset, &kv_offset}) {
      auto* const values = static_cast<int*>(tensor->data());
      for (std::int64_t i = 0; i < tensor->numel(); ++i) values[i] = lie();
    }
    plans.rebuild();
    CHECK(plans.gpu.report().count == plans.cpu.report().count);
    CHECK(plans.gpu.report().text() == plans.cpu.report().text());
    plans.on_gpu.forward({.q = q, .k = k, .v = k, .out = out}, plans.gpu);
    plans.on_cpu.forward({.q = q, .k = k, .v = k, .out = out}, plans.cpu);
  }
}

TEST_CASE("packed on a GPU: a row of one key is that key's value, whatever the maximum") {
  Spec spec = packed_spec(64, GENERATE("", "q_idx >= kv_idx"), true);
  spec.dtype = bf16;
  spec.out_dtype = f32;
  spec.score_mod = "50 * tanh(score / 50)";  // which has a fixed maximum
  const Attention attention(spec, {.device = Device::parse("cuda")});
  const PackedShape shape = {.batch = 3, .total_q = 72, .total_kv = 33};
  Workspace workspace(attention.workspace_size(shape));
  const Tensor q_begin = int_tensor({0, 1, 2, 72}), kv_begin = int_tensor({0, 1, 2, 33});
  const Plan plan = attention.plan(shape, {.q_begin = q_begin, .kv_begin = kv_begin.view()}, {},
                                   {.workspace = workspace.view()});
  const auto in_bf16 = [](const Tensor& tensor) {
    Tensor copy = Tensor::zeros(bf16, tensor.shape());
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      static_cast<std::uint16_t*>(copy.data())[i] = static_cast<std::uint16_t>(
          std::bit_cast<std::uint32_t>(static_cast<const float*>(tensor.data())[i]) >> 16);
    }
    return copy;
  };
  const Tensor q = in_bf16(random_tensor({72, 1, 64}, 1)),
               k = in_bf16(random_tensor({33, 1, 64}, 2));
  const Tensor v = in_bf16(random_tensor({33, 1, 64}, 3));
  Tensor out = Tensor::zeros(f32, {72, 1, 64}), lse = Tensor::zeros(f32, {1, 72});
  attention.forward({.q = q, .k = k, .v = v, .out = out, .lse = lse.view()}, plan);
  for (int i = 0; i < 2 * 64; ++i) {
    const float key = std::bit_cast<float>(
        static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(v.data())[i]) << 16);
    CHECK(std::fabs(floats(out)[i] - key) <= 0x1p-22f * std::fabs(key));  // two roundings
  }
}

TEST_CASE("packed on a GPU: no columns at all give rows of 0") {
  const Attention attention(packed_spec(16, "q_idx >= kv_idx", true),
                            {.device = Device::parse("cuda")});
  const PackedShape shape = {.batch = 1, .total_q = 40};
  Workspace workspace(attention.workspace_size(shape));
  const Tensor q_begin = int_tensor({0, 40}), kv_begin = int_tensor({0, 0});
  const Plan plan = attention.plan(shape, {.q_begin = q_begin, .kv_begin = kv_begin.view()}, {},
                                   {.workspace = workspace.view()});
  const Tensor q = random_tensor({40, 1, 16}, 1), none = Tensor::zeros(f32, {0, 1, 16});
  Tensor out = random_tensor({40, 1, 16}, 2), lse = Tensor::zeros(f32, {1, 40});
  attention.forward({.q = q, .k = none, .v = none, .out = out, .lse = lse.view()}, plan);
  for (std::int64_t i = 0; i < out.numel(); ++i) REQUIRE(floats(out)[i] == 0.0f);
  for (int i = 0; i < 40; ++i) REQUIRE(floats(lse)[i] == -std::numeric_limits<float>::infinity());
}

}  // namespace tilewright
