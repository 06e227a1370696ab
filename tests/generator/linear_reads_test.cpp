#include "generator/linear_reads.hpp"

#include <string>
#include <vector>

#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

// "bias[kv_idx - q_idx], table[q_idx + 1]"
std::string found(const std::string& score_mod, Bounds bounds = Bounds::clamped) {
  Spec spec{.dtype = bf16, .head_dim = 64, .score_mod = score_mod};
  spec.buffers["bias"] = {.dtype = f32, .shape = {std::int64_t{16}}, .bounds = bounds};
  spec.buffers["table"] = {.dtype = f32, .shape = {std::int64_t{4}, std::int64_t{16}}};
  spec.buffers["gain"] = {.dtype = f32, .shape = {}};
  spec.scalars["shift"] = {.dtype = i32};
  std::string text;
  for (const LinearRead& read : linear_reads(spec)) {
    text += (text.empty() ? "" : "; ") + read.buffer + ": " + read.indices;
    text += read.has_own_element ? " (its own)" : "";
  }
  return text;
}

}  // namespace

TEST_CASE("linear reads: sums of indices, lengths and whole numbers") {
  CHECK(found("score + bias[q_idx - kv_idx + 8192]") == "bias: q_idx - kv_idx + 8192");
  CHECK(found("score + bias[-q_idx + (kv_idx - (h + 2)) + kv_len - q_len]") ==
        "bias: - q_idx + (kv_idx - (h + 2)) + kv_len - q_len");
  CHECK(found("return score + table(h, kv_idx - q_idx) * bias[kv_idx + 1];") ==
        "table: h, kv_idx - q_idx; bias: kv_idx + 1");
  CHECK(found("q_idx >= kv_idx ? score + bias[q_idx - kv_idx] : score") == "bias: q_idx - kv_idx");
}

TEST_CASE("linear reads: a buffer without dimensions has no index") {
  CHECK(found("score * gain + bias[kv_idx - q_idx]") == "bias: kv_idx - q_idx");
}

TEST_CASE("linear reads: rows and columns in different indices have elements of their own") {
  CHECK(found("score + table(q_idx, kv_idx)") == "table: q_idx, kv_idx (its own)");
  CHECK(found("score + table(kv_idx + 1, h + q_idx)") == "table: kv_idx + 1, h + q_idx (its own)");
  CHECK(found("score + table(h, q_idx - kv_idx)") == "table: h, q_idx - kv_idx");
}

TEST_CASE("linear reads: clamped to what no index is part of") {
  CHECK(found("score + bias[clamp(kv_idx - q_idx, -8, h + 7) + 8]") ==
        "bias: clamp(kv_idx - q_idx, - 8, h + 7) + 8");
  CHECK(found("score + bias[clamp(kv_idx, q_idx, 7)]").empty());
  CHECK(found("score + bias[clamp(kv_idx, 0)]").empty());
}

TEST_CASE("linear reads: not a clamp beside another part, whose sum rises and falls") {
  CHECK(found("score + bias[64 - clamp(q_idx - kv_idx, 0, 64) - clamp(kv_idx - q_idx, 0, 64)]")
            .empty());
  CHECK(found("score + bias[kv_idx - clamp(kv_idx, 0, 7)]").empty());
  CHECK(found("score + bias[clamp(q_idx + clamp(kv_idx, 0, 7), 0, 9)]").empty());
  CHECK(found("int d = clamp(kv_idx - q_idx, 0, 7); return score + bias[d + kv_idx];").empty());
  CHECK(found("score + bias[8 - clamp(clamp(kv_idx, 0, 9), 1, 7) + h]") ==
        "bias: 8 - clamp(clamp(kv_idx, 0, 9), 1, 7) + h");
}

TEST_CASE("linear reads: whole numbers with a name of their own stand for their sums") {
  CHECK(found("const int d = kv_idx - q_idx; int e = d + 3;\nreturn score + bias[e - 1];") ==
        "bias: ((kv_idx - q_idx) + 3) - 1");
  for (const char* change : {"d = 3;",
                             "d += h;",
                             "++d;",
                             "d--;",
                             "if (h) { int d = 1; }",
                             "int& r = d; r = 3;",
                             "auto&& r = d; r = 3;",
                             "decltype((d)) r = d; r = 3;",
                             "const auto f = [&](int d) { return d; };",
                             "d and_eq 3;",
                             "d or_eq h;",
                             "d xor_eq h;",
                             "(d) = 3;",
                             "(d) += 3;",
                             "if (h) (d) = 3;",
                             "(d)++;",
                             "++(d);",
                             "--((d));",
                             "(h ? d : d) = 3;",
                             "auto p = &(d); *p = 3;",
                             "f(&(d));",
                             "int bitand r = d; r = 3;",
                             "auto and r = d; r = 3;"}) {
    CAPTURE(change);
    CHECK(
        found("int d = kv_idx - q_idx;" + std::string(change) + "return score + bias[d];").empty());
  }
  for (const char* type :
       {"short", "unsigned", "long", "signed", "long long", "unsigned const", "short volatile"}) {
    CAPTURE(type);
    CHECK(found(type + std::string(" int d = kv_idx; return score + bias[d];")).empty());
  }
  CHECK(
      found("const int d = kv_idx; float x = 0; for (int i = 0; i < 2; ++i) ++x; return (h) * x + "
            "bias[d];") == "bias: (kv_idx)");
  CHECK(found("const float x = bias[shift]; int shift = kv_idx - q_idx; return x + bias[shift];")
            .empty());
  CHECK(found("float d = kv_idx - q_idx; return score + bias[d];").empty());
  CHECK(found("int d = kv_idx * q_idx; return score + bias[d];").empty());
}

TEST_CASE("linear reads: what is done ahead is none of them") {
  CHECK(found("score + bias[h]").empty());
  CHECK(found("score + bias[kv_idx] * bias[kv_idx - q_idx]") == "bias: kv_idx - q_idx");
}

TEST_CASE("linear reads: none at all where one is something else") {
  for (const char* read :
       {"bias[q_idx * kv_idx]", "bias[abs(kv_idx - q_idx)]", "bias[max(kv_idx, q_idx)]",
        "bias[kv_idx / 2]", "bias[int(score)]", "bias[kv_idx - 1.0]", "bias[kv_idx - 1u]",
        "bias[kv_idx - 0xFFFFFFFF]", "bias[kv_idx - 4294967296]", "bias[bias[kv_idx]]",
        "bias[kv_idx % 4]", "bias[kv_idx << 1]", "bias.size(0)"}) {
    CAPTURE(read);
    CHECK(found("score + bias[kv_idx - q_idx] + " + std::string(read)).empty());
  }
  CHECK(found("score + bias[kv_idx - q_idx]", Bounds::trusted).empty());
}

TEST_CASE("linear reads: none where a name may mean something else") {
  for (const char* declared : {"int kv_len = 1 << 30;", "const int h = 3;", "auto clamp = kv_idx;",
                               "int q_len{7};", "float bias[3] = {};"}) {
    CAPTURE(declared);
    const std::string body = " return score + bias[kv_idx - q_idx + kv_len - clamp(h, 0, 1)];";
    CHECK(!found(body).empty());
    CHECK(found(declared + body).empty());
  }
}
