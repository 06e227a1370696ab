// Bundles, through the whole reader, with right digests and lengths and without.

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.hpp"
#include "cache/bundle.hpp"
#include "tests/fuzz/text/input.hpp"

using namespace tilewright;
using namespace tilewright::cache;

namespace {

// Of the header, as bundle_format.hpp lays it out.
constexpr std::size_t kIndexBytes = 16;
constexpr std::size_t kFileBytes = 24;
constexpr std::size_t kIndexDigest = 32;
constexpr std::size_t kSigner = 64;
constexpr std::size_t kHeaderDigest = 160;

void check_bundle(std::span<const std::byte> file) {
  try {
    const auto bundle = Bundle::open(fuzz::memory_file(file));
    for (std::size_t entry = 0; entry < bundle->size(); ++entry) {
      fuzz::require(bundle->find(bundle->record(entry).request).has_value(),
                    "every entry is found by its request");
      const Bundle::Loaded loaded = bundle->load(entry);
      fuzz::require((loaded.entry != nullptr) == loaded.problem.empty(),
                    "an entry is loaded or has a problem");
    }
  } catch (const Error& error) {
    fuzz::require(error.code() == ErrorCode::file, "what is no bundle is an error of the file");
  }
}

void put_number(std::vector<std::byte>& file, std::size_t offset, std::uint64_t number) {
  std::memcpy(file.data() + offset, &number, sizeof number);
}

void put_digest(std::vector<std::byte>& file, std::size_t offset, std::span<const std::byte> of) {
  const Digest digest = sha256(of);
  std::memcpy(file.data() + offset, digest.bytes.data(), digest.bytes.size());
}

// No fuzzer guesses a SHA-256, so the digests, the file's length and the lack of a signature are
// put right. The index stays as it is.
void put_right(std::vector<std::byte>& file) {
  std::uint64_t index_bytes = 0;
  std::memcpy(&index_bytes, file.data() + kIndexBytes, sizeof index_bytes);
  index_bytes = std::min<std::uint64_t>(index_bytes, file.size() - kBundleHeaderBytes);
  put_number(file, kIndexBytes, index_bytes);
  put_number(file, kFileBytes, file.size());
  put_digest(file, kIndexDigest, std::span(file).subspan(kBundleHeaderBytes, index_bytes));
  std::memset(file.data() + kSigner, 0, kHeaderDigest - kSigner);
  put_digest(file, kHeaderDigest, std::span(file).first(kHeaderDigest));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = fuzz::as_bytes(data, size);
  check_bundle(bytes);
  if (size < kBundleHeaderBytes) return 0;
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  put_right(file);
  check_bundle(file);
  return 0;
}
