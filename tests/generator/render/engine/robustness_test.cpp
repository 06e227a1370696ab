// No input crashes or hangs the engine: it renders, or it throws an Error with a place.
#include <chrono>
#include <cstdint>

#include "base/error.hpp"
#include "tests/generator/render/engine/support.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::jinja;

namespace {

// xorshift: the same mutations on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t bound) {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return static_cast<std::size_t>(state_ >> 11) % bound;
  }

 private:
  std::uint64_t state_;
};

const char* const kFragments[] = {"{{",
                                  "}}",
                                  "{%",
                                  "%}",
                                  "{#",
                                  "#}",
                                  "-",
                                  "(",
                                  ")",
                                  "[",
                                  "]",
                                  "|",
                                  "\"",
                                  "'",
                                  " if ",
                                  " else ",
                                  "for ",
                                  "endif",
                                  "endfor",
                                  "join(",
                                  "\\",
                                  "**",
                                  "//",
                                  "~",
                                  "range(",
                                  "9999999",
                                  "loop.",
                                  "\n",
                                  "not ",
                                  " in ",
                                  " is ",
                                  ".",
                                  ",",
                                  ":",
                                  "{",
                                  "}",
                                  "set x=",
                                  "\xff",
                                  "'a'",
                                  "length",
                                  "%",
                                  "=",
                                  "include \"text_plain.jinja\"",
                                  "\n#include \"text_plain.jinja\"\n",
                                  "\n#include \"mutant\"\n",
                                  "#include \"",
                                  "\n#pragma once\n",
                                  "0x"};

std::string mutated(std::string text, Random& random) {
  const std::size_t mutations = 1 + random.below(4);
  for (std::size_t i = 0; i < mutations && !text.empty(); ++i) {
    const std::size_t at = random.below(text.size());
    switch (random.below(6)) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text.erase(at, 1 + random.below(8));
        break;
      case 2:
        text[at] = static_cast<char>(random.below(256));
        break;
      case 3:
        text.insert(at, text.substr(random.below(text.size()), random.below(40)));
        break;
      default:
        text.insert(at, kFragments[random.below(std::size(kFragments))]);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("jinja: thousands of broken templates neither crash nor hang") {
  const std::vector<test::GoldenCase> cases = test::golden_cases();
  std::map<std::string, std::string> templates = test::golden_templates();
  Random random(20240229);
  int rendered = 0;
  int refused = 0;
  for (int i = 0; i < 6000; ++i) {
    const test::GoldenCase& golden = cases[random.below(cases.size())];
    const std::string text = mutated(templates.at(golden.name), random);
    templates["mutant"] = text;
    INFO("mutation " << i << " of " << golden.name << ":\n" << text);
    const auto begin = std::chrono::steady_clock::now();
    try {
      render(MapLoader(templates), "mutant", golden.context);
      ++rendered;
    } catch (const tilewright::Error& error) {
      ++refused;
      REQUIRE(error.code() == tilewright::ErrorCode::kernel_template);
      REQUIRE(error.place());
      REQUIRE(error.place()->line >= 1);
      REQUIRE(error.place()->column >= 1);
      REQUIRE(error.place()->column <= static_cast<int>(error.place()->excerpt.size()) + 1);
    }
    REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  }
  // Both outcomes must be common, or the mutations test nothing.
  CHECK(rendered > 500);
  CHECK(refused > 500);
}

TEST_CASE("jinja: every prefix of the kernel template renders or is refused") {
  const MapLoader originals(test::golden_templates());
  const std::string name = "kernel_attention.cu.jinja";
  const std::string text = *originals.load(name);
  Map context;
  for (const test::GoldenCase& golden : test::golden_cases()) {
    if (golden.name == name) context = golden.context;
  }
  std::map<std::string, std::string> templates = test::golden_templates();
  for (std::size_t size = 0; size < text.size(); size += 7) {
    templates["prefix"] = text.substr(0, size);
    try {
      render(MapLoader(templates), "prefix", context);
    } catch (const tilewright::Error& error) {
      REQUIRE(error.code() == tilewright::ErrorCode::kernel_template);
    }
  }
}

TEST_CASE("jinja: random bytes are text, or refused") {
  Random random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string text = i % 2 ? "{{ " : "{% ";
    for (std::size_t size = random.below(60); size > 0; --size) {
      text += static_cast<char>(random.below(256));
    }
    try {
      test::render_text(text);
    } catch (const tilewright::Error& error) {
      REQUIRE(error.place());
    }
  }
}
