// The remote cache where names do not resolve, or their server never answers. Each in a network of
// its own, with a name server of the test's.

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cache/remote_cache.hpp"
#include "cache/store.hpp"
#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

using namespace tilewright::cache;
using namespace cache_test;
using namespace std::chrono_literals;

namespace {

constexpr int kNoNetwork = 77;

// In a child: a network of its own, whose name server is 127.0.0.1. False where the machine does
// not allow it.
bool enter_network(const std::filesystem::path& folder) {
  constexpr int kNamespaces = CLONE_NEWNET | CLONE_NEWNS;
  if (::unshare(kNamespaces) != 0 && ::unshare(CLONE_NEWUSER | kNamespaces) != 0) return false;
  const std::filesystem::path names = folder / "resolv.conf";
  std::ofstream(names) << "nameserver 127.0.0.1\n";
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  if (::mount(names.c_str(), "/etc/resolv.conf", nullptr, MS_BIND, nullptr) != 0) return false;
  const int number = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq loopback{};
  loopback.ifr_name[0] = 'l';
  loopback.ifr_name[1] = 'o';
  loopback.ifr_flags = IFF_UP;
  const bool is_up = ::ioctl(number, SIOCSIFFLAGS, &loopback) == 0;
  ::close(number);
  return is_up;
}

int name_server() {
  const int number = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(53);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool is_bound =
      ::bind(number, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  return is_bound ? number : -1;
}

// To each question: there is no such name.
void deny_all(int server) {
  std::array<unsigned char, 512> message;
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  auto* const whom = reinterpret_cast<sockaddr*>(&from);
  for (;;) {
    const ssize_t bytes = ::recvfrom(server, message.data(), message.size(), 0, whom, &size);
    if (bytes < 4) return;
    message[2] |= 0x80;                                                   // an answer
    message[3] = static_cast<unsigned char>((message[3] & 0xf0) | 0x03);  // NXDOMAIN
    ::sendto(server, message.data(), static_cast<std::size_t>(bytes), 0, whom, size);
  }
}

// 0 where one kernel is built with one warning that says `why`.
int build_one(const std::filesystem::path& folder, const std::string& why) {
  for (const char* proxy : {"http_proxy", "all_proxy", "ALL_PROXY"}) ::unsetenv(proxy);
  Warnings warnings;
  Store store(
      {.directory = folder / "cache",
       .diagnostics = warnings.sink(),
       .remote = std::make_shared<RemoteCache>(RemoteOptions{
           .url = "http://kernels.tilewright.test:8080", .timeout = 400ms, .breaker = {}})});
  const auto result = store.load_or_build(key_named("a"), [] { return entry_named("a"); });
  if (result.source != Source::built) return 1;
  if (result.entry->payload != entry_named("a").payload) return 2;
  if (warnings.count() != 1) return 3;
  if (warnings.texts()[0].find(why) != std::string::npos) return 0;
  std::printf("%s\n", warnings.texts()[0].c_str());
  return 4;
}

// The seconds until the child's end; less than 0 where there is no such network.
double seconds_with(const std::function<void(int server)>& serve, const std::string& why) {
  const TemporaryFolder folder;
  const auto start = std::chrono::steady_clock::now();
  const int status = run_in_child([&] {
    const int server = enter_network(folder.path()) ? name_server() : -1;
    if (server < 0) return kNoNetwork;
    std::thread([&serve, server] { serve(server); }).detach();
    return build_one(folder.path(), why);
  });
  if (status == kNoNetwork) {
    tilewright::test::say_skipped("remote: a process may have no network of its own here");
    return -1;
  }
  REQUIRE(status == 0);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("remote: a name server that stalls is waited for no longer than the limit") {
  const double seconds = seconds_with([](int) {}, "no answer within 0.4 s");
  if (seconds < 0) return;
  std::printf("[remote] a name server that stalls, with a limit of 0.4 s: %.2f s\n", seconds);
  REQUIRE(seconds >= 0.39);
  REQUIRE(seconds < 2);  // the system's own limit is 10 s
}

TEST_CASE("remote: a name that does not resolve is a warning") {
  const double seconds = seconds_with(deny_all, "resolve host");
  if (seconds < 0) return;
  std::printf("[remote] a name that does not resolve: %.2f s\n", seconds);
  REQUIRE(seconds < 2);
}
