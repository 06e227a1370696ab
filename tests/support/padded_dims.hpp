#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generator/spec/spec.hpp"
#include "tests/support/catch.hpp"
#include "verify/check.hpp"
#include "verify/random_inputs.hpp"
#include "verify/random_sequences.hpp"

// Head dims that kernels pad inside their tiles, of dense, packed and paged calls.

namespace tilewright::padded_dims {

using namespace verify;

inline Spec spec_of(DType dtype, std::int64_t head_dim, std::int64_t v_head_dim = 0) {
  return {.dtype = dtype,
          .head_dim = head_dim,
          .v_head_dim = v_head_dim,
          .score_mod = "score + 0.1f * (kv_idx - q_idx)",
          .mask_mod = "q_idx >= kv_idx",
          .outputs = {.lse = true}};
}

inline constexpr Shape kShape{
    .batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 70, .kv_len = 133};

/// The least, PyTorch's tests' and the greatest; q and v whose padded dims are the same.
inline std::vector<Spec> dense_specs() {
  Spec mixed = spec_of(f32, 41, 50);
  mixed.kv_dtype = bf16;
  Spec widened = spec_of(f16, 13);
  widened.out_dtype = f32;
  widened.outputs.max_scores = true;
  return {spec_of(f32, 8),
          spec_of(f16, 8),
          spec_of(f32, 17),
          spec_of(bf16, 17),
          spec_of(f32, 24, 94),
          spec_of(f16, 94, 24),
          spec_of(bf16, 121),
          spec_of(f32, 121, 9),
          spec_of(bf16, 20, 17),
          spec_of(f32, 17, 20),
          spec_of(f16, 255, 254),
          spec_of(f32, 255),
          mixed,
          widened};
}

inline void require_right(const Checker& checker, const Problem& problem,
                          const Placement& placement = {}) {
  const Report report = checker.check(problem, placement);
  std::string reasons;
  for (const std::string& reason : report.reasons()) reasons += reason + "\n";
  INFO(reasons);
  REQUIRE(report.ok);
}

inline CheckOptions on(const char* device) {
  CheckOptions options;
  options.attention.device = Device::parse(device);
  return options;
}

inline void check_dense(const char* device) {
  for (const Spec& spec : dense_specs()) {
    CAPTURE(to_string(spec.dtype), spec.head_dim, spec.value_head_dim());
    const Checker checker(spec, on(device));
    const Inputs inputs = random_inputs(spec, kShape, 5);
    require_right(checker, inputs.problem());
    require_right(checker, inputs.problem(), {.row_padding = 3, .offset = 1});
  }
}

inline void check_packed(const char* device) {
  for (const Layout kv_layout : {Layout::packed, Layout::paged}) {
    for (const bool has_new_rows : {false, true}) {
      if (has_new_rows && kv_layout != Layout::paged) continue;
      Spec spec = spec_of(has_new_rows ? bf16 : f32, 17, 94);
      spec.layout = Layout::packed;
      spec.kv_layout = kv_layout;
      spec.kv_new = has_new_rows;
      const PackedLengths lengths{
          .num_q_heads = 4,
          .num_kv_heads = 2,
          .sequences = {{1, 133}, {40, 100}, {0, 5}, {33, 33}},
          .pages = {.page_size = kv_layout == Layout::paged ? std::int64_t{16} : 0},
          .has_new_rows = has_new_rows};
      require_right(Checker(spec, on(device)), random_packed_inputs(spec, lengths, 5).problem());
    }
  }
}

}  // namespace tilewright::padded_dims
