#pragma once

#include <filesystem>

namespace tilewright {

/// Lets this process, for the rest of its life, open only what a compiler library needs: files in
/// the folder of `library`, in the system's folders of libraries, and what says how many processors
/// there are. Done by Landlock; returns false where the kernel has none.
bool confine_reading_to_libraries(const std::filesystem::path& library);

}  // namespace tilewright
