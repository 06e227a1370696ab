#include "generator/messages/compiler_messages.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

constexpr std::string_view kSource =
    "bool g(int q_idx, int b) {\n"
    "    return (\n"
    "    q_idx >= kv_idxx && b == 3\n"
    "    );\n"
    "}\n"
    "template<typename T> T h(T x) { return x.a; }\n"
    "void k() { h(3); }\n";

}  // namespace

TEST_CASE("NVRTC's messages: the column counts the indentation that the log leaves out") {
  const auto messages = parse_nvrtc_messages(
      "kernel.cu(3): error: identifier \"kv_idxx\" is undefined\n"
      "  q_idx >= kv_idxx && b == 3\n"
      "           ^\n\n"
      "1 error detected in the compilation of \"kernel.cu\".\n",
      kSource);
  REQUIRE(messages.size() == 1);
  REQUIRE(messages[0].is_error);
  REQUIRE(messages[0].line == 3);
  REQUIRE(messages[0].column == 14);
  REQUIRE(messages[0].text == "identifier \"kv_idxx\" is undefined");
}

TEST_CASE("NVRTC's messages: what an instantiation was asked for by comes before its error") {
  const auto messages = parse_nvrtc_messages(
      "kernel.cu(6): error: expression must have class type but it has type \"int\"\n"
      "  template<typename T> T h(T x) { return x.a; }\n"
      "                                         ^\n"
      "          detected during instantiation of \"T h(T) [with T=int]\" at line 7\n",
      kSource);
  REQUIRE(messages.size() == 2);
  REQUIRE(messages[0].text == "required from here");
  REQUIRE_FALSE(messages[0].is_error);
  REQUIRE(messages[0].line == 7);
  REQUIRE(messages[1].column == 40);
}

TEST_CASE("NVRTC's messages: warnings are no errors, and numbered errors are") {
  const auto messages = parse_nvrtc_messages(
      "kernel.cu(1): warning #177-D: function \"g\" was declared but never referenced\n\n"
      "kernel.cu(4): error #65-D: expected a \";\"\n\n"
      "kernel.cu(5): catastrophic error: too many\n",
      kSource);
  REQUIRE(messages.size() == 3);
  REQUIRE_FALSE(messages[0].is_error);
  REQUIRE(messages[1].is_error);
  REQUIRE(messages[1].text == "expected a \";\"");
  REQUIRE(messages[2].text == "too many");
}

TEST_CASE("NVRTC's messages: a line that does not fit the source has no column") {
  const std::string_view head = "kernel.cu(3): error: identifier \"x\" is undefined\n";
  for (const std::string_view tail : {"  something else\n  ^\n", "  q_idx >= kv_idxx\n", "",
                                      "  q_idx >= kv_idxx\n  no caret\n"}) {
    const auto messages = parse_nvrtc_messages(std::string(head) + std::string(tail), kSource);
    REQUIRE(messages.size() == 1);
    REQUIRE(messages[0].column == 0);
  }
  REQUIRE(parse_nvrtc_messages("kernel.cu(9999999): error: x\n  a\n  ^\n", kSource)[0].column == 0);
  REQUIRE(parse_nvrtc_messages("other.cu(3): error: x\n", kSource).empty());
}
