#include "cache/entry.hpp"

#include <random>

#include "base/error.hpp"
#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::cache;
using cache_test::entry_named;
using cache_test::key_named;

namespace {

Key counting_key() {
  Key key;
  for (std::size_t i = 0; i < key.digest.bytes.size(); ++i) {
    key.digest.bytes[i] = static_cast<std::uint8_t>(i);
  }
  return key;
}

// Changes some bytes and makes the digest right again, as an attacker would.
std::vector<std::byte> forged(std::vector<std::byte> file, std::size_t at, std::uint8_t value) {
  file[at] = std::byte(value);
  file.resize(file.size() - 32);
  const Digest digest = sha256(file);
  for (const std::uint8_t byte : digest.bytes) file.push_back(std::byte(byte));
  return file;
}

}  // namespace

// Computed with Python's struct and hashlib from the layout in cache/entry.hpp.
TEST_CASE("entry: the layout on disk never changes") {
  Entry entry;
  entry.key = counting_key();
  entry.metadata = {{"target", "cpu"}, {"kernel", "forward"}};
  for (const char c : std::string("\x7f"
                                  "ELF\n"))
    entry.payload.push_back(std::byte(c));
  const std::vector<std::byte> file = encode(entry);
  REQUIRE(file.size() == 131);
  REQUIRE(sha256(file).hex() == "c2f30b00c2ac1085d17f98d42ce3cc28c6c33447f95f49dad9f258d0ea30892e");
}

TEST_CASE("entry: what is encoded is decoded") {
  Entry entry = entry_named("forward", GENERATE(0U, 1U, 1000U, 300'000U));
  if (entry.payload.size() == 1) entry.metadata.clear();
  const Decoded decoded = decode(encode(entry), entry.key);
  REQUIRE(decoded.defect == Defect::none);
  REQUIRE(decoded.entry->key == entry.key);
  REQUIRE(decoded.entry->metadata == entry.metadata);
  REQUIRE(decoded.entry->payload == entry.payload);
}

TEST_CASE("entry: each kind of damage has its name") {
  const Entry entry = entry_named("forward");
  const std::vector<std::byte> good = encode(entry);
  const auto defect = [&](std::vector<std::byte> file) {
    const Decoded decoded = decode(std::move(file), entry.key);
    REQUIRE_FALSE(decoded.entry.has_value());
    return decoded.defect;
  };
  REQUIRE(defect({}) == Defect::too_short);
  REQUIRE(defect({good.begin(), good.begin() + 87}) == Defect::too_short);
  REQUIRE(defect({good.begin(), good.end() - 1}) == Defect::digest);
  REQUIRE(defect(std::vector<std::byte>(good.size())) == Defect::magic);
  REQUIRE(defect(forged(good, 8, 2)) == Defect::version);
  REQUIRE(decode(good, key_named("backward")).defect == Defect::key);
  REQUIRE(defect(forged(good, 24, 0)) == Defect::key);
  std::vector<std::byte> longer = good;
  longer.push_back(std::byte(0));
  REQUIRE(defect(longer) == Defect::digest);
}

TEST_CASE("entry: lengths that lie are refused although the digest is right") {
  const Entry entry = entry_named("forward");
  const std::vector<std::byte> good = encode(entry);
  // The count of items, the size of the payload, and the lengths of the first item.
  for (std::size_t at : {12U, 13U, 15U, 16U, 19U, 23U, 56U, 59U, 60U, 63U}) {
    for (const int value : {0, 1, 0x7f, 0xff}) {
      if (std::byte(value) == good[at]) continue;
      INFO("byte " << at << " is " << value);
      const Decoded decoded = decode(forged(good, at, static_cast<std::uint8_t>(value)), entry.key);
      REQUIRE(decoded.defect == Defect::malformed);
    }
  }
}

TEST_CASE("entry: forged bytes anywhere never crash, and never change what the key is") {
  const Entry entry = entry_named("forward", 40);
  const std::vector<std::byte> good = encode(entry);
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> file = good;
    for (int changes = 0; changes < 3; ++changes) {
      file = forged(std::move(file), 12 + random() % (good.size() - 44),
                    static_cast<std::uint8_t>(random()));
    }
    const Decoded decoded = decode(std::move(file), entry.key);
    if (decoded.entry) REQUIRE(decoded.entry->key == entry.key);
  }
}

TEST_CASE("entry: metadata that comes in another order, or twice, is refused") {
  Entry entry = entry_named("forward");
  entry.metadata = {{"a", "1"}, {"b", "2"}};
  const std::vector<std::byte> good = encode(entry);
  REQUIRE(decode(forged(good, 64, 'c'), entry.key).defect == Defect::malformed);
  REQUIRE(decode(forged(good, 64, 'b'), entry.key).defect == Defect::malformed);
}

TEST_CASE("entry: what exceeds a limit is not encoded") {
  Entry entry = entry_named("forward");
  entry.metadata = {{std::string(65, 'n'), "value"}};
  REQUIRE_THROWS_AS(encode(entry), tilewright::Error);
  entry.metadata = {{"name", std::string(kMaxMetadataValue + 1, 'v')}};
  REQUIRE_THROWS_AS(encode(entry), tilewright::Error);
  entry.metadata.clear();
  for (int i = 0; i < 65; ++i) entry.metadata[std::to_string(i)] = "";
  REQUIRE_THROWS_AS(encode(entry), tilewright::Error);
  entry.metadata.clear();
  entry.payload.resize(kMaxEntryBytes);
  REQUIRE_THROWS_AS(encode(entry), tilewright::Error);
}
