#include "cache/action_result.hpp"

#include <string>

#include "tests/support/catch.hpp"

using namespace tilewright::cache;

namespace {

// SHA-256 of nothing.
constexpr std::string_view kHash =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

const BlobName kBlob{*Digest::from_hex(kHash), 300};

// protoc --encode=build.bazel.remote.execution.v2.ActionResult of
//     output_files { path: "kernel.twk" digest { hash: "e3b0...b855" size_bytes: 300 } }
constexpr std::string_view kGolden =
    "12530a0a6b65726e656c2e74776b12450a406533623063343432393866633163313439616662663463383939366662"
    "39"
    "3234323761653431653436343962393334636134393539393162373835326238353510ac02";

// The same with what a server may add: another output file, is_executable, contents, an exit code
// of -1, stdout_raw, execution_metadata.
constexpr std::string_view kWithMore =
    "120d0a036c6f6712060a026161100212590a0a6b65726e656c2e74776b12450a406533623063343432393866633163"
    "31"
    "3439616662663463383939366662393234323761653431653436343962393334636134393539393162373835326238"
    "35"
    "3510ac0220012a02787920ffffffffffffffffff012a0568656c6c6f4a040a027731";

std::vector<std::byte> from_hex(std::string_view digits) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes.push_back(std::byte(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

std::optional<BlobName> decode_hex(std::string_view digits) {
  return decode_action_result(from_hex(digits));
}

}  // namespace

TEST_CASE("action result: the bytes are those that protoc writes") {
  REQUIRE(encode_action_result(kBlob) == from_hex(kGolden));
  REQUIRE(decode_hex(kGolden) == kBlob);
}

TEST_CASE("action result: sizes of every length survive") {
  for (const std::uint64_t bytes : {0ULL, 1ULL, 127ULL, 128ULL, 1ULL << 28, ~0ULL}) {
    const BlobName blob{kBlob.digest, bytes};
    REQUIRE(decode_action_result(encode_action_result(blob)) == blob);
  }
}

TEST_CASE("action result: other files and fields are passed over") {
  REQUIRE(decode_hex(kWithMore) == kBlob);
  REQUIRE(decode_hex(std::string(kGolden) + "51" + "0102030405060708") == kBlob);  // fixed64
  REQUIRE(decode_hex(std::string(kGolden) + "55" + "01020304") == kBlob);          // fixed32
}

TEST_CASE("action result: what is no message, or names no kernel, gives nothing") {
  REQUIRE(!decode_hex(""));
  REQUIRE(!decode_hex("200a"));                                             // an exit code alone
  REQUIRE(!decode_hex("120d0a036c6f6712060a0261611002"));                   // hash too short
  REQUIRE(!decode_hex(std::string(kGolden) + "00"));                        // field 0
  REQUIRE(!decode_hex(std::string(kGolden) + "53"));                        // a group
  REQUIRE(!decode_hex(std::string(kGolden) + "20ffffffffffffffffffff01"));  // more than 64 bits
  REQUIRE(!decode_hex(std::string(kGolden) + "2affffffffffffffffff01"));    // longer than it is
}

TEST_CASE("action result: every truncation is noticed") {
  const std::vector<std::byte> whole = from_hex(kGolden);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    REQUIRE(!decode_action_result(std::span(whole).first(size)));
  }
}
