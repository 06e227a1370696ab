#include "tests/compile_matrix/sass.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <elf.h>

#include "base/error.hpp"

namespace tilewright::compile_matrix {
namespace {

constexpr std::size_t kInstructionBytes = 16;
// The opcode is in the low 12 bits of an instruction.
constexpr std::uint64_t kOpcodeMask = 0xfff;
constexpr std::uint64_t kNopOpcode = 0x918;
// HGMMA, and QGMMA of 8 bits, with both operands in shared memory and with the first one in
// registers.
constexpr std::uint64_t kProductOpcodes[] = {0x9f0, 0xdf0, 0x9f3, 0xdf3};
constexpr std::uint64_t kWarpgroupOpcode = 0x9c5;          // WARPGROUP.ARRIVE, WARPGROUP.DEPBAR
constexpr std::uint64_t kIsWait = std::uint64_t{1} << 47;  // DEPBAR

template <typename T>
T read_at(const std::vector<std::byte>& file, std::size_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) {
    throw Error(ErrorCode::file, "a cubin ends inside its ELF headers");
  }
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

std::string_view name_at(const std::vector<std::byte>& file, std::size_t offset) {
  if (offset >= file.size()) throw Error(ErrorCode::file, "a cubin's section name leaves the file");
  const char* const text = reinterpret_cast<const char*>(file.data()) + offset;
  return {text, strnlen(text, file.size() - offset)};
}

std::size_t instructions_of(const std::vector<std::byte>& file, const Elf64_Shdr& text) {
  std::size_t count = text.sh_size / kInstructionBytes;
  while (count > 0 &&
         (read_at<std::uint64_t>(file, text.sh_offset + (count - 1) * kInstructionBytes) &
          kOpcodeMask) == kNopOpcode) {
    --count;
  }
  return count;
}

// Calls body(section) for the instructions of each kernel and device function.
template <typename Body>
void for_each_text(const std::vector<std::byte>& cubin, const Body& body) {
  const auto header = read_at<Elf64_Ehdr>(cubin, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) {
    throw Error(ErrorCode::file, "a cubin is not an ELF64 file");
  }
  const auto section = [&](std::size_t i) {
    return read_at<Elf64_Shdr>(cubin, header.e_shoff + i * sizeof(Elf64_Shdr));
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr candidate = section(i);
    if (name_at(cubin, names.sh_offset + candidate.sh_name).starts_with(".text.")) body(candidate);
  }
}

}  // namespace

std::size_t count_instructions(const std::vector<std::byte>& cubin) {
  std::size_t count = 0;
  for_each_text(cubin, [&](const Elf64_Shdr& text) { count += instructions_of(cubin, text); });
  return count;
}

WarpgroupProducts count_products(const std::vector<std::byte>& cubin) {
  WarpgroupProducts counts;
  for_each_text(cubin, [&](const Elf64_Shdr& text) {
    for (std::size_t i = 0; i < text.sh_size / kInstructionBytes; ++i) {
      const auto word = read_at<std::uint64_t>(cubin, text.sh_offset + i * kInstructionBytes);
      const std::uint64_t opcode = word & kOpcodeMask;
      counts.products += std::ranges::count(kProductOpcodes, opcode) > 0 ? 1u : 0u;
      counts.waits += opcode == kWarpgroupOpcode && (word & kIsWait) != 0 ? 1u : 0u;
    }
  });
  return counts;
}

}  // namespace tilewright::compile_matrix
