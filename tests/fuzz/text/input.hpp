#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

/// What libFuzzer calls. A target catches tilewright::Error, which is how wrong input is refused;
/// whatever else is thrown, a sanitizer's finding, or require(false) is a finding.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace tilewright::fuzz {

/// The input as text.
std::string_view as_text(const std::uint8_t* data, std::size_t size);
/// The input as bytes.
std::span<const std::byte> as_bytes(const std::uint8_t* data, std::size_t size);

/// Ends the process with a message where something that must hold does not.
void require(bool holds, const char* what);

/// A file in memory, for readers that take a path. One at a time; each replaces the one before.
std::filesystem::path memory_file(std::span<const std::byte> bytes);

}  // namespace tilewright::fuzz
