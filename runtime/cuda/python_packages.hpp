#pragma once

#include <filesystem>
#include <vector>

namespace tilewright::cuda {

/// Folders where NVIDIA's wheels may be: site-packages of the virtual environment, of the Python
/// that is first in PATH, of the user, and of the system.
std::vector<std::filesystem::path> python_packages();

}  // namespace tilewright::cuda
