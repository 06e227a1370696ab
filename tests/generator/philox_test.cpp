// The generator of random words, as kernels for CPUs and GPUs contain it.
#include <array>

#include "tests/generator/device_on_host.hpp"
#include "tests/support/catch.hpp"

#define TW_MEMBER

namespace {

#include "attention/philox.hpp"

using Words = std::array<unsigned, 4>;

Words words(const tw_kernel::PhiloxWords& of) {
  return {of.x, of.y, of.z, of.w};
}

}  // namespace

// Published with Random123, in tests/kat_vectors.
TEST_CASE("Philox: known answers") {
  CHECK(words(tw_kernel::philox({0, 0, 0, 0}, {0, 0})) ==
        Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(words(tw_kernel::philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u})) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(words(tw_kernel::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                                {0xa4093822, 0x299f31d0})) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("Philox: a word by its number") {
  const tw_kernel::PhiloxWords four = {5, 6, 7, 8};
  for (int i = 0; i < 4; ++i) CHECK(four.at(i) == static_cast<unsigned>(5 + i));
}
