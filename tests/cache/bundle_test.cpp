#include "cache/bundle.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "tests/cache/bundle_support.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::cache;
using namespace cache_test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("bundle: what was put in is found by request and by memo") {
  const TemporaryFolder folder;
  const auto path = folder / "a.twb";
  const WrittenBundle written = write_bundle(path, items(20, 3000));
  const auto bundle = Bundle::open(path);
  REQUIRE(written.entries == 20);
  REQUIRE(bundle->size() == 20);
  REQUIRE_THROWS_WITH(bundle->record(20), ContainsSubstring("has no entry 20"));
  REQUIRE_THROWS_WITH(bundle->facts(20), ContainsSubstring("has no entry 20"));
  REQUIRE_THROWS_WITH(bundle->load(20), ContainsSubstring("has no entry 20"));
  REQUIRE(bundle->bytes() == std::filesystem::file_size(path));
  REQUIRE(written.digest == sha256(tilewright::read_file(path)));
  REQUIRE_FALSE(bundle->signer());
  for (const BundleItem& item : items(20, 3000)) {
    const auto found = bundle->find(item.request.digest);
    REQUIRE(found);
    REQUIRE(bundle->find_memo(item.memos[0]) == found);
    const Bundle::Loaded loaded = bundle->load(*found);
    REQUIRE(loaded.problem.empty());
    REQUIRE(loaded.entry->payload == item.entry->payload);
    REQUIRE(loaded.entry->metadata == item.metadata);
    REQUIRE(bundle->facts(*found)->ingredients == item.request.ingredients);
  }
  REQUIRE_FALSE(bundle->find(request_named("another")));
  REQUIRE_FALSE(bundle->find_memo(memo_named("another")));
  REQUIRE_FALSE(bundle->find(memo_named("kernel 1")));
}

TEST_CASE("bundle: the same items in any order give the same bytes, signed or not") {
  const TemporaryFolder folder;
  const SigningKey key = SigningKey::from_file(write_key(folder, 7));
  std::vector<BundleItem> some = items(10);
  const auto plain = encode_bundle(some, nullptr);
  const auto signed_once = encode_bundle(some, &key);
  std::reverse(some.begin(), some.end());
  some.push_back(item_named("kernel 3"));
  REQUIRE(encode_bundle(some, nullptr) == plain);
  REQUIRE(encode_bundle(some, &key) == signed_once);
  REQUIRE(signed_once != plain);
}

TEST_CASE("bundle: items with one request become one entry with the memos of all") {
  const TemporaryFolder folder;
  BundleItem second = item_named("a");
  second.memos = {memo_named("second")};
  write_bundle(folder / "a.twb", {item_named("a"), second});
  const auto bundle = Bundle::open(folder / "a.twb");
  REQUIRE(bundle->size() == 1);
  REQUIRE(bundle->find_memo(memo_named("a")) == bundle->find_memo(memo_named("second")));
  second = item_named("b");
  second.memos = {memo_named("a")};
  REQUIRE_THROWS_AS(encode_bundle({item_named("a"), second}, nullptr), tilewright::Error);
}

TEST_CASE("bundle: an empty one, and one of empty payloads") {
  const TemporaryFolder folder;
  write_bundle(folder / "empty.twb", {});
  REQUIRE(Bundle::open(folder / "empty.twb")->size() == 0);
  write_bundle(folder / "hollow.twb", items(3, 0));
  const auto hollow = Bundle::open(folder / "hollow.twb");
  REQUIRE(hollow->load(2).entry->payload.empty());
}

TEST_CASE("bundle: a signature is required where a key is") {
  const TemporaryFolder folder;
  const SigningKey ours = SigningKey::from_file(write_key(folder, 1));
  const SigningKey foreign = SigningKey::from_file(write_key(folder, 2));
  const auto path = folder / "a.twb";
  const std::vector<PublicKey> trusted = {ours.public_key()};

  SECTION("the right one is taken, also beside others") {
    write_bundle(path, items(3), &ours);
    REQUIRE(Bundle::open(path, trusted)->signer() == ours.public_key());
    REQUIRE(refusal(path, {foreign.public_key(), ours.public_key()}).empty());
    REQUIRE(refusal(path).empty());
  }
  SECTION("none") {
    write_bundle(path, items(3));
    REQUIRE_THAT(refusal(path, trusted), ContainsSubstring("it is not signed"));
    REQUIRE(refusal(path).empty());
  }
  SECTION("a foreign one") {
    write_bundle(path, items(3), &foreign);
    REQUIRE_THAT(refusal(path, trusted), ContainsSubstring("which is not trusted") &&
                                             ContainsSubstring(foreign.public_key().hex()));
  }
  SECTION("a wrong one, with or without a key") {
    auto bytes = encode_bundle(items(3), &ours);
    bytes[100] ^= std::byte{1};
    fix_digests(bytes);
    write_raw(path, bytes);
    REQUIRE_THAT(refusal(path, trusted), ContainsSubstring("its signature is wrong"));
    REQUIRE_THAT(refusal(path), ContainsSubstring("its signature is wrong"));
  }
  SECTION("ours, put over what somebody else changed") {
    auto bytes = encode_bundle(items(3), &foreign);
    const auto own = encode_bundle(items(4), &ours);
    std::copy(own.begin() + 64, own.begin() + 160, bytes.begin() + 64);
    fix_digests(bytes);
    write_raw(path, bytes);
    REQUIRE_THAT(refusal(path, trusted), ContainsSubstring("its signature is wrong"));
  }
  SECTION("taken off") {
    auto bytes = encode_bundle(items(3), &ours);
    std::fill(bytes.begin() + 64, bytes.begin() + 160, std::byte{0});
    fix_digests(bytes);
    write_raw(path, bytes);
    REQUIRE_THAT(refusal(path, trusted), ContainsSubstring("it is not signed"));
  }
}

TEST_CASE("bundle: keys are read from hexadecimal digits and PEM files, and nothing else") {
  const TemporaryFolder folder;
  const auto private_file = write_key(folder, 1);
  const PublicKey key = SigningKey::from_file(private_file).public_key();
  REQUIRE(PublicKey::parse(key.hex()) == key);
  REQUIRE_THROWS_AS(PublicKey::parse("no such file"), tilewright::Error);
  REQUIRE_THROWS_AS(PublicKey::parse(key.hex().substr(1)), tilewright::Error);
  REQUIRE_THROWS_AS(PublicKey::parse(private_file.native()), tilewright::Error);
  tilewright::write_text_file(folder / "junk", "-----BEGIN PRIVATE KEY-----\nAAAA\n");
  REQUIRE_THROWS_AS(SigningKey::from_file(folder / "junk"), tilewright::Error);
  REQUIRE_THROWS_AS(SigningKey::from_file(folder / "absent"), tilewright::Error);
  // RFC 8032, 7.1, test 1: the public key of this seed is known.
  tilewright::write_text_file(folder / "rfc.pem",
                              "-----BEGIN PRIVATE KEY-----\n"
                              "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
                              "-----END PRIVATE KEY-----\n");
  REQUIRE(SigningKey::from_file(folder / "rfc.pem").public_key().hex() ==
          "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
}

TEST_CASE("bundle: a file that others could have written is refused") {
  const TemporaryFolder folder;
  const auto path = folder / "a.twb";
  write_bundle(path, items(3));
  SECTION("writable by the group") {
    REQUIRE(::chmod(path.c_str(), 0664) == 0);
    REQUIRE_THAT(refusal(path), ContainsSubstring("others can write to it (mode 0664)"));
  }
  SECTION("writable by all") {
    REQUIRE(::chmod(path.c_str(), 0646) == 0);
    REQUIRE_THAT(refusal(path), ContainsSubstring("others can write to it"));
  }
  SECTION("somebody else's") {
    if (::geteuid() != 0) return;  // only root can give files away
    REQUIRE(::chown(path.c_str(), 65534, 65534) == 0);
    REQUIRE_THAT(refusal(path), ContainsSubstring("belongs to user 65534"));
  }
  SECTION("root's is taken by anybody") {
    if (::geteuid() != 0) return;
    REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
    REQUIRE(run_in_child([&] {
              become_nobody();
              return refusal(path).empty() ? 0 : 1;
            }) == 0);
  }
  SECTION("a directory") {
    REQUIRE_THAT(refusal(folder.path()), ContainsSubstring("not a regular file"));
  }
  SECTION("a FIFO, without waiting for a writer") {
    REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
    REQUIRE_THAT(refusal(folder / "fifo"), ContainsSubstring("not a regular file"));
  }
  SECTION("missing") {
    REQUIRE_THAT(refusal(folder / "absent.twb"), ContainsSubstring("No such file"));
  }
  SECTION("a symbolic link is followed: deployments switch by one") {
    std::filesystem::create_symlink(path, folder / "current.twb");
    REQUIRE(refusal(folder / "current.twb").empty());
  }
}

TEST_CASE("bundle: a file that is replaced while it is open stays in use") {
  const TemporaryFolder folder;
  const auto path = folder / "a.twb";
  write_bundle(path, items(3, 5000));
  const auto before = Bundle::open(path);
  write_bundle(path, {item_named("new")});
  const auto after = Bundle::open(path);
  REQUIRE(before->load(*before->find(request_named("kernel 1"))).entry->payload ==
          item_named("kernel 1", 5000).entry->payload);
  REQUIRE(after->find(request_named("new")));
  REQUIRE_FALSE(after->find(request_named("kernel 1")));
}

TEST_CASE("bundle: a file that is overwritten or truncated while it is open is noticed") {
  const TemporaryFolder folder;
  const auto path = folder / "a.twb";
  write_bundle(path, items(3, 5000));
  const auto bundle = Bundle::open(path);
  auto bytes = tilewright::read_file(path);
  const auto load = [&] { return bundle->load(2); };
  REQUIRE(load().entry);
  SECTION("overwritten in place") {
    bytes[bytes.size() - 1] ^= std::byte{1};
    std::FILE* const file = std::fopen(path.c_str(), "r+b");
    REQUIRE(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
    std::fclose(file);
    REQUIRE(load().problem == "its digest does not match");
  }
  SECTION("truncated") {
    REQUIRE(::truncate(path.c_str(), static_cast<off_t>(bytes.size() - 1)) == 0);
    REQUIRE(load().problem == "it cannot be read");
  }
  REQUIRE_FALSE(load().entry);
  REQUIRE(bundle->load(0).entry);
}

TEST_CASE("bundle: many threads and processes read one at once") {
  const TemporaryFolder folder;
  const auto path = folder / "a.twb";
  const std::vector<BundleItem> all = items(30, 20'000);
  write_bundle(path, all);
  const auto bundle = Bundle::open(path);
  const auto read_all = [&] {
    int wrong = 0;
    for (const BundleItem& item : all) {
      const auto loaded = bundle->load(*bundle->find(item.request.digest));
      if (!loaded.entry || loaded.entry->payload != item.entry->payload) ++wrong;
    }
    return wrong;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) children.push_back(start_child(read_all));  // with its file position
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([&] { wrong += read_all(); });
  }
  for (const pid_t child : children) REQUIRE(wait_for_child(child) == 0);
  REQUIRE(wrong == 0);
}
