#pragma once

#include <filesystem>
#include <string>

namespace tilewright {

/// What a file of /proc or /sys holds now; empty if it cannot be opened or read. Their sizes read
/// as 0, their processes may end between open(2) and read(2) (ESRCH), and a container may refuse to
/// read what it let be opened (EPERM).
std::string read_proc_file(const std::filesystem::path& path);

}  // namespace tilewright
