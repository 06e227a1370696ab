#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "../base/file_io.hpp"

namespace tilewright::cache {

/// Where the cache is: $TILEWRIGHT_CACHE, else $XDG_CACHE_HOME/tilewright, else
/// ~/.cache/tilewright (~ is $HOME, else the password file's). Nothing where no home is known, and
/// in a set-user-id program, whose environment is another user's. An empty variable counts
/// as unset, and so does a relative XDG_CACHE_HOME, as its specification demands.
std::optional<std::filesystem::path> default_directory();

/// How large the cache may become: $TILEWRIGHT_CACHE_MAX_SIZE, else 4 GiB. See parse_size().
/// @throws Error with code usage where the variable holds no size
std::uint64_t default_max_bytes();

/// Bytes of "500M", "2G", "1.5 GiB" or "1048576"; K, M, G and T count in 1024s. 0 means no limit.
std::optional<std::uint64_t> parse_size(std::string_view text);

/// A folder that only this user can have put files into.
struct PrivateFolder {
  FileDescriptor folder;  ///< closed where the folder is absent or refused
  bool absent = false;    ///< it does not exist, and was not to be created
  std::string problem;    ///< why it was refused: a clause that names the folder
};

enum class IfAbsent { report, create };

/// Opens `path`, which must be a folder (not a symbolic link to one) that this user owns and that
/// neither group nor others can write. IfAbsent::create makes it, and what is above it, with mode
/// 0700.
PrivateFolder open_private_folder(const std::filesystem::path& path, IfAbsent if_absent);

/// The same for the folder `name` in the open folder `parent`; `path` is for messages.
PrivateFolder open_private_folder(int parent, const std::string& name,
                                  const std::filesystem::path& path, IfAbsent if_absent);

}  // namespace tilewright::cache
