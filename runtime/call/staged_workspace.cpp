#include "runtime/call/staged_workspace.hpp"

#include <algorithm>
#include <vector>

#include "runtime/call/workspace.hpp"
#include "runtime/cuda/device_memory.hpp"
#include "templates/abi/decode.hpp"

namespace tilewright {
namespace {

constexpr std::size_t kGuardOfWorkspace = 4096;
constexpr std::byte kUntouched{0xa5};
constexpr std::size_t kCounterBytes = abi::kMostSplitBlocks * sizeof(unsigned);

}  // namespace

struct StagedWorkspace::Memory {
  cuda::DeviceMemory memory;
  std::size_t offset = 0;  // of the workspace in it
  std::size_t bytes = 0;   // of the workspace
};

StagedWorkspace::StagedWorkspace(const Attention& attention, const Shape& shape) {
  const auto bytes = static_cast<std::size_t>(attention.workspace_size(shape));
  if (bytes == 0) return;
  memory_ = std::make_unique<Memory>();
  constexpr auto alignment = static_cast<std::size_t>(kWorkspaceAlignment);
  const std::size_t all = bytes + 2 * kGuardOfWorkspace + alignment;
  memory_->memory = cuda::DeviceMemory(attention.device(), all);
  auto* const base = static_cast<std::byte*>(memory_->memory.data());
  const std::size_t after =
      (reinterpret_cast<std::uintptr_t>(base) + kGuardOfWorkspace) % alignment;
  memory_->offset = kGuardOfWorkspace + (alignment - after) % alignment;
  memory_->bytes = bytes;
  std::vector<std::byte> contents(all, kUntouched);
  std::fill_n(contents.begin() + static_cast<std::ptrdiff_t>(memory_->offset), bytes, std::byte{0});
  memory_->memory.copy_from(contents.data(), all);
  view_ = TensorView::contiguous(static_cast<void*>(base + memory_->offset), DType::u8,
                                 {static_cast<std::int64_t>(bytes)});
}

StagedWorkspace::~StagedWorkspace() = default;

std::optional<std::string> StagedWorkspace::damage() const {
  if (!memory_) return std::nullopt;
  std::vector<std::byte> contents(memory_->memory.bytes());
  memory_->memory.copy_to(contents.data(), contents.size());
  const std::byte* const begin = contents.data() + memory_->offset;
  const auto is_untouched = [](std::byte byte) { return byte == kUntouched; };
  if (!std::all_of(const_cast<const std::byte*>(contents.data()), begin, is_untouched) ||
      !std::all_of(begin + memory_->bytes,
                   const_cast<const std::byte*>(contents.data()) + contents.size(), is_untouched)) {
    return "memory around the workspace was written to";
  }
  if (std::any_of(begin, begin + kCounterBytes,
                  [](std::byte byte) { return byte != std::byte{}; })) {
    return "a call did not reset a counter of its workspace";
  }
  return std::nullopt;
}

}  // namespace tilewright
