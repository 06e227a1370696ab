#include "generator/messages/compiler_messages.hpp"

#include <string>

#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

// A kernel of 9 lines: a template, score_mod in lines 3 to 5 (two spaces of indentation), a
// template, mask_mod in line 8, a template.
KernelSource kernel() {
  KernelSource source{.variant = {},
                      .target = Target::host_cpu(),
                      .text = {},
                      .map = {},
                      .template_files = {},
                      .options = {},
                      .entry_points = {}};
  source.text =
      "line one\n"
      "float score_mod() {\n"
      "  return (\n"
      "  score + slope[h]\n"
      "  );\n"
      "}\n"
      "bool mask_mod() {\n"
      "  return q_idx >= kv;\n"
      "}\n";
  source.map.add(1, 1, {"a.jinja", 1, 1, false}, true);
  source.map.add(3, 3, {"score_mod", 1, 1, true}, false);
  source.map.add(4, 3, {"score_mod", 1, 1, true}, true);
  source.map.add(5, 3, {"score_mod", 1, 17, true}, false);
  source.map.add(6, 1, {"a.jinja", 13, 1, false}, true);
  source.map.add(8, 3, {"mask_mod", 1, 1, true}, true);
  source.map.add(9, 1, {"a.jinja", 20, 1, false}, true);
  return source;
}

Spec spec() {
  Spec spec = {.dtype = f32, .head_dim = 64};
  spec.score_mod = "score + slope[h]";
  spec.mask_mod = "return q_idx >= kv;";
  spec.buffers["slopes"] = {.dtype = f32, .shape = {NamedDim::num_q_heads}};
  spec.scalars["cap"] = {};
  return spec;
}

Error report(const std::string& log) {
  return compile_error(spec(), kernel(), parse_host_messages(log), log);
}

// g++ 12.2, LC_ALL=C.
constexpr const char* kGccUndeclared =
    "kernel.cpp: In function 'float tw_snippet::tw_score_mod(const tw_State&, float)':\n"
    "kernel.cpp:4:11: error: 'slope' was not declared in this scope; did you mean 'tw_slope'?\n"
    "    4 |   score + slope[h]\n"
    "      |           ^~~~~\n"
    "      |           tw_slope\n";

// clang++ 14.
constexpr const char* kClangUndeclared =
    "kernel.cpp:4:11: error: use of undeclared identifier 'slope'; did you mean 'slop'?\n"
    "  score + slope[h]\n"
    "          ^~~~~\n"
    "1 error generated.\n";

}  // namespace

TEST_CASE("compiler messages: g++ and clang++ are read alike") {
  for (const char* log : {kGccUndeclared, kClangUndeclared}) {
    const auto messages = parse_host_messages(log);
    REQUIRE(messages.size() == 1);
    CHECK(messages[0].is_error);
    CHECK(messages[0].line == 4);
    CHECK(messages[0].column == 11);
    CHECK_THAT(messages[0].text, ContainsSubstring("'slope'"));
  }
}

TEST_CASE("compiler messages: kinds, missing columns, other files and nonsense") {
  const auto messages = parse_host_messages(
      "In file included from kernel.cpp:3:\n"
      "/usr/include/c++/12/cmath:1:2: error: not ours\n"
      "kernel.cpp:7: fatal error: no column\n"
      "kernel.cpp:8:9: warning: a warning\n"
      "./kernel.cpp:9:1: note: a note\n"
      "kernel.cpp:10:12:   required from here\n"
      "kernel.cpp:0:1: error: no line\n"
      "kernel.cpp:99999999999:1: error: no line\n"
      "kernel.cpp:x: error: no line\n"
      "kernel.cpp: In function 'f':\n"
      "cc1plus: error: unrecognized\n"
      ":::\n"
      "kernel.cpp:11:1: error: last line without an end");
  REQUIRE(messages.size() == 5);
  CHECK(messages[0].is_error);
  CHECK(messages[0].column == 0);
  CHECK(messages[0].text == "no column");
  CHECK_FALSE(messages[1].is_error);
  CHECK(messages[1].text == "warning: a warning");
  CHECK_FALSE(messages[2].is_error);
  CHECK(messages[3].text == "required from here");
  CHECK(messages[4].text == "last line without an end");
}

TEST_CASE("compiler messages: an unknown name is shown where it stands, with what was meant") {
  for (const char* log : {kGccUndeclared, kClangUndeclared}) {
    const Error error = report(log);
    CAPTURE(error.what());
    CHECK(error.code() == ErrorCode::snippet);
    CHECK_THAT(error.what(), ContainsSubstring("  --> score_mod:1:9\n"
                                               "   | score + slope[h]\n"
                                               "   |         ^\n"));
    CHECK(error.message().find("did you mean") == std::string::npos);
    CHECK(error.hint() == "did you mean \"slopes\"?");
    REQUIRE(error.notes().size() == 3);
    CHECK_THAT(error.notes()[0], ContainsSubstring("buffers: slopes[num_q_heads] (f32)"));
    CHECK(error.notes()[1] == "while compiling forward for cpu");
    CHECK_THAT(error.notes()[2], ContainsSubstring("kernel.cpp:4:11: error"));
  }
}

TEST_CASE("compiler messages: the first error that is a snippet's wins over those of templates") {
  const Error error = report(
      "kernel.cpp:1:1: error: in a template\n"
      "kernel.cpp:8:19: error: 'kv' was not declared in this scope\n"
      "kernel.cpp:4:11: error: later\n");
  REQUIRE(error.place());
  CHECK(error.place()->file == "mask_mod");
  CHECK(error.place()->column == 17);
  CHECK(error.place()->excerpt == "return q_idx >= kv;");
}

TEST_CASE("compiler messages: score has no place in mask_mod, and the hint says so") {
  const Error error = report("kernel.cpp:8:10: error: 'score' was not declared in this scope\n");
  CHECK_THAT(error.hint(), ContainsSubstring("only score_mod sees the score"));
  CHECK_THAT(report("kernel.cpp:8:10: error: 'zzz' was not declared in this scope\n").hint(),
             ContainsSubstring("declare \"zzz\" under \"scalars\""));
}

TEST_CASE(
    "compiler messages: an error inside a template that a snippet had instantiated is its own") {
  const Error gcc = report(
      "kernel.cpp: In instantiation of 'float tw_Buffer<float>::operator[](T) const':\n"
      "kernel.cpp:4:16:   required from here\n"
      "kernel.cpp:1:3: error: static assertion failed: an index is a whole number\n");
  CHECK(gcc.code() == ErrorCode::snippet);
  REQUIRE(gcc.place());
  CHECK(gcc.place()->column == 14);
  CHECK(gcc.message() == "static assertion failed: an index is a whole number");
  const Error clang = report(
      "kernel.cpp:1:3: error: static_assert failed \"an index is a whole number\"\n"
      "kernel.cpp:4:16: note: in instantiation of function template specialization 'f<float>' "
      "requested here\n");
  REQUIRE(clang.place());
  CHECK(clang.place()->column == 14);
  // A note that belongs to the next error leads nowhere.
  const Error other = report(
      "kernel.cpp:1:3: error: in a template\n"
      "kernel.cpp:1:4: error: another\n"
      "kernel.cpp:4:16: note: in instantiation of f requested here\n");
  CHECK(other.message() == "another");
}

TEST_CASE("compiler messages: an error just behind a snippet points at its end") {
  for (const char* place : {"6:1", "5:3"}) {
    const Error error = report("kernel.cpp:" + std::string(place) +
                               ": error: no return statement in function returning non-void "
                               "[-Werror=return-type]\n");
    CAPTURE(error.what());
    CHECK(error.code() == ErrorCode::snippet);
    REQUIRE(error.place());
    CHECK(error.place()->line == 1);
    CHECK(error.place()->column == 17);
    CHECK(error.message() == "no return statement in function returning non-void");
    CHECK_THAT(error.hint(), ContainsSubstring("add a return"));
  }
}

TEST_CASE("compiler messages: names of the kernel's own are taken out") {
  CHECK(report(
            "kernel.cpp:4:3: error: cannot convert 'tw_snippet::tw_real' {aka 'float'} to 'bool'\n")
            .message() == "cannot convert 'float' to 'bool'");
  const Error call = report(
      "kernel.cpp:4:3: error: no match for call to '(const tw_Buffer<float, float, 1, false>) "
      "(const "
      "int&, const int&)'\n");
  CHECK(call.message() == "no match for call to '(buffer) (const int&, const int&)'");
  CHECK_THAT(call.hint(), ContainsSubstring("x(i, j)"));
  CHECK_THAT(
      report(
          "kernel.cpp:4:3: error: assignment of read-only variable '\xE2\x80\x98h\xE2\x80\x99'\n")
          .hint(),
      ContainsSubstring("constants"));
}

TEST_CASE("compiler messages: buffers used wrongly, in the words of g++ 12 and clang++ 14") {
  for (const char* text :
       {"no match for 'operator[]' (operand types are 'const tw_snippet::tw_Buffer<int, int, 2, "
        "false>' and 'const int')",
        "cannot convert 'const tw_snippet::tw_Buffer<float, float, 1, false>' to "
        "'tw_snippet::tw_real' {aka 'float'} in return",
        "no viable overloaded operator[] for type 'const tw_Buffer<int, int, 2, false>'",
        "no matching function for call to object of type 'const tw_Buffer<int, int, 2, false>'"}) {
    const Error error = report("kernel.cpp:4:3: error: " + std::string(text) + "\n");
    CAPTURE(error.message());
    CHECK(error.message().find("tw_") == std::string::npos);
    CHECK_THAT(error.message(), ContainsSubstring("'buffer'"));
    CHECK_THAT(error.hint(), ContainsSubstring("x[i]"));
  }
  CHECK(report("kernel.cpp:4:3: error: no match for call to "
               "'(tw_snippet::tw_mask_mod(const tw_State&, int)::<lambda(int)>) (float)'\n")
            .message() == "no match for call to '(<lambda(int)>) (float)'");
  CHECK(report("kernel.cpp:4:3: error: no matching function for call to object of type '(lambda at "
               "kernel.cpp:46:10)'\n")
            .message() == "no matching function for call to object of type '<lambda>'");
}

TEST_CASE("compiler messages: macros around a splice do not hide it") {
  // What g++ says about `float` where the interpretation defines it.
  const Error gcc = report(
      "kernel.cpp:2:15: error: expected primary-expression before 'float'\n"
      "    2 | #define float tw_real\n"
      "kernel.cpp:4:11: note: in expansion of macro 'float'\n");
  CHECK(gcc.code() == ErrorCode::snippet);
  REQUIRE(gcc.place());
  CHECK(gcc.place()->column == 9);
}

TEST_CASE("compiler messages: an error in a template is not blamed on a snippet") {
  const Error error = report("kernel.cpp:2:7: error: expected initializer\n");
  CHECK(error.code() == ErrorCode::kernel_template);
  REQUIRE(error.place());
  CHECK(error.place()->file == "a.jinja");
  CHECK(error.place()->line == 2);
  CHECK(error.place()->column == 7);
  CHECK_THAT(error.what(), ContainsSubstring("rendered line 2: float score_mod() {"));
}

TEST_CASE("compiler messages: what has no place is the compiler's, with its log") {
  const Error error = report("cc1plus: error: bad value 'x' for '-march=' switch\n");
  CHECK(error.code() == ErrorCode::compiler);
  CHECK_FALSE(error.place());
  CHECK_THAT(error.what(), ContainsSubstring("bad value 'x'"));
  const Error header =
      report("kernel.cpp:1:10: fatal error: immintrin.h: No such file or directory\n");
  CHECK(header.code() == ErrorCode::compiler);
  CHECK_THAT(header.hint(), ContainsSubstring("apt-get"));
  CHECK(report("").code() == ErrorCode::compiler);
  const KernelSource without_map{.variant = {},
                                 .target = Target::host_cpu(),
                                 .text = {},
                                 .map = {},
                                 .template_files = {},
                                 .options = {},
                                 .entry_points = {}};
  CHECK(compile_error(spec(), without_map, parse_host_messages(kGccUndeclared), kGccUndeclared)
            .code() == ErrorCode::compiler);
}

TEST_CASE("compiler messages: logs are shortened and cannot steer a terminal") {
  std::string log = "kernel.cpp:4:11: error: 'slope\x1B[31m' was not declared in this scope\n";
  for (int i = 0; i < 100; ++i) log += std::string(1000, 'x') + "\n";
  const Error error = report(log);
  CHECK(std::string(error.what()).find('\x1B') == std::string::npos);
  CHECK_THAT(error.what(), ContainsSubstring("(and more)"));
  CHECK(std::string(error.what()).size() < 6000);
  CHECK_NOTHROW(report("kernel.cpp:4:11: error: " + std::string(100000, '(') + "\n"));
}

TEST_CASE("compiler messages: our own warnings are left out of the log") {
  const Error error = report(
      "kernel.cpp:1:9: warning: #pragma once in main file\n    1 | #pragma once\n      |         "
      "^~~~\n"
      "kernel.cpp:4:11: error: 'slope' was not declared in this scope\n");
  REQUIRE(error.notes().size() == 3);
  CHECK(is_compiler_log(error.notes()[2]));
  CHECK_FALSE(is_compiler_log(error.notes()[1]));
  CHECK_THAT(error.notes()[2], !ContainsSubstring("pragma"));
  CHECK_THAT(error.notes()[2], ContainsSubstring("kernel.cpp:4:11: error"));
}

TEST_CASE("compiler messages: a function that nothing defines is its snippet's error") {
  const char* const log = GENERATE(
      "/usr/bin/ld: /tmp/a.o: in function `f':\nkernel.cpp:(.text+0x15): undefined reference to "
      "`tw_snippet::slope(float)'\n",
      "ld.lld: error: undefined symbol: tw_snippet::slope(float)\n",
      "ptxas fatal   : Unresolved extern function '_ZN10tw_snippet5slopeEf'\n");
  const Error error = report(log);
  CHECK(error.code() == ErrorCode::snippet);
  CHECK_THAT(error.message(), ContainsSubstring("\"slope\" is declared here and defined nowhere"));
  REQUIRE(error.place());
  CHECK(error.place()->file == "score_mod");
  CHECK(report("ld: undefined reference to `other(float)'\n").code() == ErrorCode::compiler);
}

TEST_CASE("compiler messages: a place outside the snippet's text is moved to its end") {
  const Error error = report("kernel.cpp:5:50: error: expected ';'\n");
  REQUIRE(error.place());
  CHECK(error.place()->line == 1);
  CHECK(error.place()->column == 17);
}

TEST_CASE("compiler messages: what is no constant says why, without names of ours") {
  const auto error = [](const std::string& text) {
    return report("kernel.cpp:4:3: error: " + text + "\n");
  };
  const char* const kNone =
      " const requires  kRank == 1 [with Index = int; Element = float; Value "
      "= float; int kRank = 1; bool kTrusted = false]'";
  const std::string buffer = "tw_snippet::tw_Buffer<Element, Value, kRank, kTrusted>::";
  const Error element =
      error("call to non-'constexpr' function 'Value " + buffer + "operator[](Index)" + kNone);
  CHECK(element.message() == "a buffer's element is not a constant expression");
  CHECK_THAT(element.hint(), ContainsSubstring("write const in place of constexpr"));
  CHECK(error("call to non-'constexpr' function 'Value " + buffer +
              "operator()(Indices ...) const requires  sizeof ... (Indices ...) == kRank [with "
              "Indices = {int, int}; Element = int; int kRank = 2]'")
            .message() == "a buffer's element is not a constant expression");
  CHECK(error("call to non-'constexpr' function 'int " + buffer +
              "size(Index) const [with Index = int; Element = float; int kRank = 1]'")
            .message() == "a buffer's size is not a constant expression");
  for (const char* const text :
       {"the value of 'cap' is not usable in a constant expression",
        "constexpr variable 'x' must be initialized by a constant expression",
        "expression must have a constant value", "non-constant condition for static assertion"}) {
    CHECK_THAT(error(text).hint(), ContainsSubstring("write const in place of constexpr"));
  }
}

TEST_CASE("compiler messages: a lambda that gives no value has a hint") {
  for (const char* const text :
       {"void value not ignored as it ought to be",
        "cannot initialize return object of type 'bool' with an rvalue of type 'void'",
        "a value of type \"void\" cannot be used to initialize an entity of type \"bool\"",
        "return value type does not match the function type",
        "return-statement with no value, in function returning 'int'"}) {
    CHECK_THAT(report(std::string("kernel.cpp:4:3: error: ") + text + "\n").hint(),
               ContainsSubstring("write return x;"));
  }
}
