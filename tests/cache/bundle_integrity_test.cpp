#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "base/file_io.hpp"
#include "cache/bundle.hpp"
#include "tests/cache/bundle_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/full_run.hpp"

using namespace tilewright::cache;
using namespace cache_test;
using Catch::Matchers::ContainsSubstring;

namespace {

// A bundle on disk, to be damaged.
struct Victim {
  Victim(std::size_t entries, std::size_t payload_bytes)
      : path(folder / "a.twb"), bytes(encode_bundle(items(entries, payload_bytes), nullptr)) {
    write_raw(path, bytes);
    file = tilewright::FileDescriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    const auto whole = Bundle::open(path);
    for (std::size_t i = 0; i < whole->size(); ++i) records.push_back(whole->record(i));
  }

  void write(std::size_t at, std::byte value) const {
    if (::pwrite(file.get(), &value, 1, static_cast<off_t>(at)) != 1) FAIL("pwrite");
  }

  // Whether the damage at a byte is noticed before anything that it touched is used.
  bool detects(std::size_t at) const {
    std::shared_ptr<const Bundle> bundle;
    try {
      bundle = Bundle::open(path);
    } catch (const std::exception&) {
      return true;
    }
    for (std::size_t i = 0; i < records.size(); ++i) {
      const BundleRecord& record = records[i];
      if (at < record.offset || at >= record.offset + record.bytes) continue;
      const auto found = bundle->find(record.request);
      return found && !bundle->load(*found).entry;
    }
    return false;
  }

  TemporaryFolder folder;
  std::filesystem::path path;
  std::vector<std::byte> bytes;
  tilewright::FileDescriptor file;
  std::vector<BundleRecord> records;
};

}  // namespace

TEST_CASE("bundle integrity: every single bit flip is detected") {
  const Victim victim(is_full_run() ? 16 : 3, is_full_run() ? 3700 : 300);
  std::size_t undetected = 0;
  std::size_t flips = 0;
  // Three does not divide eight, so that a full run flips two or three bits of each byte.
  const std::size_t shares = is_full_run() ? 3 : 1;
  for (std::size_t bit = 0; bit < 8 * victim.bytes.size(); ++bit) {
    if (!is_due(bit, shares)) continue;
    ++flips;
    const std::size_t at = bit / 8;
    victim.write(at, victim.bytes[at] ^ std::byte(1 << bit % 8));
    if (!victim.detects(at)) ++undetected;
    victim.write(at, victim.bytes[at]);
  }
  std::printf("[bundle] %zu bytes, %zu bit flips, %zu undetected\n", victim.bytes.size(), flips,
              undetected);
  REQUIRE(undetected == 0);
  REQUIRE(victim.bytes.size() <= 64u << 10);
  if (is_full_run()) REQUIRE(victim.bytes.size() > 60'000);
  REQUIRE(refusal(victim.path).empty());
}

TEST_CASE("bundle integrity: every truncation is detected, and so is every extension") {
  const Victim victim(16, 3700);
  std::size_t undetected = 0;
  for (std::size_t size = victim.bytes.size(); size-- > 0;) {
    if (::truncate(victim.path.c_str(), static_cast<off_t>(size)) != 0) FAIL("truncate");
    if (refusal(victim.path).empty()) ++undetected;
  }
  for (std::size_t extra = 1; extra < 100; ++extra) {
    std::vector<std::byte> longer = victim.bytes;
    longer.resize(longer.size() + extra);
    write_raw(victim.path, longer);
    if (refusal(victim.path).empty()) ++undetected;
  }
  std::printf("[bundle] %zu truncations, 99 extensions, %zu undetected\n", victim.bytes.size(),
              undetected);
  REQUIRE(undetected == 0);
}

TEST_CASE("bundle integrity: entries that were swapped or renamed are detected") {
  Victim victim(3, 300);
  constexpr std::size_t kIndex = kBundleHeaderBytes;
  constexpr std::size_t kRecord = 88;
  auto& bytes = victim.bytes;
  const auto swap = [&](std::size_t a, std::size_t b, std::size_t count) {
    std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(a),
                     bytes.begin() + static_cast<std::ptrdiff_t>(a + count),
                     bytes.begin() + static_cast<std::ptrdiff_t>(b));
  };
  const auto require_only_first_loads = [&] {
    write_raw(victim.path, bytes);
    const auto bundle = Bundle::open(victim.path);
    REQUIRE(bundle->load(0).entry);
    for (std::size_t i = 1; i < 3; ++i) REQUIRE_FALSE(bundle->load(i).entry);
  };

  SECTION("payloads") {
    swap(victim.records[1].offset, victim.records[2].offset, victim.records[1].bytes);
    require_only_first_loads();
  }
  SECTION("payloads with their digests, by somebody who makes the index right") {
    swap(victim.records[1].offset, victim.records[2].offset, victim.records[1].bytes);
    swap(kIndex + kRecord + 32, kIndex + 2 * kRecord + 32, 40);
    fix_digests(bytes);
    require_only_first_loads();
  }
  SECTION("facts, by somebody who makes the index right") {
    const std::size_t facts = kIndex + 3 * kRecord + 8 + 3 * 40;
    const auto& a = victim.records[1];
    const auto& b = victim.records[2];
    REQUIRE(a.facts_bytes == b.facts_bytes);
    swap(facts + a.facts_offset, facts + b.facts_offset, a.facts_bytes);
    fix_digests(bytes);
    require_only_first_loads();
  }
  SECTION("requests") {
    swap(kIndex + kRecord, kIndex + 2 * kRecord, 32);
    write_raw(victim.path, bytes);
    REQUIRE_THAT(refusal(victim.path), ContainsSubstring("the digest of its index"));
    fix_digests(bytes);
    write_raw(victim.path, bytes);
    REQUIRE_THAT(refusal(victim.path), ContainsSubstring("contradicts itself"));
  }
  SECTION("a request that becomes another one") {
    bytes[kIndex + 2 * kRecord + 31] ^= std::byte{1};
    fix_digests(bytes);
    write_raw(victim.path, bytes);
    const auto bundle = Bundle::open(victim.path);
    REQUIRE_FALSE(bundle->load(2).entry);
  }
}

TEST_CASE("bundle integrity: an index of any numbers is refused or harmless") {
  Victim victim(4, 50);
  const std::vector<std::byte> good = victim.bytes;
  const BundleHeader header = decode_bundle_header(good).header;
  std::uint32_t state = 1;
  const auto random = [&] { return state = state * 1664525u + 1013904223u, state >> 8; };
  std::size_t opened = 0;
  for (int round = 0; round < 3000; ++round) {
    victim.bytes = good;
    for (int change = 0; change < 4; ++change) {
      const std::size_t at = kBundleHeaderBytes + random() % header.index_bytes;
      victim.bytes[at] = std::byte(random() % 3 == 0 ? 0xff : random() & 0xff);
    }
    fix_digests(victim.bytes);
    write_raw(victim.path, victim.bytes);
    if (!refusal(victim.path).empty()) continue;
    ++opened;
    const auto bundle = Bundle::open(victim.path);
    for (std::size_t i = 0; i < bundle->size(); ++i) static_cast<void>(bundle->load(i));
  }
  std::printf("[bundle] 3000 altered indices, %zu opened, none did harm\n", opened);
}
