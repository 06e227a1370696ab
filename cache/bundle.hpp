#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../base/file_io.hpp"
#include "bundle_format.hpp"

namespace tilewright::cache {

/// An open bundle: an immutable file of compiled things that is made at deploy time and read by
/// many processes. The index is verified when it is opened, an entry each time that it is read.
/// Safe to use from many threads. The file may be replaced (by rename) while it is open; what was
/// opened stays in use.
class Bundle {
 public:
  /// The file must be a regular one that root or this user owns, and that neither group nor others
  /// can write.
  /// @param trusted whose signature it must bear, one of them; empty: it need not be signed, but a
  ///        signature that it bears must be right
  /// @throws Error with code file, which names the file and says why it must not be used
  static std::shared_ptr<const Bundle> open(const std::filesystem::path& path,
                                            const std::vector<PublicKey>& trusted = {});

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t bytes() const { return header_.file_bytes; }
  const std::optional<PublicKey>& signer() const { return header_.signer; }

  std::size_t size() const { return index_.records().size(); }
  /// @throws Error with code usage for an entry from size() on; so do facts() and load()
  const BundleRecord& record(std::size_t entry) const;
  std::optional<std::size_t> find(const Digest& request) const { return index_.find(request); }
  std::optional<std::size_t> find_memo(const Digest& memo) const { return index_.find_memo(memo); }
  /// Nothing where the writer contradicted itself; such an entry is not loaded either.
  std::optional<BundleFacts> facts(std::size_t entry) const;

  struct Loaded {
    std::shared_ptr<const Entry> entry;  ///< null where it must not be used
    std::string problem;                 ///< then: why, a clause
  };
  /// Reads an entry and verifies it. Its digest is taken over the very bytes that are returned, and
  /// is its key.
  Loaded load(std::size_t entry) const;

 private:
  void require(std::size_t entry) const;

  Bundle(std::filesystem::path path, FileDescriptor file, const BundleHeader& header,
         BundleIndex index)
      : path_(std::move(path)), file_(std::move(file)), header_(header), index_(std::move(index)) {}

  std::filesystem::path path_;
  FileDescriptor file_;
  BundleHeader header_;
  BundleIndex index_;
};

struct WrittenBundle {
  std::size_t entries = 0;  ///< items with the same request counted once
  std::uint64_t bytes = 0;
  Digest digest;  ///< of the file
};

/// Writes a bundle, whole or not at all: encode_bundle() and write_file().
/// @throws Error with code disk
WrittenBundle write_bundle(const std::filesystem::path& path, std::vector<BundleItem> items,
                           const SigningKey* key = nullptr);

}  // namespace tilewright::cache
