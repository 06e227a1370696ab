#include "runtime/cuda/python_packages.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

namespace tilewright::cuda {
namespace {

namespace fs = std::filesystem;

// Where the Python that is first in PATH keeps its packages; empty where there is none.
fs::path lib_of_python() {
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const fs::path folder = rest.substr(0, end);
    std::error_code error;
    if (fs::exists(folder / "python3", error)) return folder.parent_path() / "lib";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

}  // namespace

std::vector<fs::path> python_packages() {
  std::vector<fs::path> roots;
  if (const char* environment = std::getenv("VIRTUAL_ENV"))
    roots.emplace_back(fs::path(environment) / "lib");
  if (const fs::path lib = lib_of_python(); !lib.empty()) roots.push_back(lib);
  if (const char* home = std::getenv("HOME")) roots.emplace_back(fs::path(home) / ".local/lib");
  roots.insert(roots.end(), {"/usr/local/lib", "/usr/lib"});
  std::vector<fs::path> packages;
  for (const fs::path& root : roots) {
    std::error_code error;
    for (const auto& folder : fs::directory_iterator(root, error)) {
      if (!folder.path().filename().string().starts_with("python3")) continue;
      packages.push_back(folder.path() / "site-packages");
      packages.push_back(folder.path() / "dist-packages");
    }
  }
  return packages;
}

}  // namespace tilewright::cuda
