#pragma once

#include <memory>
#include <string>

#include "entry.hpp"

namespace tilewright::cache {

/// What one level of the cache has for a key.
struct LoadResult {
  enum class Status {
    hit,
    miss,
    bad,     ///< there is something, but it must not be used; `problem` says why
    failed,  ///< it could not be asked; `problem` says why
  };
  Status status = Status::miss;
  std::shared_ptr<const Entry> entry;  ///< hit: verified
  std::string problem;
};

}  // namespace tilewright::cache
