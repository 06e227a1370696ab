// The remote cache with servers that keep what they are given, and with servers that lie, stall
// and truncate.

#include "cache/remote_cache.hpp"

#include <cstdio>
#include <stdexcept>
#include <thread>

#include "cache/store.hpp"
#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/http_server.hpp"

using namespace tilewright::cache;
using namespace cache_test;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using tilewright::test::Asked;
using tilewright::test::HttpServer;
using tilewright::test::KeepingServer;
using tilewright::test::Reply;
using Status = LoadResult::Status;

namespace {

// Without a circuit breaker, so that each question is asked.
RemoteOptions options_for(const std::string& url, RemoteMode mode = RemoteMode::read_write) {
  return {.url = url, .mode = mode, .timeout = 10s, .breaker = {.failures = 1 << 30}};
}

// A machine of the fleet: a directory, a process's store in it, and its warnings.
struct Machine {
  explicit Machine(RemoteOptions options)
      : remote(std::make_shared<RemoteCache>(std::move(options))),
        store({.directory = folder.path(), .diagnostics = warnings.sink(), .remote = remote}) {}

  Source use(const std::string& name, std::size_t bytes = 100) {
    const auto result =
        store.load_or_build(key_named(name), [&] { return entry_named(name, bytes); });
    if (result.entry->payload != entry_named(name, bytes).payload) {
      throw std::logic_error("wrong bytes for " + name);
    }
    return result.source;
  }

  TemporaryFolder folder;
  Warnings warnings;
  std::shared_ptr<RemoteCache> remote;
  Store store;
};

std::string ac_path(const std::string& name) {
  return "/ac/" + key_named(name).digest.hex();
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What a truthful server holds for an entry.
struct Truth {
  explicit Truth(const std::string& name) : entry(entry_named(name)) {
    const std::vector<std::byte> bytes = encode(entry);
    blob = text_of(bytes);
    name_of_blob = {sha256(bytes), bytes.size()};
    action = text_of(encode_action_result(name_of_blob));
  }

  Entry entry;
  BlobName name_of_blob;
  std::string blob;
  std::string action;
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("remote: what one machine builds, the next one fetches and keeps on its disk") {
  const KeepingServer server;
  Machine first(options_for(server.url()));
  REQUIRE(first.use("a", 200'000) == Source::built);
  REQUIRE(first.use("a", 200'000) == Source::memory);

  Machine second(options_for(server.url(), RemoteMode::read));
  REQUIRE(second.use("a", 200'000) == Source::remote);
  REQUIRE(second.use("a", 200'000) == Source::memory);
  REQUIRE(std::filesystem::exists(entry_path(second.folder.path(), key_named("a"))));
  REQUIRE(second.store.stats().remote.hits == 1);
  REQUIRE(second.store.stats().builds == 0);

  const std::size_t asked = server.asked().size();
  Store later({.directory = second.folder.path(), .remote = second.remote});
  REQUIRE(later.load_or_build(key_named("a"), [] { return entry_named("b"); }).source ==
          Source::disk);
  REQUIRE(server.asked().size() == asked);  // the disk is asked first
  REQUIRE(first.warnings.count() + second.warnings.count() == 0);
}

TEST_CASE("remote: the protocol is Bazel's, and the blob is there before what names it") {
  const KeepingServer server;
  Machine machine(options_for(server.url() + "/"));
  machine.use("a");
  const Truth truth("a");
  const std::vector<Asked> asked = server.asked();
  REQUIRE(asked.size() == 3);
  REQUIRE(asked[0].method == "GET");
  REQUIRE(asked[0].path == ac_path("a"));
  REQUIRE(asked[1].method == "PUT");
  REQUIRE(asked[1].path == "/cas/" + truth.name_of_blob.digest.hex());
  REQUIRE(asked[1].body == truth.blob);
  REQUIRE(asked[2].method == "PUT");
  REQUIRE(asked[2].path == ac_path("a"));
  REQUIRE(asked[2].body == truth.action);
}

TEST_CASE("remote: in the mode read nothing is ever put") {
  const KeepingServer server;
  Machine machine(options_for(server.url(), RemoteMode::read));
  REQUIRE(machine.use("a") == Source::built);
  REQUIRE(server.asked().size() == 1);
  REQUIRE(server.asked()[0].method == "GET");
}

TEST_CASE("remote: a blob that the server has dropped is a miss, and is put again") {
  KeepingServer server;
  Machine(options_for(server.url())).use("a");
  server.replace([](auto& kept) { kept.erase("/cas/" + Truth("a").name_of_blob.digest.hex()); });
  Machine machine(options_for(server.url()));
  REQUIRE(machine.use("a") == Source::built);
  REQUIRE(machine.warnings.count() == 0);
  REQUIRE(Machine(options_for(server.url())).use("a") == Source::remote);
}

TEST_CASE("remote: a server that lies costs a build and one warning, and is put right") {
  const auto lie = GENERATE(as<std::string>(), "no message", "an empty message", "another's blob",
                            "an altered blob", "a truncated blob", "a blob that is too long",
                            "another's entry under the right digest", "no entry at all");
  INFO(lie);
  KeepingServer server;
  Machine writer(options_for(server.url()));
  writer.use("a");
  writer.use("b");
  const Truth a("a");
  const Truth b("b");
  const std::string blob_path = "/cas/" + a.name_of_blob.digest.hex();
  server.replace([&](std::map<std::string, std::string>& kept) {
    if (lie == "no message") kept[ac_path("a")] = "<html>Welcome to the hotel's network</html>";
    if (lie == "an empty message") kept[ac_path("a")] = "";
    if (lie == "another's blob") kept[ac_path("a")] = b.action;
    if (lie == "an altered blob") kept[blob_path][100] ^= 1;
    if (lie == "a truncated blob") kept[blob_path].resize(200);
    if (lie == "a blob that is too long") kept[blob_path] += 'x';
    if (lie == "another's entry under the right digest") kept[blob_path] = b.blob;
    if (lie == "no entry at all") {
      const std::string text = "not an entry, but named by its digest";
      const BlobName name{sha256(text), text.size()};
      kept["/cas/" + name.digest.hex()] = text;
      kept[ac_path("a")] = text_of(encode_action_result(name));
    }
  });

  Machine reader(options_for(server.url(), RemoteMode::read));
  REQUIRE(reader.use("a") == Source::built);
  REQUIRE(reader.use("b") == Source::remote);
  REQUIRE(reader.warnings.count() == 1);
  REQUIRE_THAT(reader.warnings.texts()[0], ContainsSubstring("the remote cache " + server.url()));
  const RemoteStats stats = reader.remote->stats();
  REQUIRE(stats.bad_entries + stats.failures == 1);

  Machine mender(options_for(server.url()));
  REQUIRE(mender.use("a") == Source::built);
  REQUIRE(Machine(options_for(server.url())).use("a") == Source::remote);
}

TEST_CASE("remote: no flipped bit of what a server sends is ever loaded") {
  const Truth truth("a");
  std::string action = truth.action;
  std::string blob = truth.blob;
  const HttpServer server([&](const Asked& asked) {
    return Reply{.body = asked.path.starts_with("/ac/") ? action : blob};
  });
  RemoteCache remote(options_for(server.url()));
  std::size_t tried = 0;
  for (std::string* text : {&action, &blob}) {
    // Each bit of the message, and one of each byte of the blob.
    const std::size_t step = text == &action ? 1 : 8;
    for (std::size_t bit = 0; bit < 8 * text->size(); bit += step, ++tried) {
      const std::size_t place = step == 1 ? bit : bit + bit / 8 % 8;
      (*text)[place / 8] ^= static_cast<char>(1 << place % 8);
      const LoadResult found = remote.load(truth.entry.key);
      (*text)[place / 8] ^= static_cast<char>(1 << place % 8);
      INFO(place);
      REQUIRE((found.status == Status::bad || found.status == Status::failed));
      REQUIRE(!found.entry);
    }
  }
  REQUIRE(remote.load(truth.entry.key).status == Status::hit);
  std::printf("[remote] %zu answers with a flipped bit, none loaded\n", tried);
}

TEST_CASE("remote: a transfer that is cut short is never loaded") {
  const Truth truth("a");
  const HttpServer server([&](const Asked& asked) {
    if (asked.path.starts_with("/ac/")) return Reply{.body = truth.action};
    return Reply{.body = truth.blob.substr(0, 100), .announced_bytes = truth.blob.size()};
  });
  Machine machine(options_for(server.url(), RemoteMode::read));
  REQUIRE(machine.use("a") == Source::built);
  REQUIRE(machine.warnings.count() == 1);
  REQUIRE(machine.remote->stats().failures == 1);
}

TEST_CASE("remote: refusals and redirections are failures, and are not followed") {
  const int status = GENERATE(301, 302, 401, 403, 405, 418, 500, 503);
  const HttpServer server([&](const Asked&) { return Reply{.status = status}; });
  Machine machine(options_for(server.url()));
  REQUIRE(machine.use("a") == Source::built);
  REQUIRE(machine.warnings.count() == 1);
  REQUIRE_THAT(machine.warnings.texts()[0],
               ContainsSubstring("is answered with status " + std::to_string(status)));
  REQUIRE(machine.remote->stats().failures == 2);  // a look-up and an upload
}

TEST_CASE("remote: what may pass is tried once more") {
  const Truth truth("a");
  std::atomic<int> count{0};
  const HttpServer server([&](const Asked& asked) {
    switch (count++) {
      case 0:
        return Reply{.status = 503};
      case 2:
        return Reply{.hangs_up = true};
      default:
        return Reply{.body = asked.path.starts_with("/ac/") ? truth.action : truth.blob};
    }
  });
  REQUIRE(RemoteCache(options_for(server.url())).load(truth.entry.key).status == Status::hit);
  REQUIRE(server.count() == 4);
}

TEST_CASE("remote: a server that stalls is waited for no longer than the limit") {
  const auto how =
      GENERATE(as<std::string>(), "before the answer", "within the answer", "within the handshake",
               "within the blob", "with a byte a second", "while it is put");
  const Truth truth("a");
  const HttpServer server([&](const Asked& asked) {
    if (how == "before the answer") return Reply{.stall = 1h};
    if (how == "while it is put" && asked.method == "PUT") return Reply{.stall = 1h};
    if (how == "while it is put") return Reply{.status = 404};
    if (how == "within the answer") return Reply{.body = truth.action, .pause_per_byte = 100ms};
    if (how == "with a byte a second") return Reply{.body = truth.action, .pause_per_byte = 1s};
    if (asked.path.starts_with("/ac/")) return Reply{.body = truth.action};
    return Reply{.body = truth.blob, .pause_per_byte = 100ms};
  });
  RemoteOptions options = options_for(server.url());
  if (how == "within the handshake") options.url.replace(0, 4, "https");
  options.mode = how == "while it is put" ? RemoteMode::read_write : RemoteMode::read;
  options.timeout = 300ms;
  Machine machine(options);
  const double seconds = seconds_of([&] { REQUIRE(machine.use("a") == Source::built); });
  std::printf("[remote] a server that stalls %s, with a limit of 0.3 s: %.2f s\n", how.c_str(),
              seconds);
  REQUIRE(seconds >= 0.29);
  REQUIRE(seconds < 0.8);
  REQUIRE(machine.warnings.count() == 1);
  REQUIRE_THAT(machine.warnings.texts()[0], ContainsSubstring("no answer within 0.3 s"));
}

TEST_CASE("remote: after three failures a server is left alone for a while") {
  const HttpServer server([](const Asked&) { return Reply{.stall = 1h}; });
  RemoteOptions options = options_for(server.url());
  options.timeout = 200ms;
  options.breaker = {};
  Machine machine(options);
  const double seconds = seconds_of([&] {
    for (int i = 0; i < 50; ++i) {
      REQUIRE(machine.use(std::to_string(i)) == Source::built);
    }
  });
  std::printf("[remote] 50 kernels beside a server that stalls, limit 0.2 s: %.2f s\n", seconds);
  REQUIRE(server.count() == 6);  // three look-ups, three uploads
  REQUIRE(seconds < 3);
  const RemoteStats stats = machine.remote->stats();
  REQUIRE(stats.failures == 6);
  REQUIRE(stats.skipped == 94);
  REQUIRE(machine.warnings.count() == 1);
}

TEST_CASE("remote: a server that cannot be written is still read") {
  const Truth truth("a");
  const HttpServer server([&](const Asked& asked) {
    if (asked.method == "PUT") return Reply{.status = 405};
    if (asked.path == ac_path("a")) return Reply{.body = truth.action};
    if (asked.path.starts_with("/cas/")) return Reply{.body = truth.blob};
    return Reply{.status = 404};
  });
  RemoteOptions options = options_for(server.url());
  options.breaker = {};
  Machine machine(options);
  for (const char* name : {"b", "c", "d", "e"}) REQUIRE(machine.use(name) == Source::built);
  REQUIRE(machine.use("a") == Source::remote);
  REQUIRE(machine.remote->stats().failures == 3);
  REQUIRE(machine.remote->stats().skipped == 1);
}

TEST_CASE("remote: a server that is gone costs milliseconds, and its name is in the warning") {
  std::string url;
  {
    const HttpServer server([](const Asked&) { return Reply{}; });
    url = server.url();
  }
  Machine machine(options_for("http://me:secret@" + url.substr(7)));
  const double seconds = seconds_of([&] { REQUIRE(machine.use("a") == Source::built); });
  REQUIRE(seconds < 2);
  REQUIRE(machine.warnings.count() == 1);
  REQUIRE_THAT(machine.warnings.texts()[0], ContainsSubstring(url) &&
                                                !ContainsSubstring("secret") &&
                                                ContainsSubstring("RemoteCache::probe()"));
  REQUIRE_THAT(machine.remote->probe(), ContainsSubstring("connect"));
}

TEST_CASE("remote: a server that hangs up while it is written to ends no process") {
  const HttpServer server([](const Asked& asked) {
    return asked.method == "GET" ? Reply{.status = 404} : Reply{.hangs_up = true};
  });
  Machine machine(options_for(server.url()));
  REQUIRE(machine.use("a", 5'000'000) == Source::built);
  REQUIRE(machine.warnings.count() == 1);
}

TEST_CASE("remote: many threads on one cold key ask once") {
  const KeepingServer server;
  Machine machine(options_for(server.url()));
  std::vector<std::thread> threads;
  std::atomic<int> built{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { built += machine.use("a") == Source::built ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(built == 1);
  REQUIRE(server.asked().size() == 3);
}

TEST_CASE("remote: without libcurl everything is built, and the warning says what to install") {
  const Http none({"libtilewright-nowhere.so.1", "/dev/null"});
  Warnings warnings;
  const auto remote = std::make_shared<RemoteCache>(RemoteOptions{.url = "http://cache"}, none);
  Store store({.diagnostics = warnings.sink(), .remote = remote});
  REQUIRE(store.load_or_build(key_named("a"), [] { return entry_named("a"); }).source ==
          Source::built);
  REQUIRE_THAT(remote->probe(), ContainsSubstring("libcurl cannot be opened") &&
                                    ContainsSubstring("Debian: libcurl4") &&
                                    ContainsSubstring("libtilewright-nowhere"));
  const Http other({"libc.so.6"});
  REQUIRE_THAT(other.problem(), ContainsSubstring("libc.so.6 is not a libcurl"));
}
