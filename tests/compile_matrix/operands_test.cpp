#include "tests/compile_matrix/operands.hpp"

#include "generator/render/kernel_source.hpp"
#include "generator/render/templates.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using compile_matrix::repeated_operand;

TEST_CASE("operands: a variable that is written twice is found, one that is read twice is fine") {
  CHECK(repeated_operand("x = 1;").empty());
  CHECK(
      repeated_operand(R"(asm volatile("add %0, %1;" : "=f"(s[0]), "=f"(s[1]) : "r"(p), "r"(p));)")
          .empty());
  CHECK(repeated_operand(R"(asm volatile("a: (%0);" : "=f"(s[f(0)]),
      "+f"( s[f(0)] ) : : "memory");)") == "an asm statement writes s[f(0)] twice");
  CHECK(repeated_operand(
            R"(asm volatile("fence;" ::: "memory"); asm volatile("\"x\"" : "+r"(a), "+r"(a));)") ==
        "an asm statement writes a twice");
  CHECK(repeated_operand("#define L(as) \\\n  as(s[0]), as(s[1]), \\\n  as(s[0])\n") ==
        "an asm statement writes s[0] twice");
  CHECK(repeated_operand("#define L(as) as(s[0]), as(s[1])\nas(s[0])\n#define M 1\n").empty());
  CHECK(repeated_operand("#define F(op) a op(x) op(x)\n").empty());
}

TEST_CASE("operands: the products of Hopper's kernel name each register once") {
  const Spec spec{.name = "plain", .dtype = bf16, .head_dim = 128};
  std::string text = render_kernel(spec, Target::parse("sm_90a"), KernelVariant::parse("forward"),
                                   *default_template_loader())
                         .text;
  REQUIRE(repeated_operand(text).empty());
  const std::size_t second = text.find("kind(s[0][1])");
  REQUIRE(second != std::string::npos);
  text.replace(second, 13, "kind(s[0][0])");
  CHECK(repeated_operand(text) == "an asm statement writes s[0][0] twice");
}
