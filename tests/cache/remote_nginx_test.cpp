// The remote cache with a real server: Debian's nginx with WebDAV's PUT.

#include <cstdio>
#include <fstream>

#include "cache/remote_cache.hpp"
#include "cache/store.hpp"
#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/installed.hpp"
#include "tests/support/nginx.hpp"

using namespace tilewright::cache;
using namespace cache_test;
using Catch::Matchers::ContainsSubstring;
using tilewright::test::is_installed;
using tilewright::test::Nginx;

namespace {

bool has_nginx() {
  return is_installed(!Nginx::program().empty(), "remote: there is no nginx (Debian: nginx-light)");
}

std::shared_ptr<RemoteCache> remote_at(const std::string& url,
                                       RemoteMode mode = RemoteMode::read_write) {
  return std::make_shared<RemoteCache>(RemoteOptions{.url = url, .mode = mode});
}

Source use(Store& store, const std::string& name, std::size_t bytes) {
  const auto result =
      store.load_or_build(key_named(name), [&] { return entry_named(name, bytes); });
  REQUIRE(result.entry->payload == entry_named(name, bytes).payload);
  return result.source;
}

}  // namespace

TEST_CASE("remote: nginx with WebDAV serves a fleet", "[nginx]") {
  if (!has_nginx()) return;
  const TemporaryFolder folder;
  const Nginx server(folder / "nginx");
  constexpr std::size_t kKernels = 20;
  constexpr std::size_t kBytes = 150'000;
  const auto size_of = [](std::size_t i) { return i == 0 ? std::size_t{20'000'000} : kBytes; };
  Warnings warnings;
  {
    Store store({.directory = folder / "first",
                 .diagnostics = warnings.sink(),
                 .remote = remote_at(server.url())});
    for (std::size_t i = 0; i < kKernels; ++i) {
      REQUIRE(use(store, std::to_string(i), size_of(i)) == Source::built);
    }
    REQUIRE(store.stats().remote.stored == kKernels);
  }
  Store store({.directory = folder / "second",
               .diagnostics = warnings.sink(),
               .remote = remote_at(server.url(), RemoteMode::read)});
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 1; i < kKernels; ++i) {
    REQUIRE(use(store, std::to_string(i), size_of(i)) == Source::remote);
  }
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  std::printf("[remote] nginx on this machine: a verified kernel of 150 kB in %.2f ms\n",
              taken.count() / (kKernels - 1));
  REQUIRE(use(store, "0", size_of(0)) == Source::remote);
  REQUIRE(warnings.count() == 0);
}

TEST_CASE("remote: what was altered on nginx's disk is built again and replaced", "[nginx]") {
  if (!has_nginx()) return;
  const TemporaryFolder folder;
  const Nginx server(folder / "nginx");
  const auto machine = [&](const std::string& name, Warnings& warnings) {
    return Store({.directory = folder / name,
                  .diagnostics = warnings.sink(),
                  .remote = remote_at(server.url())});
  };
  Warnings warnings;
  Store first = machine("first", warnings);
  use(first, "a", 1000);
  std::size_t damaged = 0;
  for (const auto& item : std::filesystem::directory_iterator(server.kept() / "cas")) {
    std::fstream(item.path(), std::ios::in | std::ios::out).seekp(500) << '#';
    ++damaged;
  }
  REQUIRE(damaged == 1);
  Store second = machine("second", warnings);
  REQUIRE(use(second, "a", 1000) == Source::built);
  REQUIRE(warnings.count() == 1);
  REQUIRE_THAT(warnings.texts()[0], ContainsSubstring("other contents than its name says"));
  Store third = machine("third", warnings);
  REQUIRE(use(third, "a", 1000) == Source::remote);
}

TEST_CASE("remote: nginx without PUT refuses, and is read all the same", "[nginx]") {
  if (!has_nginx()) return;
  const TemporaryFolder folder;
  const Nginx server(folder / "nginx", {.is_read_only = true});
  Warnings warnings;
  Store store({.directory = folder / "cache",
               .diagnostics = warnings.sink(),
               .remote = remote_at(server.url())});
  REQUIRE(use(store, "a", 1000) == Source::built);
  REQUIRE(use(store, "b", 1000) == Source::built);
  REQUIRE(warnings.count() == 1);
  REQUIRE_THAT(warnings.texts()[0], ContainsSubstring("is answered with status 405"));
  REQUIRE(store.stats().remote.misses == 2);
}
