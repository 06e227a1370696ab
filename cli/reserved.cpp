#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/verb.hpp"

namespace tilewright::cli {
namespace {

class ReservedVerb : public Verb {
 public:
  ReservedVerb(const std::string& name, const std::string& summary)
      : Verb(name, summary + " (not yet)", "tilewright " + name) {}

  void declare(CLI::App& app) override { app.allow_extras(); }

  ExitStatus execute() override {
    throw Error(ErrorCode::usage,
                fmt::format("not yet: \"{}\" is reserved for a later version", name()),
                "tilewright --help lists what is there");
  }
};

}  // namespace

std::unique_ptr<Verb> make_reserved_verb(std::string name, std::string summary) {
  return std::make_unique<ReservedVerb>(std::move(name), std::move(summary));
}

}  // namespace tilewright::cli
