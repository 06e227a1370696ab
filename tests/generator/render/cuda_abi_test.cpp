#include <cstddef>

#include "templates/abi/cuda_forward.hpp"
#include "templates/abi/cuda_snippet.hpp"
#include "tests/support/catch.hpp"

namespace abi = tilewright::abi::cuda;

TEST_CASE("CUDA arguments: the runtime lays snippet arguments out as kernels read them") {
  using TwoAndThree = abi::SnippetArguments<2, 3>;
  REQUIRE(offsetof(TwoAndThree, buffers) == abi::kSnippetHeaderBytes);
  REQUIRE(offsetof(TwoAndThree, scalars) == static_cast<std::size_t>(abi::scalar_offset(2)));
  REQUIRE(sizeof(TwoAndThree) == static_cast<std::size_t>(abi::snippet_argument_bytes(2, 3)));

  using Nothing = abi::SnippetArguments<0, 0>;
  REQUIRE(offsetof(Nothing, scalars) == static_cast<std::size_t>(abi::scalar_offset(0)));
  REQUIRE(sizeof(Nothing) == static_cast<std::size_t>(abi::snippet_argument_bytes(0, 0)));
}

TEST_CASE("CUDA arguments: a scale is folded into the exponent only where it is positive") {
  constexpr float kLog2E = 1.44269504f;
  REQUIRE(abi::scaling(0.5f, false).factor == 1.0f);
  REQUIRE(abi::scaling(0.5f, false).to_log2 == 0.5f * kLog2E);
  REQUIRE(abi::scaling(0.5f, true).factor == 0.5f);
  REQUIRE(abi::scaling(0.5f, true).to_log2 == kLog2E);
  for (const float scale : {0.0f, -2.0f}) {
    REQUIRE(abi::scaling(scale, false).factor == scale * kLog2E);
    REQUIRE(abi::scaling(scale, false).to_log2 == 1.0f);
  }
}
