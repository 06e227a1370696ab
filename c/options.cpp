#include "c/options.hpp"

#include <optional>
#include <string>

#include "c/store.hpp"

namespace tilewright::capi {
namespace {

std::optional<bool> jit_of(std::int32_t jit) {
  if (jit == TW_JIT_DEFAULT) return std::nullopt;
  if (jit == TW_JIT_ON || jit == TW_JIT_OFF) return jit == TW_JIT_ON;
  throw Error(ErrorCode::usage, "jit is " + std::to_string(jit),
              "give TW_JIT_DEFAULT (0), TW_JIT_ON (1) or TW_JIT_OFF (-1)");
}

std::unique_ptr<LentPool> pool_of(const tw_options& options) {
  if (!options.parallel_for && !options.pool_size) return nullptr;
  if (options.parallel_for && options.pool_size) return std::make_unique<LentPool>(options);
  throw Error(ErrorCode::usage,
              options.parallel_for ? "pool_size is NULL, and parallel_for is not"
                                   : "parallel_for is NULL, and pool_size is not",
              "give both functions, or neither");
}

}  // namespace

AttentionOptions attention_options(const tw_options& options, std::unique_ptr<LogSink>& log,
                                   std::unique_ptr<LentPool>& pool) {
  if (options.log) log = std::make_unique<LogSink>(options.log, options.log_user);
  pool = pool_of(options);
  AttentionOptions given;
  given.device = options.device ? Device::parse(options.device) : Device::automatic();
  if (log) given.kernels.diagnostics = log->diagnostics();
  given.kernels.store = store_in(options.cache_dir, given.kernels.diagnostics);
  given.kernels.jit = jit_of(options.jit);
  given.threads = pool.get();
  given.takes_block_mask = options.takes_block_mask != 0;
  given.masks_only = options.masks_only != 0;
  given.positions = options.positions != 0;
  given.merge = options.merge != 0;
  given.append = options.append != 0;
  given.decode = options.decode != 0;
  given.quantise = options.quantise != 0;
  return given;
}

}  // namespace tilewright::capi
