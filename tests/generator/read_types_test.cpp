#include "generator/read_types.hpp"

#include "tests/support/catch.hpp"

using namespace tilewright;

TEST_CASE("read types: numbers where a type is deduced or two are made one") {
  for (const char* text :
       {"score + (q_idx >= kv_idx ? bias(h, q_idx, kv_idx) : 0)", "max(bias(h, 0, 0), 0) + score",
        "score + clamp(bias(h, q_idx, kv_idx), -1, 1)", "score + select(h > 1, bias(h, 1, 2), 0)",
        "auto x = bias(h, q_idx, kv_idx); x *= 2; return x;",
        "return [&] { return bias(h, q_idx, kv_idx); }();"}) {
    CAPTURE(text);
    CHECK(reads_are_numbers({.dtype = bf16, .head_dim = 64, .score_mod = text}));
  }
}

TEST_CASE("read types: numbers where one side of && changes a variable") {
  for (const char* text :
       {"int n = 0; bool c = flag(b, kv_idx) > 0 && ++n > 0; return n == 0 || c;",
        "int n = 0; bool c = flag(b, kv_idx) > 0 and (n = 3); return n == 0;",
        "bool keep = flag(b, 1) == 2; if (h) keep &= q_idx >= kv_idx && h > 1; return keep;"}) {
    CAPTURE(text);
    CHECK(reads_are_numbers({.dtype = bf16, .head_dim = 64, .mask_mod = text}));
  }
}

TEST_CASE("read types: truths where both sides of && may be evaluated") {
  for (const char* text :
       {"q_idx >= kv_idx && doc(b, q_idx) == doc(b, kv_idx)",
        "const int d = doc(b, q_idx); return d == doc(b, kv_idx) || kv_idx < prefix[b];",
        "if (q_idx < kv_idx) return false; return doc(b, q_idx) == doc(b, kv_idx);"}) {
    CAPTURE(text);
    CHECK_FALSE(reads_are_numbers({.dtype = bf16, .head_dim = 64, .mask_mod = text}));
  }
}
