// safetensors files, through the whole reader: no tensor is larger than the file.

#include <cstdint>

#include "base/error.hpp"
#include "runtime/api/safetensors.hpp"
#include "runtime/io/safetensors_header.hpp"
#include "tests/fuzz/text/input.hpp"

using namespace tilewright;

namespace {

constexpr std::size_t kLengthBytes = 8;

// The header alone, whatever its length claims to be.
void check_header(std::string_view text) {
  const SafetensorsHeader header = parse_safetensors_header(text, 64, "fuzz");
  const std::string written = format_safetensors_header(header);
  const SafetensorsHeader again = parse_safetensors_header(written, 64, "fuzz");
  fuzz::require(again.entries.size() == header.entries.size() && again.metadata == header.metadata,
                "a header that is written is read as the same");
}

void check_file(std::span<const std::byte> bytes) {
  std::size_t total = 0;
  for (const auto& [name, tensor] : read_safetensors(fuzz::memory_file(bytes)).tensors) {
    total += tensor.view().bytes();
  }
  fuzz::require(total <= bytes.size(), "tensors are no larger than their file");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto guarded = [](const auto& check) {
    try {
      check();
    } catch (const Error& error) {
      fuzz::require(error.code() == ErrorCode::file || error.code() == ErrorCode::usage,
                    "what is wrong in a file is an error of the file");
    }
  };
  guarded([&] { check_file(fuzz::as_bytes(data, size)); });
  if (size < kLengthBytes) return 0;
  guarded([&] { check_header(fuzz::as_text(data + kLengthBytes, size - kLengthBytes)); });
  return 0;
}
