#include "base/nvtx.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/dynamic_library.hpp"

namespace tilewright {
namespace {

// What a profiler's library and a program with NVTX agree on: nvtx3/nvtxDetail/nvtxTypes.h.

using NvtxFunction = void (*)();
using Slots = NvtxFunction**;  // an array of pointers to functions that the library may fill in

// Modules of functions, and how many slots each has, the unused slot 0 included.
enum Module : unsigned { kInvalid, kCore, kCuda, kOpenCl, kCudaRuntime, kCore2, kSync, kModules };
constexpr std::array<unsigned, kModules> kSlotCounts = {0, 16, 9, 15, 7, 16, 7};
constexpr unsigned kMostSlots = 16;

// Slots of kCore.
constexpr unsigned kRangePushA = 9;  // int (const char* message)
constexpr unsigned kRangePop = 11;   // int ()

constexpr std::uint32_t kVersion = 3;
constexpr std::uint32_t kCallbacksTable = 1, kVersionTable = 3;

struct Callbacks {
  std::size_t struct_size;
  int (*module_functions)(unsigned module, Slots* slots, unsigned* count);
};

struct VersionInfo {
  std::size_t struct_size;
  std::uint32_t version;
  std::uint32_t reserved;
  void (*set_version)(std::uint32_t version);
};

// What the library filled in. Slots that it left alone are null.
struct Table {
  std::array<std::array<NvtxFunction, kMostSlots>, kModules> functions{};
  std::array<std::array<NvtxFunction*, kMostSlots>, kModules> slots{};
};

Table& table() {
  static Table& made = *[] {
    auto* const empty = new Table;
    for (unsigned module = kCore; module < kModules; ++module) {
      for (unsigned slot = 1; slot < kSlotCounts[module]; ++slot) {
        empty->slots[module][slot] = &empty->functions[module][slot];
      }
    }
    return empty;
  }();
  return made;
}

int module_functions(unsigned module, Slots* slots, unsigned* count) {
  if (module == kInvalid || module >= kModules) return 0;
  if (slots) *slots = table().slots[module].data();
  if (count) *count = kSlotCounts[module];
  return 1;
}

const void* export_table(std::uint32_t id) {
  static const Callbacks callbacks{sizeof(Callbacks), module_functions};
  static const VersionInfo version{sizeof(VersionInfo), kVersion, 0, [](std::uint32_t) {}};
  if (id == kCallbacksTable) return &callbacks;
  return id == kVersionTable ? &version : nullptr;
}

struct Tool {
  int (*push)(const char*) = nullptr;
  int (*pop)() = nullptr;
};

Tool attach() {
  const char* const path = secure_getenv("NVTX_INJECTION64_PATH");
  if (!path || !*path) return {};
  const DynamicLibrary library = DynamicLibrary::open(path);
  if (!library) return {};
  using Initialize = int(const void* (*)(std::uint32_t));
  Initialize* const initialize = library.function<Initialize>("InitializeInjectionNvtx2");
  if (!initialize || initialize(export_table) == 0) return {};
  const std::array<NvtxFunction, kMostSlots>& core = table().functions[kCore];
  const Tool tool{reinterpret_cast<int (*)(const char*)>(core[kRangePushA]),
                  reinterpret_cast<int (*)()>(core[kRangePop])};
  return tool.push && tool.pop ? tool : Tool{};
}

const Tool& tool_of_process() {
  static const Tool tool = attach();
  return tool;
}

}  // namespace

NvtxRange::NvtxRange(std::string_view name, std::string_view suffix) noexcept {
  const Tool& tool = tool_of_process();
  if (!tool.push) return;
  try {
    std::string text(name.empty() ? "tilewright" : name);
    text += suffix;
    tool.push(text.c_str());
    pop_ = tool.pop;
  } catch (...) {
    // A profiler's range is not worth a failed call.
  }
}

NvtxRange::~NvtxRange() {
  if (pop_) pop_();
}

}  // namespace tilewright
