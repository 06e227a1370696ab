// The remote cache by https: whose certificate is accepted. Real ones, made here, on a real nginx.

#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include <unistd.h>

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

bool has_nginx_and_openssl() {
  return is_installed(!Nginx::program().empty() && ::access("/usr/bin/openssl", X_OK) == 0,
                      "remote: nginx and openssl are not both there");
}

// An authority of a test's own, in a folder.
class Authority {
 public:
  explicit Authority(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    openssl("req -x509 -days 2 -subj /CN=tilewright-test -keyout ca.key -out ca.pem " + new_key());
  }

  std::string file() const { return folder_ / "ca.pem"; }

  /// A server with a certificate for an address.
  tilewright::test::NginxOptions certificate_for(const std::string& address) const {
    std::ofstream(folder_ / "names") << "subjectAltName=IP:" << address << "\n";
    openssl("req -subj /CN=server -keyout server.key -out server.csr " + new_key());
    openssl(
        "x509 -req -days 2 -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial"
        " -extfile names -out server.pem");
    return {.certificate = folder_ / "server.pem", .certificate_key = folder_ / "server.key"};
  }

 private:
  static std::string new_key() { return "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"; }

  void openssl(const std::string& words) const {
    const std::string log = (folder_ / "log").native();
    const std::string command =
        "cd " + folder_.native() + " && /usr/bin/openssl " + words + " >" + log + " 2>&1";
    if (std::system(command.c_str()) == 0) return;
    std::ifstream text(log);
    throw std::runtime_error("openssl " + words + ": " +
                             std::string(std::istreambuf_iterator<char>(text), {}));
  }

  std::filesystem::path folder_;
};

struct Machine {
  Machine(const std::string& url, std::string ca_file)
      : store({.directory = folder.path(),
               .diagnostics = warnings.sink(),
               .remote = std::make_shared<RemoteCache>(RemoteOptions{
                   .url = url, .mode = RemoteMode::read_write, .ca_file = std::move(ca_file)})}) {}

  Source use(const std::string& name) {
    const auto result = store.load_or_build(key_named(name), [&] { return entry_named(name); });
    REQUIRE(result.entry->payload == entry_named(name).payload);
    return result.source;
  }

  TemporaryFolder folder;
  Warnings warnings;
  Store store;
};

void require_refused(const std::string& url, const std::string& ca_file, const std::string& why) {
  INFO(why);
  Machine machine(url, ca_file);
  REQUIRE(machine.use("a") == Source::built);
  REQUIRE(machine.use("b") == Source::built);
  REQUIRE(machine.warnings.count() == 1);
  REQUIRE_THAT(machine.warnings.texts()[0], ContainsSubstring(url) && ContainsSubstring(why));
  REQUIRE(machine.store.stats().remote.stored == 0);
}

}  // namespace

TEST_CASE("remote: https is held to the certificates that are trusted, and to the server's name",
          "[nginx]") {
  if (!has_nginx_and_openssl()) return;
  const TemporaryFolder folder;
  const Authority ours(folder / "ours");
  const Authority other(folder / "other");
  const Nginx server(folder / "nginx", ours.certificate_for("127.0.0.1"));
  REQUIRE(server.url().starts_with("https://"));

  require_refused(server.url(), "", "certificate");
  require_refused(server.url(), other.file(), "certificate");
  require_refused(server.url(), folder / "nowhere.pem", "nowhere.pem");
  REQUIRE(std::filesystem::is_empty(server.kept()));

  Machine first(server.url(), ours.file());
  REQUIRE(first.use("a") == Source::built);
  Machine second(server.url(), ours.file());
  REQUIRE(second.use("a") == Source::remote);
  REQUIRE(first.warnings.count() + second.warnings.count() == 0);

  const Nginx impostor(folder / "impostor", ours.certificate_for("127.0.0.2"));
  require_refused(impostor.url(), ours.file(), "127.0.0.1");
}
