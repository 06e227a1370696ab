#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cache/bundle_format.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"

namespace tilewright::cli {

/// A bundle that was written.
struct BundleSummary {
  std::string path;
  std::size_t kernels = 0;
  std::uint64_t bytes = 0;
  std::string digest;  ///< SHA-256 of the file: equal bundles have equal ones
  std::string signer;  ///< public key, in hexadecimal; empty: not signed
};

/// {bundle, bytes, sha256, signer}
Json to_json(const BundleSummary& summary);

/// One line, and where it is signed one more that says how to require the signature.
std::string describe(const BundleSummary& summary);

/// Where a bundle is written to: the arguments that precompile and cache export share.
class BundleFile {
 public:
  /// --out and --sign.
  void declare(CLI::App& app, bool out_is_required = true);

  /// The first of its options that was given; empty: none.
  std::string given_option() const;

  /// Notices before any work is done that the file cannot be written, or the key not be read.
  /// @param read what else the command reads
  /// @throws Error with code usage, disk or file
  void prepare(std::vector<std::filesystem::path> read = {});

  /// @throws Error with code disk
  BundleSummary write(std::vector<cache::BundleItem> items) const;

 private:
  std::string path_;
  std::string key_path_;
  std::optional<cache::SigningKey> key_;
};

}  // namespace tilewright::cli
