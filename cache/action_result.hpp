#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sha256.hpp"

namespace tilewright::cache {

// What Bazel's remote cache keeps under /ac/: an ActionResult of the Remote Execution API, version
// 2, a message of protocol buffers. Of its fields these are written:
//
//     ActionResult { repeated OutputFile output_files = 2; }
//     OutputFile   { string path = 1; Digest digest = 2; }
//     Digest       { string hash = 1; int64 size_bytes = 2; }

/// A blob under /cas/, and how many bytes it has.
struct BlobName {
  Digest digest;
  std::uint64_t bytes = 0;

  bool operator==(const BlobName&) const = default;
};

/// The path of the one output file.
inline constexpr std::string_view kOutputPath = "kernel.twk";

/// An ActionResult whose only output file is this blob, at kOutputPath.
std::vector<std::byte> encode_action_result(const BlobName& blob);

/// The blob at kOutputPath. Takes any bytes, and passes over other files and fields, which servers
/// may add; nothing where the message is malformed or names no such file.
std::optional<BlobName> decode_action_result(std::span<const std::byte> message);

}  // namespace tilewright::cache
