#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cache/bundle.hpp"
#include "tests/cache/support.hpp"

namespace cache_test {

/// A thing to put into a bundle, whose payload says its name.
tilewright::cache::BundleItem item_named(const std::string& name, std::size_t bytes = 100);

/// Items "kernel 0", "kernel 1", ...
std::vector<tilewright::cache::BundleItem> items(std::size_t count, std::size_t bytes = 100);

tilewright::cache::Digest request_named(const std::string& name);
tilewright::cache::Digest memo_named(const std::string& name);

/// Writes a private Ed25519 key, the same for the same seed, as a PEM file.
std::filesystem::path write_key(const TemporaryFolder& folder, std::uint8_t seed);

/// Why a bundle cannot be opened; empty where it can.
std::string refusal(const std::filesystem::path& path,
                    const std::vector<tilewright::cache::PublicKey>& trusted = {});

/// Writes bytes as a bundle's file, with the mode that is wanted of one.
void write_raw(const std::filesystem::path& path, const std::vector<std::byte>& bytes);

/// Makes the digests of a bundle's index and header right, as an attacker who alters it on purpose
/// would.
void fix_digests(std::vector<std::byte>& bundle);

}  // namespace cache_test
