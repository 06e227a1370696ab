#include "cli/output.hpp"

#include <cstdint>

#include "tests/support/catch.hpp"

using namespace tilewright;

TEST_CASE("output: a time is written in the unit that suits it, a negative one as well") {
  CHECK(cli::format_ms(0) == "0 ns");
  CHECK(cli::format_ms(0.00085) == "850 ns");
  CHECK(cli::format_ms(0.0123) == "12.3 us");
  CHECK(cli::format_ms(4.56) == "4.56 ms");
  CHECK(cli::format_ms(1230) == "1.23 s");
  CHECK(cli::format_ms(-4.291686) == "-4.29 ms");
}

TEST_CASE("output: a size is written in the unit that suits it") {
  CHECK(cli::format_bytes(0) == "0 B");
  CHECK(cli::format_bytes(1023) == "1023 B");
  CHECK(cli::format_bytes(1536) == "1.50 KiB");
  CHECK(cli::format_bytes(std::uint64_t{3} << 40) == "3.00 TiB");
}
