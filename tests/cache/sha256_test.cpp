#include "cache/sha256.hpp"

#include <unordered_set>

#include "tests/support/catch.hpp"

using namespace tilewright::cache;

TEST_CASE("sha256: the digests of FIPS 180-4 come out") {
  REQUIRE(sha256("").hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  REQUIRE(sha256("abc").hex() ==
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  REQUIRE(sha256(std::string(1'000'000, 'a')).hex() ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256: pieces give the digest of the whole") {
  Sha256 hash;
  hash.update("a").update("").update("bc");
  Sha256 moved = std::move(hash);
  REQUIRE(moved.finish() == sha256("abc"));
}

TEST_CASE("sha256: a digest survives its hexadecimal text, and no other text is taken") {
  const Digest digest = sha256("abc");
  const std::string hex = digest.hex();
  REQUIRE(Digest::from_hex(hex) == digest);
  REQUIRE_FALSE(Digest::from_hex(""));
  REQUIRE_FALSE(Digest::from_hex(hex.substr(1)));
  REQUIRE_FALSE(Digest::from_hex(hex + "0"));
  REQUIRE_FALSE(Digest::from_hex("B" + hex.substr(1)));
  REQUIRE_FALSE(Digest::from_hex(std::string("\0", 1) + hex.substr(1)));
}

TEST_CASE("sha256: digests are ordered as their texts are, and can be hashed") {
  const Digest one = sha256("1");
  const Digest two = sha256("2");
  REQUIRE((one < two) == (one.hex() < two.hex()));
  REQUIRE(std::unordered_set<Digest>{one, two, one}.size() == 2);
}
