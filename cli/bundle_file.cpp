#include "cli/bundle_file.hpp"

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "cache/bundle.hpp"
#include "cli/files.hpp"

namespace tilewright::cli {

Json to_json(const BundleSummary& summary) {
  return {{"bundle", summary.path},
          {"bytes", summary.bytes},
          {"sha256", summary.digest},
          {"signer", summary.signer.empty() ? Json() : Json(summary.signer)}};
}

std::string describe(const BundleSummary& summary) {
  std::string text =
      fmt::format("wrote {}: {}, {}, SHA-256 {}\n", summary.path,
                  counted(summary.kernels, "kernel"), format_bytes(summary.bytes), summary.digest);
  if (!summary.signer.empty()) {
    text += fmt::format("signed; to require it: TILEWRIGHT_BUNDLE_KEY={}\n", summary.signer);
  }
  return text;
}

void BundleFile::declare(CLI::App& app, bool out_is_required) {
  CLI::Option* const out = app.add_option("--out", path_, "the bundle to write, FILE.twb");
  if (out_is_required) out->required();
  app.add_option("--sign", key_path_,
                 "sign it with this Ed25519 key, a PEM file (openssl genpkey -algorithm ed25519)");
}

std::string BundleFile::given_option() const {
  if (!path_.empty()) return "--out";
  return key_path_.empty() ? "" : "--sign";
}

void BundleFile::prepare(std::vector<std::filesystem::path> read) {
  if (path_.empty()) {
    throw Error(ErrorCode::usage, "--out is missing",
                "name the bundle to write: --out kernels.twb");
  }
  read.emplace_back(key_path_);
  require_writable(path_, "--out", read);
  if (!key_path_.empty()) key_ = cache::SigningKey::from_file(key_path_);
}

BundleSummary BundleFile::write(std::vector<cache::BundleItem> items) const {
  const cache::SigningKey* const key = key_ ? &*key_ : nullptr;
  const cache::WrittenBundle written = cache::write_bundle(path_, std::move(items), key);
  return {.path = path_,
          .kernels = written.entries,
          .bytes = written.bytes,
          .digest = written.digest.hex(),
          .signer = key ? key->public_key().hex() : std::string()};
}

}  // namespace tilewright::cli
