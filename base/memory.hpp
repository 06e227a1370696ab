#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright {

/// Bytes that this process may still take: what the machine has available (MemAvailable and free
/// swap), its control group's limit, and its limit of address space, whichever is least.
std::uint64_t available_memory();

/// Refuses at once what cannot fit. Memory that the system promises and does not have would end the
/// process without a word.
/// @param bytes in floating point, as a product of sizes may exceed any integer
/// @param what what needs them, a plural: "the tensors of ..."
/// @throws Error with code memory, with both numbers
void require_memory_for(double bytes, std::string_view what);

/// "512 B", "1.5 GiB", "3.1e+09 GiB"
std::string memory_text(double bytes);

}  // namespace tilewright
