#include "cache/bundle.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.hpp"

namespace tilewright::cache {
namespace {

constexpr mode_t kMode = 0644;
constexpr const char* kBuildAgain = "build it again with tilewright precompile";

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why,
                         std::string hint) {
  throw Error(ErrorCode::file,
              fmt::format("the bundle \"{}\" must not be used: {}", path.native(), why),
              std::move(hint));
}

void check_file(const std::filesystem::path& path, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) refuse(path, "it is not a regular file", "name a file");
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    refuse(path,
           fmt::format("it belongs to user {}, neither to root nor to user {}", status.st_uid,
                       ::geteuid()),
           "chown it, or copy it");
  }
  if ((status.st_mode & 022) != 0) {
    refuse(path, fmt::format("others can write to it (mode {:04o})", status.st_mode & 07777),
           "chmod go-w it");
  }
}

// False where the file is shorter, or cannot be read.
bool read_at(const FileDescriptor& file, std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t count = ::pread(file.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    out = out.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return true;
}

void check_signer(const std::filesystem::path& path, const std::optional<PublicKey>& signer,
                  const std::vector<PublicKey>& trusted) {
  if (trusted.empty()) return;
  if (!signer) {
    refuse(path, "it is not signed, and a signature is required",
           "sign it: write_bundle() with a SigningKey");
  }
  if (std::find(trusted.begin(), trusted.end(), *signer) != trusted.end()) return;
  refuse(path, fmt::format("it is signed by {}, which is not trusted", signer->hex()),
         "TILEWRIGHT_BUNDLE_KEY names the trusted keys");
}

}  // namespace

std::shared_ptr<const Bundle> Bundle::open(const std::filesystem::path& path,
                                           const std::vector<PublicKey>& trusted) {
  OpenedFile opened = open_for_reading(AT_FDCWD, path.native(), true);
  if (opened.error) {
    refuse(path, opened.error.message(), "check TILEWRIGHT_BUNDLES, or build the bundle");
  }
  check_file(path, opened.status);
  const auto file_bytes = static_cast<std::uint64_t>(opened.status.st_size);
  std::vector<std::byte> start(std::min<std::uint64_t>(file_bytes, kBundleHeaderBytes));
  if (!read_at(opened.file, 0, start)) refuse(path, "it cannot be read", kBuildAgain);
  const auto [header, problem] = decode_bundle_header(start);
  if (!problem.empty()) refuse(path, problem, kBuildAgain);
  check_signer(path, header.signer, trusted);
  if (header.file_bytes != file_bytes) {
    refuse(path, fmt::format("it has {} bytes, and should have {}", file_bytes, header.file_bytes),
           "copy it again");
  }
  std::vector<std::byte> index_bytes(header.index_bytes);
  if (!read_at(opened.file, kBundleHeaderBytes, index_bytes)) {
    refuse(path, "its index cannot be read", kBuildAgain);
  }
  std::string index_problem;
  std::optional<BundleIndex> index = BundleIndex::decode(header, index_bytes, index_problem);
  if (!index) refuse(path, index_problem, kBuildAgain);
  return std::shared_ptr<const Bundle>(
      new Bundle(path, std::move(opened.file), header, *std::move(index)));
}

void Bundle::require(std::size_t number) const {
  if (number < size()) return;
  throw Error(ErrorCode::usage, fmt::format("the bundle \"{}\" has no entry {}: it has {}",
                                            path_.native(), number, size()));
}

const BundleRecord& Bundle::record(std::size_t entry) const {
  require(entry);
  return index_.records()[entry];
}

std::optional<BundleFacts> Bundle::facts(std::size_t entry) const {
  require(entry);
  return index_.facts(entry);
}

Bundle::Loaded Bundle::load(std::size_t number) const {
  const BundleRecord& wanted = record(number);
  std::optional<BundleFacts> recorded = facts(number);
  if (!recorded) return {nullptr, "its facts contradict each other"};
  std::vector<std::byte> payload(wanted.bytes);
  if (!read_at(file_, wanted.offset, payload)) return {nullptr, "it cannot be read"};
  if (bundle_digest(wanted.request, payload) != wanted.digest) {
    return {nullptr, "its digest does not match"};
  }
  return {std::make_shared<const Entry>(Entry{.key = {wanted.digest},
                                              .metadata = std::move(recorded->metadata),
                                              .payload = std::move(payload)}),
          {}};
}

WrittenBundle write_bundle(const std::filesystem::path& path, std::vector<BundleItem> items,
                           const SigningKey* key) {
  const std::vector<std::byte> bytes = encode_bundle(std::move(items), key);
  write_file(path, bytes, kMode);
  return {.entries = decode_bundle_header(bytes).header.entries,
          .bytes = bytes.size(),
          .digest = sha256(bytes)};
}

}  // namespace tilewright::cache
