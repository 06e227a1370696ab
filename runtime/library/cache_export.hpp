#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "../../cache/bundle_format.hpp"
#include "../../cache/store.hpp"

namespace tilewright {

/// The entries of a store that exportable() did not take.
struct LeftOut {
  std::size_t own = 0;             ///< for "cpu"
  std::size_t bad = 0;             ///< damaged, or they do not say what they are
  std::vector<std::string> older;  ///< of a kernel that was stored again later: what they are

  std::size_t count() const { return own + bad + older.size(); }
};

/// What of a store can go into a bundle: every entry that says what it is (entries of other
/// versions may not) and is not for "cpu", which is this machine's own. Of entries with the same
/// request, which several compilers may have made, the newest.
/// @param left_out where it is given, told of the others
std::vector<cache::BundleItem> exportable(cache::Store& store, LeftOut* left_out = nullptr);

}  // namespace tilewright
