#include "runtime/call/workspace.hpp"

#include <string>

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright {

void require_workspace(const TensorView& workspace, std::int64_t bytes, std::string_view user,
                       std::string_view hint) {
  const std::int64_t given = workspace.data == nullptr ? 0 : workspace.bytes();
  if (given < bytes) {
    throw Error(ErrorCode::tensor,
                fmt::format("the workspace has {} bytes; {} needs {}", given, user, bytes),
                std::string(hint));
  }
  if (!workspace.is_contiguous()) {
    throw Error(ErrorCode::tensor, "the workspace is not contiguous",
                "give one block of memory, for example u8 [workspace_size(shape)]");
  }
  const std::uintptr_t after =
      reinterpret_cast<std::uintptr_t>(workspace.data) % std::uintptr_t{kWorkspaceAlignment};
  if (after == 0) return;
  throw Error(ErrorCode::tensor,
              fmt::format("the workspace begins at no multiple of {} bytes", kWorkspaceAlignment),
              fmt::format("it begins {} bytes after one; align it to {} bytes", after,
                          kWorkspaceAlignment));
}

}  // namespace tilewright
