#include "c/store.hpp"

#include <filesystem>
#include <map>
#include <mutex>

#include "cache/directory.hpp"
#include "cache/store.hpp"

namespace tilewright::capi {

std::shared_ptr<cache::Store> store_in(const char* cache_dir, const DiagnosticsSink& diagnostics) {
  if (!cache_dir || !*cache_dir) return nullptr;
  static std::mutex& mutex = *new std::mutex;
  static auto& stores = *new std::map<std::filesystem::path, std::weak_ptr<cache::Store>>;
  const std::filesystem::path folder = std::filesystem::absolute(cache_dir).lexically_normal();
  const std::lock_guard lock(mutex);
  std::weak_ptr<cache::Store>& known = stores[folder];
  if (auto store = known.lock()) return store;
  auto store = std::make_shared<cache::Store>(
      cache::Store::Options{.directory = folder,
                            .diagnostics = diagnostics,
                            .max_bytes = cache::default_max_bytes(),
                            .remote = cache::RemoteCache::from_environment()});
  known = store;
  return store;
}

}  // namespace tilewright::capi
