// Plans whose tiles lists over positions decide, on the emulated GPU: the portable kernel in
// float32 and on tensor cores, and Hopper's.
#include "runtime/call/plan_state.hpp"
#include "tests/support/position_lists.hpp"

namespace tilewright {
using namespace packed_calls;

namespace {

// As of packed_test.cpp.
constexpr double kF16Tolerance = 2 * 1.5 * 0x1p-11;

Spec spec_of(int dim, std::array<std::int64_t, 2> block) {
  Spec spec = causal_spec(dim, block);
  spec.dtype = GENERATE(f32, f16);
  if (spec.dtype == f16) {
    spec.tactic =
        GENERATE(values<std::optional<TacticSpec>>({std::nullopt, TacticSpec{.name = "portable"}}));
  }
  return spec;
}

}  // namespace

TEST_CASE("packed on a GPU: positions from vLLM's lists with a causal mask_mod") {
  const Spec spec = spec_of(16, {64, 64});
  CAPTURE(to_string(spec.dtype), spec.tactic.has_value());
  check_sparse_lists(spec, spec.dtype == f16 ? kF16Tolerance : 2e-5, Device::parse("cuda"));
}

TEST_CASE("packed on a GPU: positions from a dense Attention", "[every-kind]") {
  const Spec spec = spec_of(16, {128, 64});
  CAPTURE(to_string(spec.dtype), spec.tactic.has_value());
  check_dense_lists(spec, spec.dtype == f16 ? kF16Tolerance : 2e-5, Device::parse("cuda"));
}

TEST_CASE("packed on a GPU: positions of any offsets and lengths are planned as on the CPU") {
  // In f16 a q tile of Hopper's covers rows of two rows of the tile map.
  const DType dtype = GENERATE(f32, f16);
  const bool spans_two = dtype == f16;
  Spec spec = causal_spec(
      16, spans_two ? std::array<std::int64_t, 2>{128, 128} : std::array<std::int64_t, 2>{64, 32});
  spec.dtype = dtype;
  CAPTURE(to_string(dtype));
  const PackedShape shape = {
      .batch = 4, .num_q_heads = 2, .num_kv_heads = 1, .total_q = 400, .total_kv = 5000};
  const Attention on_cpu(spec, {.device = Device::cpu(), .positions = true});
  const Attention on_gpu(spec, {.device = Device::parse("cuda"), .positions = true});
  const SparsePattern pattern{.block = 64, .local = 2, .vertical = 3, .step = 1};
  MaskFingerprint fingerprint = on_cpu.position_fingerprint(1000, 2);
  fingerprint.shape.kv_len = spans_two ? 1024 : 512;
  const BlockMask positions =
      block_mask_from_csr(fingerprint, SparseLists(pattern, 2, spans_two ? 8 : 16).view());
  Tensor q_begin = int_tensor({0, 100, 100, 331, 400}), kv_begin = int_tensor({0, 700, 1000, 0});
  Tensor kv_len = int_tensor({700, 300, 1000, 5000}), q_offset = int_tensor({5, 0, 900, -60});
  const Sequences sequences = {.q_begin = q_begin,
                               .kv_begin = kv_begin.view(),
                               .kv_len = kv_len.view(),
                               .q_offset = q_offset.view()};
  Workspace cpu_memory(on_cpu.workspace_size(shape)), gpu_memory(on_gpu.workspace_size(shape));
  Plan cpu =
      on_cpu.plan(shape, sequences, {}, {.workspace = cpu_memory.view(), .positions = &positions});
  Plan gpu =
      on_gpu.plan(shape, sequences, {}, {.workspace = gpu_memory.view(), .positions = &positions});
  const Tensor q = in_dtype(random_tensor({400, 2, 16}, 1), dtype);
  const Tensor k = in_dtype(random_tensor({5000, 1, 16}, 2), dtype);
  Tensor out = Tensor::zeros(dtype, {400, 2, 16}), wanted = Tensor::zeros(dtype, {400, 2, 16});
  Tensor ours = Tensor::zeros(f32, {400, 2, 16}), theirs = Tensor::zeros(f32, {400, 2, 16});
  Tensor lse = Tensor::zeros(f32, {2, 400});
  unsigned state = 7;
  for (int round = 0; round < 12; ++round) {
    CHECK(gpu.report().text() == cpu.report().text());
    CHECK(gpu.report().count == cpu.report().count);
    const PlanMap a(cpu, spec.block), b(gpu, spec.block);
    for (std::int64_t s = 0; s < 4; ++s) {
      REQUIRE(std::memcmp(&a.sequences()[static_cast<std::size_t>(s)],
                          &b.sequences()[static_cast<std::size_t>(s)],
                          sizeof(abi::PlannedSequence)) == 0);
      for (std::int64_t i = 0; i < 2 * a.q_blocks(s); ++i) {
        REQUIRE(a.row(s, i % 2, i / 2) == b.row(s, i % 2, i / 2));
      }
    }
    on_cpu.forward({.q = q, .k = k, .v = k, .out = wanted, .lse = lse.view()}, cpu);
    on_gpu.forward({.q = q, .k = k, .v = k, .out = out, .lse = lse.view()}, gpu);
    read_back(out, ours);
    read_back(wanted, theirs);
    float greatest = 0;
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      greatest = std::fmax(greatest, std::fabs(floats(ours)[i] - floats(theirs)[i]));
    }
    CHECK(greatest <= (spans_two ? static_cast<float>(kF16Tolerance) : 2e-5f));
    for (std::int64_t s = 0; s < 4; ++s) {
      state = state * 1664525u + 1013904223u;
      static_cast<int*>(q_offset.data())[s] = static_cast<int>(state >> 20) % 1100 - 90;
      static_cast<int*>(kv_len.data())[s] = static_cast<int>(state >> 8) % 4 * 200;
    }
    on_cpu.rebuild(cpu);
    on_gpu.rebuild(gpu);
  }
}

}  // namespace tilewright
