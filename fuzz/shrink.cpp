#include "fuzz/shrink.hpp"

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/simpler.hpp"

namespace tilewright::verify::fuzz {
namespace {

using Simpler = std::vector<FuzzCase> (*)(const FuzzCase&);

// What the library refused, but for the numbers in it, which shrinking changes. Empty where a
// failure is of a class that says it all.
std::string kind_of_error(const Outcome& outcome) {
  if (outcome.failure != Failure::error || !outcome.error) return {};
  std::string kind = outcome.error->message;
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  return kind;
}

class Shrinker {
 public:
  Shrinker(const FuzzCase& failing, const Outcome& outcome, const RunCase& run,
           const ShrinkOptions& options)
      : run_(run),
        options_(options),
        keys_stay_(!has_all_trees(failing)),
        shrunk_{failing, outcome, 0, false} {
    tried_.insert(to_json(failing));
  }

  Shrunk result() {
    bool smaller = true;
    while (smaller && !is_exhausted()) {
      smaller = false;
      for (const Simpler simpler : {simpler_shapes, simpler_features, simpler_snippets}) {
        while (take_one(simpler)) smaller = true;
      }
    }
    shrunk_.finished = !is_exhausted();
    return std::move(shrunk_);
  }

 private:
  // Goes on from the first simpler case that fails alike; false where there is none.
  bool take_one(Simpler simpler) {
    for (FuzzCase& candidate : simpler(shrunk_.smallest)) {
      if (is_exhausted()) return false;
      if (!tried_.insert(to_json(candidate)).second) continue;
      ++shrunk_.runs;
      std::optional<Outcome> outcome = alike(run_(candidate));
      if (!outcome) continue;
      shrunk_.smallest = std::move(candidate);
      shrunk_.outcome = std::move(*outcome);
      if (options_.progress) options_.progress(shrunk_.smallest, shrunk_.runs);
      return true;
    }
    return false;
  }

  // What of an outcome is the failure that is looked for.
  std::optional<Outcome> alike(const Outcome& outcome) const {
    for (Outcome& part : taken_apart(outcome)) {
      if (part.failure != shrunk_.outcome.failure) continue;
      if (kind_of_error(part) != kind_of_error(shrunk_.outcome)) continue;
      if (!keys_stay_ || part.key == shrunk_.outcome.key) return std::move(part);
    }
    return std::nullopt;
  }

  bool is_exhausted() const {
    if (options_.stop && options_.stop()) return true;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start_;
    return shrunk_.runs >= options_.max_runs || taken.count() > options_.max_seconds;
  }

  const RunCase& run_;
  const ShrinkOptions& options_;
  bool keys_stay_;  // a random snippet's text changes, and its places with it
  Shrunk shrunk_;
  std::set<std::string> tried_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Shrunk shrink(const FuzzCase& failing, const Outcome& outcome, const RunCase& run,
              const ShrinkOptions& options) {
  return Shrinker(failing, outcome, run, options).result();
}

std::int64_t tokens(const FuzzCase& fuzz_case) {
  return fuzz_case.shape.q_len + fuzz_case.shape.kv_len;
}

}  // namespace tilewright::verify::fuzz
