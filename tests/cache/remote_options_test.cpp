#include "cache/remote_options.hpp"

#include <cstdlib>

#include "base/error.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::cache;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using tilewright::Error;

namespace {

// Environment variables of a scope.
class Variables {
 public:
  Variables(const char* url, const char* mode, const char* timeout) {
    set("TILEWRIGHT_REMOTE_CACHE", url);
    set("TILEWRIGHT_REMOTE_CACHE_MODE", mode);
    set("TILEWRIGHT_REMOTE_CACHE_TIMEOUT", timeout);
    set("CURL_CA_BUNDLE", nullptr);
    set("SSL_CERT_FILE", nullptr);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  ~Variables() {
    for (const char* name : {"TILEWRIGHT_REMOTE_CACHE", "TILEWRIGHT_REMOTE_CACHE_MODE",
                             "TILEWRIGHT_REMOTE_CACHE_TIMEOUT"}) {
      ::unsetenv(name);
    }
  }

 private:
  static void set(const char* name, const char* value) {
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
};

std::string refusal(const char* url, const char* mode = nullptr, const char* timeout = nullptr) {
  const Variables variables(url, mode, timeout);
  try {
    remote_options_from_environment();
  } catch (const Error& error) {
    REQUIRE(error.code() == tilewright::ErrorCode::usage);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("remote options: no URL, no remote cache") {
  const Variables unset(nullptr, "readwrite", "1");
  REQUIRE(!remote_options_from_environment());
  const Variables empty("", nullptr, nullptr);
  REQUIRE(!remote_options_from_environment());
}

TEST_CASE("remote options: the mode is read unless it is said, the time 3 s") {
  {
    const Variables variables("http://cache:8080/kernels//", nullptr, nullptr);
    const auto options = remote_options_from_environment();
    REQUIRE(options->url == "http://cache:8080/kernels");
    REQUIRE(options->mode == RemoteMode::read);
    REQUIRE(options->timeout == 3s);
  }
  const Variables variables("https://cache", "readwrite", "0.25");
  const auto options = remote_options_from_environment();
  REQUIRE(options->mode == RemoteMode::read_write);
  REQUIRE(options->timeout == 250ms);
}

TEST_CASE("remote options: what cannot be understood is an error that says what can") {
  REQUIRE_THAT(refusal("cache:8080"), ContainsSubstring("\"cache:8080\" is no URL") &&
                                          ContainsSubstring("http://cache.example:8080"));
  for (const char* url :
       {"ftp://cache", "http://", "http:///ac", "http://cache/?a=b", "file:///x"}) {
    INFO(url);
    REQUIRE_THAT(refusal(url), ContainsSubstring("is no URL of a remote cache"));
  }
  REQUIRE_THAT(refusal("http://c", "write"),
               ContainsSubstring("MODE is \"write\"") && ContainsSubstring("\"readwrite\""));
  for (const char* timeout : {"0", "-1", "3s", "much", "nan", "1e9"}) {
    INFO(timeout);
    REQUIRE_THAT(refusal("http://c", nullptr, timeout), ContainsSubstring("TIMEOUT is"));
  }
}

TEST_CASE("remote options: no message holds a password") {
  REQUIRE(without_credentials("https://me:secret@cache:1/x") == "https://cache:1/x");
  REQUIRE(without_credentials("https://me:se@cret@cache") == "https://cache");
  REQUIRE(without_credentials("https://cache/x@y") == "https://cache/x@y");
  REQUIRE(without_credentials("me:secret@cache") == "cache");
  const std::string text = refusal("https://me:secret@cache/?a");
  REQUIRE_THAT(text, ContainsSubstring("\"https://cache/?a\"") && !ContainsSubstring("secret"));
}

TEST_CASE("remote options: the certificates are those that the command curl takes") {
  const Variables variables("https://cache", nullptr, nullptr);
  REQUIRE(remote_options_from_environment()->ca_file.empty());
  ::setenv("SSL_CERT_FILE", "/b.pem", 1);
  REQUIRE(remote_options_from_environment()->ca_file == "/b.pem");
  ::setenv("CURL_CA_BUNDLE", "/a.pem", 1);
  REQUIRE(remote_options_from_environment()->ca_file == "/a.pem");
  ::unsetenv("CURL_CA_BUNDLE");
  ::unsetenv("SSL_CERT_FILE");
}
