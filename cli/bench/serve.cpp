#include "cli/bench/serve.hpp"

#include <algorithm>
#include <cstdio>
#include <istream>
#include <limits>
#include <list>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "cli/bench/workloads.hpp"
#include "generator/spec/spec_json.hpp"

namespace tilewright::cli {
namespace {

Error wrong_request(const std::string& message, const std::string& hint = {}) {
  return Error(ErrorCode::usage, "the request " + message, hint);
}

// Deeper values would only be refused after they had been copied, level by level.
bool limit_depth(int depth, Json::parse_event_t, Json&) {
  constexpr int kMostDepth = 32;
  if (depth > kMostDepth) throw wrong_request("is nested too deeply");
  return true;
}

// The arguments of a request, over the command line's.
class Request {
 public:
  explicit Request(const std::string& line) : json_(Json::parse(line, limit_depth, false)) {
    if (!json_.is_object()) throw wrong_request("is no JSON object on one line");
    for (const auto& [key, value] : json_.items()) {
      if (std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end()) continue;
      std::string hint = did_you_mean(key, kKeys);
      if (hint.empty()) hint = "allowed are " + one_of(kKeys);
      throw wrong_request(fmt::format("has an unknown key \"{}\"", key), hint);
    }
  }

  BenchArguments over(BenchArguments arguments) const {
    if (!json_.contains("spec")) throw wrong_request("has no \"spec\"");
    arguments.spec = spec_from_json(json_["spec"].dump());
    read("batch", arguments.batch);
    read("heads", arguments.heads);
    read("kv_heads", arguments.kv_heads);
    read("q_len", arguments.q_len);
    read("kv_len", arguments.kv_len);
    read("inputs", arguments.inputs);
    if (arguments.spec->is_packed() && arguments.inputs.empty()) {
      throw wrong_request("has no \"inputs\", and its spec is packed",
                          "give \"inputs\": \"random:HQ,HKV/Q:KV,...\"");
    }
    read("seed", arguments.seed);
    read("buffers", arguments.buffers);
    read("budget_ms", arguments.timing.budget_ms);
    if (arguments.timing.budget_ms <= 0) {
      throw wrong_request(fmt::format("has \"budget_ms\": {}", json_["budget_ms"].dump()),
                          "a number above 0 is needed");
    }
    read("hot", arguments.timing.hot);
    return arguments;
  }

  /// Equal for requests that are measured on the same tensors.
  std::string subject() const {
    Json subject = json_;
    subject.erase("budget_ms");
    subject.erase("hot");
    return subject.dump();
  }

 private:
  inline static const std::vector<std::string> kKeys = {"spec",    "batch",  "heads",    "kv_heads",
                                                        "q_len",   "kv_len", "inputs",   "seed",
                                                        "buffers", "hot",    "budget_ms"};

  template <typename T>
  void read(const std::string& key, T& value) const {
    if (!json_.contains(key)) return;
    const Json& given = json_[key];
    bool fits = false;
    if constexpr (std::is_same_v<T, bool>) {
      fits = given.is_boolean();
    } else if constexpr (std::is_integral_v<T>) {
      constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
      fits = given.is_number_unsigned() && given.get<std::uint64_t>() <= kMost;
    } else if constexpr (std::is_floating_point_v<T>) {
      fits = given.is_number();
    } else {
      fits = given.is_string();
    }
    if (!fits) {
      throw wrong_request(
          fmt::format("has \"{}\": {}", key, given.dump()),
          std::is_integral_v<T> ? "a whole number that is not negative is needed" : "");
    }
    given.get_to(value);
  }

  Json json_;
};

// The call of a request.
struct Subject {
  Subject(std::string its_name, const BenchArguments& arguments)
      : name(std::move(its_name)),
        call(workloads("dense", arguments).front(), {.device = arguments.device,
                                                     .seed = arguments.seed,
                                                     .buffers = arguments.buffers,
                                                     .threads = nullptr,
                                                     .batch_invariant = arguments.batch_invariant,
                                                     .splits = arguments.splits}),
        kept(call.kept_share()) {}

  std::string name;
  PreparedCall call;
  double kept;
};

// Those of the last requests, the latest first.
class Subjects {
 public:
  explicit Subjects(std::size_t kept) : kept_(kept) {}

  Subject& subject_of(const Request& request, const BenchArguments& arguments) {
    const auto found =
        std::find_if(subjects_.begin(), subjects_.end(),
                     [&](const Subject& subject) { return subject.name == request.subject(); });
    if (found != subjects_.end()) {
      subjects_.splice(subjects_.begin(), subjects_, found);
    } else {
      if (subjects_.size() >= kept_) subjects_.pop_back();  // first, for the device's memory
      subjects_.emplace_front(request.subject(), arguments);
    }
    return subjects_.front();
  }

 private:
  std::size_t kept_;
  std::list<Subject> subjects_;
};

}  // namespace

void serve(std::istream& requests, const BenchArguments& defaults, std::size_t kept) {
  Subjects subjects(kept);
  for (std::string line; std::getline(requests, line);) {
    if (line.empty()) continue;
    try {
      const Request request(line);
      const BenchArguments arguments = request.over(defaults);
      Subject& subject = subjects.subject_of(request, arguments);
      print(forward_row(subject.call, arguments.timing, subject.kept).dump() + '\n');
    } catch (const Error& error) {
      print(to_json(error).dump() + '\n');
    }
    std::fflush(stdout);
  }
}

}  // namespace tilewright::cli
