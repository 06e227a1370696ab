#include "tests/compile_matrix/operands.hpp"

#include "generator/kernel_source.hpp"
#include "generator/templates.hpp"
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
}

TEST_CASE("operands: the products of Hopper's kernel name each register once") {
  const Spec spec{.name = "plain", .dtype = bf16, .head_dim = 128};
  std::string text = render_kernel(spec, Target::parse("sm_90a"), KernelVariant::parse("forward"),
                                   *default_template_loader())
                         .text;
  REQUIRE(repeated_operand(text).empty());
  const std::size_t wait = text.find("wgmma.wait_group.sync.aligned 1;");
  const std::size_t last = text.find("\"+f\"(s[0][1])", wait);
  REQUIRE(last != std::string::npos);
  text.replace(last, 13, "\"+f\"(s[0][0])");
  CHECK(repeated_operand(text) == "an asm statement writes s[0][0] twice");
}
