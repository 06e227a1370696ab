#include "generator/conditional_effects.hpp"

#include "generator/kernel_source.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

bool found(std::string_view text) {
  return has_conditional_effects(SnippetKind::mask_mod, text);
}

}  // namespace

TEST_CASE("conditional effects: a variable is changed behind && or ||") {
  for (const char* text :
       {"int last = -1; (q_idx >= 64) && (last = 3); return last < 0;",
        "int n = 0; bool t = q_idx >= 128 && ++n > 0; return n == 0 || (t && q_idx >= kv_idx);",
        "int n = 0; if (q_idx > 100 && (n = kv_idx) > 20) return false; return n == 0;",
        "int n = 0; q_idx > 3 || n++; return n;", "int n = 0; q_idx > 3 or (n -= 2); return n;",
        "int n = 0; q_idx > 3 and (n or_eq 2); return n;", "int n = 0; h && (b || --n); return n;",
        "int n[2] = {}; (h > 3 && b) && (n[0] += 1); return n[0];",
        "int n = 0; h && [&] { int k = 1; n = 3; return k; }(); return n;",
        "int n = 0; auto f = [&] { return ++n; }; return h > 3 && f() && n;",
        "int n = 0; auto f = [&] { auto& r = n; r = 3; return r; }; return h && f() || n;",
        "int n = 0; auto f = [&] { auto p = &n; *p = 3; return n; }; return h && f() || n;",
        "int n = 0; auto f = [&] { auto bitand r = n; r = 3; return r; }; return h && f() || n;",
        "int n = 0; auto f = [&] { if (h) return 1; else return 2; return ++(n); };"
        "return h && f() || n;",
        "auto f = [n = 0]() mutable { return ++n; }; return h && f() || f() > 1;",
        "int n[1] = {}; auto f = [&] { return ++n[0]; }; return h && f() || n[0];"}) {
    CAPTURE(text);
    CHECK(found(text));
  }
}

TEST_CASE("conditional effects: none, or in any case") {
  for (const char* text :
       {"q_idx >= kv_idx && q_idx - kv_idx < 640", "int n = 0; n = 3; n += 2; return n;",
        "int n = h && b; n = 3; return n > 1 || b;", "bool t = h && b, u = !t; return u;",
        "if (h && b) return q_idx <= kv_idx; return q_idx == kv_idx;",
        "int n = 0; if (h && b) n = 3; return n > q_idx;",
        "int n = 0; for (int i = 0; i < 3 && i < h; ++i) n += i; return n > q_idx;",
        "auto f = [=](int x) { const int y = x / 2; return y > 3; }; return f(h) && f(b);",
        "auto f = [&](int x) { int n = 0; for (int i = 0; i < x; ++i) n += 2; return n > 3; };"
        "return f(3) && q_idx >= kv_idx;",
        "int n = 0; auto f = [&] { return ++n; }; return f() > q_idx;"}) {
    CAPTURE(text);
    CHECK(!found(text));
  }
}

TEST_CASE("conditional effects: a mask with them is evaluated") {
  Spec spec{.dtype = bf16, .head_dim = 64, .mask_mod = "q_idx >= kv_idx && h > 1"};
  CHECK(mask_kernel(spec).name() == "mask_proved");
  spec.mask_mod = "int last = -1; (q_idx >= 64) && (last = 3); return last < 0;";
  CHECK(mask_kernel(spec).name() == "mask_exact");
  for (const char* target : {"cpu-x86-64-v3", "sm_90a"}) {
    for (const KernelId& id : kernel_set(spec, Target::parse(target))) {
      CHECK(id.name() != "mask_proved");
    }
  }
}
