#include "cache/bundles.hpp"

#include <cstdlib>
#include <fstream>
#include <optional>

#include <unistd.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "tests/cache/bundle_support.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::cache;
using namespace cache_test;
using Catch::Matchers::ContainsSubstring;

namespace {

// A variable of the environment, put back at the end of the scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("bundles: the first one that has an entry answers, then memory does") {
  const TemporaryFolder folder;
  write_bundle(folder / "a.twb", {item_named("a"), item_named("both", 10)});
  write_bundle(folder / "b.twb", {item_named("b"), item_named("both", 20)});
  const Bundles bundles({.paths = {folder / "a.twb", folder / "b.twb"}});
  REQUIRE(bundles.load(request_named("a")).found.bundle->path() == folder / "a.twb");
  REQUIRE(bundles.load(request_named("b")).found.bundle->path() == folder / "b.twb");
  REQUIRE(bundles.load_memo(memo_named("both")).entry->payload.size() == 10);
  REQUIRE(bundles.load_memo(memo_named("both")).from_memory);
  REQUIRE_FALSE(bundles.load(request_named("c")).entry);
  REQUIRE_FALSE(bundles.find(request_named("c")));
  REQUIRE(bundles.has_ingredient("name", "b"));
  REQUIRE_FALSE(bundles.has_ingredient("name", "c"));
}

TEST_CASE("bundles: a bad entry is reported once, and the next bundle answers") {
  const TemporaryFolder folder;
  write_bundle(folder / "a.twb", {item_named("x", 50)});
  write_bundle(folder / "b.twb", {item_named("x", 60)});
  auto bytes = tilewright::read_file(folder / "a.twb");
  bytes.back() ^= std::byte{1};
  write_raw(folder / "a.twb", bytes);
  Warnings warnings;
  const Bundles bundles({.paths = {folder / "a.twb", folder / "b.twb"},
                         .trusted = {},
                         .diagnostics = warnings.sink()});
  for (int i = 0; i < 3; ++i) {
    REQUIRE(bundles.load(request_named("x")).entry->payload.size() == 60);
  }
  REQUIRE(warnings.count() == 1);
  REQUIRE_THAT(warnings.texts()[0],
               ContainsSubstring("a.twb") && ContainsSubstring("its digest does not match"));
}

TEST_CASE("bundles: one that must not be used is a warning, for whoever listens first") {
  const TemporaryFolder folder;
  write_bundle(folder / "b.twb", {item_named("x")});
  const Bundles bundles({.paths = {folder / "absent.twb", folder / "b.twb"}});
  REQUIRE(bundles.load(request_named("x")).entry);
  REQUIRE(bundles.opened()[0].bundle == nullptr);
  Warnings first;
  Warnings second;
  bundles.attach(first.sink());
  bundles.attach(second.sink());
  REQUIRE(first.count() == 1);
  REQUIRE_THAT(first.texts()[0], ContainsSubstring("absent.twb"));
  REQUIRE(second.count() == 0);
}

TEST_CASE("bundles: the environment names bundles and trusted keys") {
  const TemporaryFolder folder;
  const SigningKey key = SigningKey::from_file(write_key(folder, 3));
  write_bundle(folder / "signed.twb", {item_named("signed")}, &key);
  write_bundle(folder / "plain.twb", {item_named("plain")});
  const Variable paths("TILEWRIGHT_BUNDLES",
                       (folder / "signed.twb").native() + "::" + (folder / "plain.twb").native());
  REQUIRE(bundle_paths().size() == 2);
  REQUIRE(Bundles::from_environment()->load(request_named("plain")).entry);
  {
    const Variable trusted("TILEWRIGHT_BUNDLE_KEY", key.public_key().hex());
    const auto bundles = Bundles::from_environment();
    REQUIRE(bundles->load(request_named("signed")).entry);
    REQUIRE_FALSE(bundles->load(request_named("plain")).entry);
    REQUIRE_THAT(bundles->opened()[1].problem, ContainsSubstring("it is not signed"));
  }
  // Set and empty: a script's variable that was lost, which must not let unsigned bundles in.
  for (const std::string& value :
       {std::string(""), std::string(":"), std::string("::"), std::string(" "),
        key.public_key().hex() + ":", ":" + key.public_key().hex()}) {
    const Variable wrong("TILEWRIGHT_BUNDLE_KEY", value);
    CAPTURE(value);
    REQUIRE_THROWS_AS(trusted_keys(), tilewright::Error);
  }
  for (const char* contents :
       {"", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"}) {
    std::ofstream(folder / "bad.pem") << contents;
    const Variable wrong("TILEWRIGHT_BUNDLE_KEY", (folder / "bad.pem").native());
    REQUIRE_THROWS_AS(trusted_keys(), tilewright::Error);
  }
  {
    const Variable wrong("TILEWRIGHT_BUNDLE_KEY", (folder / ".").native());
    REQUIRE_THROWS_AS(trusted_keys(), tilewright::Error);
  }
  const Variable wrong("TILEWRIGHT_BUNDLE_KEY", "nonsense");
  try {
    Bundles::from_environment();
    FAIL("a key that cannot be read was taken for none");
  } catch (const tilewright::Error& error) {
    REQUIRE(error.code() == tilewright::ErrorCode::usage);
    REQUIRE_THAT(error.message(), ContainsSubstring("TILEWRIGHT_BUNDLE_KEY"));
  }
}
