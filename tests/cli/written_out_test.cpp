#include "cli/bench/written_out.hpp"

#include <cstddef>
#include <cstring>
#include <string>

#include "base/error.hpp"
#include "generator/spec/spec.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

// Five numbers, of which the last has these bytes.
Tensor ending_with(DType dtype, const void* last) {
  Tensor out = Tensor::zeros(dtype, {5});
  std::memcpy(static_cast<char*>(out.data()) + 4 * size_of(dtype), last, size_of(dtype));
  return out;
}

std::string message_of(const Tensor& out, const Spec& spec = {}) {
  try {
    cli::require_numbers(spec, out);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("cli bench: poison that a kernel left is found, in each dtype of out") {
  const DType dtype = GENERATE(f32, f16, bf16, f8e4m3);
  unsigned char poison[4] = {};
  CHECK(message_of(ending_with(dtype, poison)).empty());
  std::memset(poison, cli::kPoison, sizeof poison);
  CHECK_THAT(message_of(ending_with(dtype, poison)),
             ContainsSubstring("left element 4 of out unwritten"));
}

TEST_CASE("cli bench: a number of one byte is finite but for its NaN") {
  const unsigned char greatest[] = {0x7e}, least[] = {0xfe}, nan[] = {0x7f};
  CHECK(message_of(ending_with(f8e4m3, greatest)).empty());
  CHECK(message_of(ending_with(f8e4m3, least)).empty());
  CHECK_THAT(message_of(ending_with(f8e4m3, nan)),
             ContainsSubstring("no finite number to element 4"));
}

TEST_CASE("cli bench: NaN is a snippet's where the spec has one that numbers come from") {
  const unsigned char nan[] = {0, 0, 0xc0, 0x7f};
  const Tensor out = ending_with(f32, nan);
  CHECK_THAT(message_of(out), ContainsSubstring("error[internal]"));
  CHECK_THAT(message_of(out, {.mask_mod = "q_idx >= kv_idx"}),
             ContainsSubstring("error[internal]"));
  CHECK_THAT(
      message_of(out, {.score_mod = "sqrt(score)"}),
      ContainsSubstring("error[snippet]") && ContainsSubstring("hint: score_mod may give NaN"));
  CHECK_THAT(message_of(out, {.sink = "x[h]"}),
             ContainsSubstring("error[snippet]") && ContainsSubstring("the sink may give NaN"));
}
