#pragma once

namespace tilewright::test {

// Small heads compile fast; most of what is tested here never gets that far.

inline constexpr const char* kPlain = R"json({"dtype": "f32", "head_dim": 16})json";

inline constexpr const char* kCausal = R"json({
  "name": "causal", "dtype": "f32", "head_dim": 16, "block": [64, 64],
  "mask_mod": "q_idx >= kv_idx", "outputs": ["out", "lse"]})json";

inline constexpr const char* kDocuments = R"json({
  "name": "documents", "dtype": "f32", "head_dim": 16, "block": [64, 64],
  "score_mod": "score * cap",
  "mask_mod": "doc(b, q_idx) == doc(b, kv_idx)",
  "buffers": {"doc": {"dtype": "i32", "shape": ["batch", "kv_len"],
                      "range": [0, 3], "sorted": true}},
  "scalars": {"cap": {"dtype": "f32"}}})json";

}  // namespace tilewright::test
