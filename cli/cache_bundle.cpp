#include "cli/cache_bundle.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "cache/bundles.hpp"
#include "cli/output.hpp"

namespace tilewright::cli {
namespace {

struct BundleLine {
  std::string request;
  std::string kernel = "-";
  std::string target = "-";
  std::string spec = "-";
  std::uint64_t bytes = 0;
  std::string problem;  // empty: the entry is sound, or was not read
};

std::string fact_of(const cache::Metadata& metadata, const char* name) {
  const auto found = metadata.find(name);
  return found == metadata.end() ? "-" : found->second;
}

// Without interpretation the entry's payload.
BundleLine line_of(const cache::Bundle& bundle, std::size_t entry) {
  const cache::BundleRecord& record = bundle.record(entry);
  BundleLine line{.request = record.request.hex(), .bytes = record.bytes};
  const std::optional<cache::BundleFacts> facts = bundle.facts(entry);
  if (!facts) {
    line.problem = "what is recorded of it contradicts its request";
    return line;
  }
  line.kernel = fact_of(facts->metadata, "kernel");
  line.target = fact_of(facts->metadata, "target");
  line.spec = fact_of(facts->metadata, "spec");
  return line;
}

Json to_json(const BundleLine& line) {
  return {
      {"request", line.request}, {"kernel", line.kernel},
      {"target", line.target},   {"spec", line.spec},
      {"bytes", line.bytes},     {"problem", line.problem.empty() ? Json() : Json(line.problem)}};
}

Json signer_of(const cache::Bundle& bundle) {
  return bundle.signer() ? Json(bundle.signer()->hex()) : Json();
}

std::string heading(const cache::Bundle& bundle) {
  return fmt::format("{}: {}, {}, {}\n", bundle.path().string(), counted(bundle.size(), "kernel"),
                     format_bytes(bundle.bytes()),
                     bundle.signer() ? "signed by " + bundle.signer()->hex() : "not signed");
}

std::string table_of(const std::vector<BundleLine>& lines) {
  Table table({"request", "kernel", "target", "spec", "size"});
  for (const BundleLine& line : lines) {
    table.add({line.request.substr(0, 12), line.kernel, line.target, line.spec,
               format_bytes(line.bytes)});
  }
  return lines.empty() ? std::string() : table.text();
}

void require_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) return;
  throw Error(ErrorCode::file,
              fmt::format("\"{}\" {}", path,
                          std::filesystem::exists(path, ignored) ? "is no file" : "does not exist"),
              "name a bundle, as tilewright precompile and cache export write it");
}

ExitStatus report(const std::string& path, const cache::Bundle* bundle,
                  const std::vector<BundleLine>& lines, const std::string& problem, bool json) {
  std::vector<BundleLine> bad;
  for (const BundleLine& line : lines) {
    if (!line.problem.empty()) bad.push_back(line);
  }
  const bool ok = problem.empty() && bad.empty();
  if (json) {
    Json list = Json::array();
    for (const BundleLine& line : bad) list.push_back(to_json(line));
    print_json({{"bundle", path},
                {"ok", ok},
                {"problem", problem.empty() ? Json() : Json(problem)},
                {"signer", bundle ? signer_of(*bundle) : Json()},
                {"kernels", lines.size()},
                {"bytes", bundle ? Json(bundle->bytes()) : Json()},
                {"bad", list}});
    return ok ? kDone : kNegativeVerdict;
  }
  std::string text = ok ? "ok: every entry is what was written\n" : "DAMAGED\n";
  if (!problem.empty()) text += fmt::format("  {}\n", problem);
  for (const BundleLine& line : bad) {
    text += fmt::format("  {} {} for {}: {}\n", line.request.substr(0, 12), line.kernel,
                        line.target, line.problem);
  }
  if (bundle) text += heading(*bundle);
  if (!bad.empty())
    text += fmt::format("{} of {} {} bad and never loaded\n", bad.size(),
                        counted(lines.size(), "kernel"), is_or_are(bad.size()));
  print(text);
  return ok ? kDone : kNegativeVerdict;
}

}  // namespace

void list_bundle(const std::string& path, bool json) {
  require_file(path);
  const std::shared_ptr<const cache::Bundle> bundle =
      cache::Bundle::open(path, cache::trusted_keys());
  std::vector<BundleLine> lines;
  for (std::size_t entry = 0; entry < bundle->size(); ++entry) {
    lines.push_back(line_of(*bundle, entry));
  }
  if (!json) return print(heading(*bundle) + table_of(lines));
  Json entries = Json::array();
  for (const BundleLine& line : lines) entries.push_back(to_json(line));
  print_json({{"bundle", path},
              {"signer", signer_of(*bundle)},
              {"bytes", bundle->bytes()},
              {"entries", entries}});
}

ExitStatus verify_bundle(const std::string& path, bool json) {
  require_file(path);
  const std::vector<cache::PublicKey> trusted = cache::trusted_keys();
  std::shared_ptr<const cache::Bundle> bundle;
  try {
    bundle = cache::Bundle::open(path, trusted);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::file) throw;
    return report(path, nullptr, {}, error.message(), json);
  }
  std::vector<BundleLine> lines;
  for (std::size_t entry = 0; entry < bundle->size(); ++entry) {
    BundleLine line = line_of(*bundle, entry);
    const cache::Bundle::Loaded loaded = bundle->load(entry);
    if (!loaded.entry) line.problem = loaded.problem;
    lines.push_back(std::move(line));
  }
  return report(path, bundle.get(), lines, {}, json);
}

}  // namespace tilewright::cli
