#pragma once

#include <memory>

#include "tilewright.hpp"

namespace tilewright::capi {

/// The cache in a folder, one for all who name the same folder in this process. Null where
/// `cache_dir` is null or empty, which means the default cache.
/// @throws Error with code usage for a wrong TILEWRIGHT_CACHE_MAX_SIZE, as RemoteCache for its own
///         variables
std::shared_ptr<cache::Store> store_in(const char* cache_dir, const DiagnosticsSink& diagnostics);

}  // namespace tilewright::capi
