#pragma once

namespace tilewright::test {

// Small heads compile fast; most of what is tested here never gets that far.

inline constexpr const char* kPlain = R"({"dtype": "f32", "head_dim": 16})";

inline constexpr const char* kCausal = R"({
  "name": "causal", "dtype": "f32", "head_dim": 16, "block": [64, 64],
  "mask_mod": "q_idx >= kv_idx", "outputs": ["out", "lse"]})";

inline constexpr const char *kDocuments = R"({
  "name": "documents", "dtype": "f32", "head_dim": 16, "block": [64, 64],
  "score_mod": "score * cap",
  "mask_mod": "doc(b, q_idx) == doc(b, kv_idx)",
                            "buffers"
    : {
      "doc" :
          {"dtype" : "i32", "shape" : [ "batch", "kv_len" ], "range" : [ 0, 3 ], "sorted" : true}
    },
                            "scalars" : {
  "cap" : {
    "dtype" : "f32"
  }
}
})";

}  // namespace tilewright::test
